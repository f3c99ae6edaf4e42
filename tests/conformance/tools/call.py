"""A command line of one of Kafka's tools, and what has to be known to compare what it wrote."""

import shlex
from dataclasses import dataclass

CLASSES = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
"""The class of each tool, as Kafka's shell scripts start it."""
AFTER_THE_SUBCOMMAND = frozenset({"kafka-cluster"})
"""The tools whose subcommand stands before the bootstrap servers."""


@dataclass(frozen=True)
class Call:
    """A command line as people write it, without `--bootstrap-server`."""

    line: str
    until: str = ""
    """A text that the output has at last: the call is made again until then."""
    learns: str = ""
    """A pattern. Its group of the output replaces `{learned}` in later lines."""
    unordered: bool = False
    """The lines come in the order of a hash map."""
    alone: bool = False
    """Whether it is called without bootstrap servers."""
    typed: str = ""
    """What the tool reads from its standard input."""

    @property
    def tool(self) -> str:
        return self.line.split(" ", 1)[0]

    def arguments(self, bootstrap: str, folder: str) -> list[str]:
        """Return what the tool is given; the files of the scene lie in `folder`."""
        words = [word.replace("FOLDER", folder) for word in shlex.split(self.line)[1:]]
        if self.alone:
            return words
        at = 1 if self.tool in AFTER_THE_SUBCOMMAND else 0
        return [*words[:at], "--bootstrap-server", bootstrap, *words[at:]]


def calls(tool: str, *lines: "str | Call") -> list[Call]:
    """Return calls of one tool; a line has its arguments only."""
    return [each if isinstance(each, Call) else Call(f"{tool} {each}".strip()) for each in lines]
