"""A candidate in Python: what would it have refused?"""

import re

from minicontroller import policies

NAME = re.compile(r"[a-z][a-z0-9]*\.[a-z][a-z0-9-]*\.[a-z0-9-]+")
MOST_PARTITIONS = 24
REPLICAS = 3


class Stricter(policies.TopicManagementPolicy):
    """Judges names, partitions and replicas as `stricter.toml` does."""

    def validate_create_topic(self, request: policies.CreateTopicRequest, _cluster: policies.ClusterState) -> None:
        """Refuse other names, many partitions and few replicas."""
        if not NAME.fullmatch(request.topic):
            raise policies.PolicyViolation("Topics are called team.domain.name in lower case.")
        if request.requested_state.replication_factor < REPLICAS:
            raise policies.PolicyViolation("One replica is lost with one broker.")
        _check_partitions(request.requested_state.num_partitions)

    def validate_alter_topic(self, request: policies.AlterTopicRequest, _cluster: policies.ClusterState) -> None:
        """Refuse many partitions."""
        _check_partitions(request.requested_state.num_partitions)


def _check_partitions(count: int) -> None:
    if count > MOST_PARTITIONS:
        raise policies.PolicyViolation(f"{count} partitions are more than {MOST_PARTITIONS}.")
