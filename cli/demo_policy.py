"""The policy of `minicontroller demo`, as a platform team could write it. See docs/policies.md."""

import re

from ..policies import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyViolation,
    TopicManagementPolicy,
    TopicState,
)

NAME = re.compile(r"[a-z]++\.[a-z]++\.[a-z-]++")
MOST_PARTITIONS = 12
DAY_MS = 24 * 60 * 60 * 1000
LONGEST_RETENTION_DAYS = 30
PROTECTED = "audit."


class DemoPolicy(TopicManagementPolicy):
    """Restricts names, partitions and retention, and protects the audit topics."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.automatic and request.requested_state.internal:
            return  # Kafka decides what its internal topics need
        if not NAME.fullmatch(request.topic):
            raise PolicyViolation(f"the name {request.topic} is not team.domain.name, such as sales.orders.placed")
        _within_bounds(request.requested_state)

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        _within_bounds(request.requested_state)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.topic.startswith(PROTECTED):
            raise PolicyViolation(f"{request.topic} is protected for the auditors and cannot be deleted")

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.topic.startswith(PROTECTED):
            raise PolicyViolation(f"{request.topic} is protected for the auditors and cannot be emptied")


def _within_bounds(state: TopicState) -> None:
    if state.num_partitions > MOST_PARTITIONS:
        raise PolicyViolation(f"{state.num_partitions} partitions are more than {MOST_PARTITIONS}")
    days = int(state.configs.get("retention.ms", 0)) / DAY_MS
    if days > LONGEST_RETENTION_DAYS:
        raise PolicyViolation(
            f"retention.ms keeps records for {days:g} days; at most {LONGEST_RETENTION_DAYS} are allowed"
        )
