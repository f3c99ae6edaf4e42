"""The form of what is asked of both: a case is one request, and the cases of a scenario are asked
one after another on one connection.

A scenario begins where the one before it ended, so topics carry a prefix of their scenario.
Placement is random when a broker chooses it, therefore topics whose replicas are looked at are
placed by hand.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.wire import MESSAGES, read_answer

Body = dict[str, Any]

VERSIONS = {
    "AllocateProducerIds": range(1),
    "AlterClientQuotas": range(2),
    "AlterConfigs": range(3),
    "AlterPartitionReassignments": range(1),
    "AlterReplicaLogDirs": range(3),
    "AlterUserScramCredentials": range(1),
    "ApiVersions": range(5),
    "ConsumerGroupDescribe": range(1),
    "ConsumerGroupHeartbeat": range(1),
    "CreateAcls": range(4),
    "CreateDelegationToken": range(4),
    "CreatePartitions": range(4),
    "CreateTopics": range(8),
    "DeleteAcls": range(4),
    "DeleteGroups": range(3),
    "DeleteRecords": range(3),
    "DeleteTopics": range(7),
    "DescribeAcls": range(4),
    "DescribeClientQuotas": range(2),
    "DescribeCluster": range(2),
    "DescribeConfigs": range(5),
    "DescribeDelegationToken": range(4),
    "DescribeGroups": range(6),
    "DescribeProducers": range(1),
    "DescribeTransactions": range(1),
    "DescribeLogDirs": range(5),
    "DescribeUserScramCredentials": range(1),
    "ElectLeaders": range(3),
    "ExpireDelegationToken": range(3),
    "FindCoordinator": range(7),
    "IncrementalAlterConfigs": range(2),
    "InitProducerId": range(6),
    "LeaveGroup": range(6),
    "ListGroups": range(6),
    "ListOffsets": range(10),
    "ListPartitionReassignments": range(1),
    "ListTransactions": range(2),
    "Metadata": range(13),
    "OffsetCommit": range(10),
    "OffsetDelete": range(1),
    "OffsetFetch": range(10),
    "RenewDelegationToken": range(3),
    "SaslAuthenticate": range(3),
    "SaslHandshake": range(2),
    "UpdateFeatures": range(2),
    "WriteTxnMarkers": range(2),
}
"""The versions of each API that Kafka 3.9 speaks; all of them are asked."""

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@dataclass(frozen=True)
class TopicIdOf:
    """Stands in a body for the id that a topic got on the cluster that is asked."""

    topic: str


@dataclass(frozen=True)
class TokenIdOf:
    """Stands for the id of the delegation token that the named case of CreateDelegationToken, in
    its version, got on the cluster that is asked: `alice: new v3`.
    """

    token: str


@dataclass(frozen=True)
class TokenHmacOf:
    """Stands for its HMAC."""

    token: str


@dataclass(frozen=True)
class ScramFirst:
    """Stands for a client's first message of a SCRAM login."""

    user: str | TokenIdOf
    header: str = "n,,"
    more: str = ""


@dataclass(frozen=True)
class ScramFinal:
    """Stands for its second message, which answers the challenge that came last."""

    mechanism: str
    password: str | TokenHmacOf
    binding: str = "biws"
    nonce: str | None = None
    """Not the one of the challenge."""


@dataclass(frozen=True)
class Case:
    """A request, and what has to be known about its answer to compare it."""

    name: str
    api: str
    version: int
    body: Mapping[str, Any] = field(default_factory=dict)
    frame: bytes | None = None
    """The bytes themselves, with their size, where no codec would write them."""
    once_led: tuple[str, ...] = ()
    """Topics whose partitions must have leaders before this is asked."""
    settles: bool = False
    """Kafka tells its own nodes by a notification: the answer may need a moment to become this."""
    random_placement: bool = False
    """The replicas were chosen by the controller: only their number can be compared."""
    node_1: bool = False
    """The answer depends on the node's own id, which was 1."""
    user: str = ""
    """The user who asks, where the cluster is secured."""
    dialogue: str = ""
    """The connection on which a client logs in by the cases themselves."""
    raw: bool = False
    """`frame` is answered by bytes that are no response."""

    @property
    def key(self) -> str:
        return f"{self.api}-v{self.version}-{self.name}"

    def answer(self, frame: bytes) -> Body:
        """Read what came back."""
        return {"bytes": frame.hex()} if self.raw else read_answer(self.api, self.version, frame)


def each_version(name: str, api: str, body: Mapping[str, Any], *, since: int = 0, **how: Any) -> list[Case]:
    """Return a case for every version of a request from `since` on; `{v}` in a topic's name becomes
    the version.
    """
    return [Case(name, api, version, fill(body, version, api), **how) for version in VERSIONS[api] if version >= since]


def fill(body: Any, version: int, api: str = "") -> Any:
    """Replaces `{v}`, and drops top-level fields that the version does not have."""
    if isinstance(body, str):
        return body.replace("{v}", str(version))
    if isinstance(body, TopicIdOf):
        return TopicIdOf(body.topic.replace("{v}", str(version)))
    if isinstance(body, (TokenIdOf, TokenHmacOf)):
        return type(body)(body.token.replace("{v}", str(version)))
    if isinstance(body, (list, tuple)):
        return [fill(element, version) for element in body]
    if isinstance(body, Mapping):
        known = MESSAGES[api][0]._struct.fields if api else {}
        return {
            key: fill(value, version) for key, value in body.items() if not api or known[key].for_version_q(version)
        }
    return body


def new_topic(
    name: str,
    partitions: int = -1,
    replicas: int = -1,
    *,
    placed: Mapping[int, list[int]] | Iterable[tuple[int, list[int]]] | None = None,
    configs: Mapping[str, str | None] | Iterable[tuple[str, str | None]] = (),
) -> Body:
    """An element of CreateTopics; `placed` gives each partition's brokers."""
    pairs = placed.items() if isinstance(placed, Mapping) else placed or ()
    settings = configs.items() if isinstance(configs, Mapping) else configs
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [{"partition_index": index, "broker_ids": brokers} for index, brokers in pairs],
        "configs": [{"name": key, "value": value} for key, value in settings],
    }


def creation(*topics: Body, timeout_ms: int = 30_000, validate_only: bool = False) -> Body:
    return {"topics": list(topics), "timeout_ms": timeout_ms, "validate_only": validate_only}


def one_partition(*names: str) -> Body:
    """Topics that need no more than to exist: one partition on node 1."""
    return creation(*(new_topic(name, placed={0: [1]}) for name in names))
