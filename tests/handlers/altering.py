"""What the tests of AlterConfigs and of IncrementalAlterConfigs ask with."""

from collections.abc import Mapping

from minicontroller.policies import AlterTopicRequest, ClusterState, PolicyViolation, TopicManagementPolicy

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

NOT_NUMBERS = ["abc", "", " 1", "1 ", "1\n", "1_0", "1.0", "0x1", "+", "2147483648"]
"""Of BROKER_LOGGER too; an empty name of BROKER is every node."""
NODE_1 = ["1", "+1", "01", "\uff11", "0" * 5_000 + "1"]
"""Whatever Java takes for a 1."""


class Bounded(TopicManagementPolicy):
    """No retention above 10; keeps what it was asked, and what it was shown of the topic before."""

    def __init__(self) -> None:
        self.asked: list[AlterTopicRequest] = []
        self.before: list[Mapping[str, str]] = []

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        state = cluster.topic_state(request.topic)
        assert state is not None
        self.asked.append(request)
        self.before.append(dict(state.configs))
        if int(request.requested_state.configs.get("retention.ms", "0")) > 10:
            raise PolicyViolation("Ten is enough.")
