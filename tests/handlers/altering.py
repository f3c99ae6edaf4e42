"""Requests that the tests of AlterConfigs and IncrementalAlterConfigs share."""

from collections.abc import Mapping, Sequence

from minicontroller.policies import AlterTopicRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages import alter_configs, incremental_alter_configs

Resource = alter_configs.AlterConfigsResource | incremental_alter_configs.IncrementalAlterConfigsResource
Response = alter_configs.AlterConfigsResponse | incremental_alter_configs.IncrementalAlterConfigsResponse

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

NOT_NUMBERS = ["abc", "", " 1", "1 ", "1\n", "1_0", "1.0", "0x1", "+", "2147483648"]
"""Names that are no broker id, neither of a BROKER nor of a BROKER_LOGGER, but that an empty name
of a BROKER stands for every node.
"""
NODE_1 = ["1", "+1", "01", "\uff11", "0" * 5_000 + "1"]
"""Whatever Java takes for a 1."""


def codes(answer: Response) -> list[int]:
    return [row.error_code for row in answer.responses]


def expect_refused(answer: Response, wish: Resource, code: ErrorCode, said: Sequence[str]) -> None:
    """The one row names what was wished and the fault, in a text with all that must be said."""
    (row,) = answer.responses
    assert (row.resource_type, row.resource_name, row.error_code) == (wish.resource_type, wish.resource_name, code)
    assert all(part in (row.error_message or "") for part in said), row.error_message


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
