"""Rules for the topics of a cluster that many teams share: a policy to start from.

    topic.management.policy.class.name=config/policy.py:PlatformPolicy

To change a number, do not edit it here: derive in a file beside this one, and name that class in
the configuration.

    from policy import PlatformPolicy

    class OurPolicy(PlatformPolicy):
        max_partitions = 24
        platform_principals = frozenset({"User:kafka-ops"})

An alteration is judged by what it changes: a topic that is older than a rule keeps working, and
nobody has to mend all of it in order to change one thing.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from minicontroller.policies import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
    PolicyViolation,
    RequestedTopicState,
    TopicManagementPolicy,
    TopicState,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class PlatformPolicy(TopicManagementPolicy):
    name_pattern = re.compile(r"[a-z][a-z0-9-]*+\.[a-z][a-z0-9-]*+\.[A-Za-z0-9-]++")
    """`team.domain.name`. The last part has room for what Kafka Streams appends to the id of an
    application; an underscore has no place, because in the names of metrics it cannot be told from
    a dot.
    """

    max_partitions = 50

    min_replication_factor = 3
    """Or as many brokers as there are, so that the same rules serve a laptop."""

    min_retention_ms = 1 * HOUR_MS
    """Less, and a consumer that was down for an hour has lost data."""

    max_retention_ms = 30 * DAY_MS

    cleanup_policies = (frozenset({"delete"}), frozenset({"compact"}), frozenset({"compact", "delete"}))
    """Kafka takes an empty list too, and then keeps everything for ever."""

    protected_topics: tuple[str, ...] = ("platform.*", "audit.*")
    """With Kafka's internal topics, these are created, altered, emptied and deleted by platform
    principals only.
    """

    platform_principals = frozenset({"User:platform"})

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        state = request.requested_state
        if state.internal and request.automatic:
            return  # Kafka's own topics come as Kafka needs them, where the cluster makes them for itself
        self._only_platform(request, "created")
        self._refuse_if(
            *self._name_faults(request.topic),
            *self._partition_faults(state),
            *self._replication_faults(state.replication_factor, cluster),
            *self._cleanup_faults(state),
            *self._durability_faults(state),
        )

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        self._only_platform(request, "altered")
        state, before = request.requested_state, cluster.topic_state(request.topic)
        if state.internal or before is None:
            return
        faults: list[str] = []
        if state.num_partitions != before.num_partitions:
            faults += self._partition_faults(state)
            faults += self._growth_faults(before)
        cancelled = {partition for partition, row in (request.reassignments or {}).items() if row is None}
        moved = [
            len(state.replica_assignments[partition])
            for partition, replicas in before.replica_assignments.items()
            if tuple(state.replica_assignments[partition]) != tuple(replicas) and partition not in cancelled
        ]
        if moved:
            faults += self._replication_faults(min(moved), cluster)
        if _changed(before, state, "cleanup.policy", "retention.ms"):
            faults += self._cleanup_faults(state)
        if moved or _changed(before, state, "min.insync.replicas"):
            faults += self._durability_faults(state)
        self._refuse_if(*faults)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self._only_platform(request, "deleted")

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:
        self._only_platform(request, "emptied")

    def _only_platform(self, request: PolicyRequest, done: str) -> None:
        patterns = ("__*", *self.protected_topics)
        if request.principal not in self.platform_principals and any(fnmatchcase(request.topic, p) for p in patterns):
            who = request.principal or "somebody who is not authenticated"
            raise PolicyViolation(
                f"{request.topic} is protected: it is {done} by the platform team only, not by {who}."
            )

    def _refuse_if(self, *faults: str) -> None:
        """All faults in one message, so that a request is mended at once and not fault by fault."""
        if faults:
            raise PolicyViolation("; ".join(faults) + ".")

    def _name_faults(self, topic: str) -> Iterator[str]:
        if not self.name_pattern.fullmatch(topic):
            yield f"the name {topic} is not team.domain.name, such as sales.orders.placed, with team and domain in lower case"

    def _partition_faults(self, state: TopicState) -> Iterator[str]:
        if state.num_partitions > self.max_partitions:
            yield f"{state.num_partitions} partitions are more than {self.max_partitions}"

    def _growth_faults(self, before: TopicState) -> Iterator[str]:
        if "compact" in _cleanup(before):
            yield (
                "a compacted topic keeps its number of partitions, because its keys would move and leave their older values "
                "behind: create another topic and copy"
            )

    def _replication_faults(self, replication_factor: int, cluster: ClusterState) -> Iterator[str]:
        least = min(self.min_replication_factor, cluster.cluster_size)
        if replication_factor < least:
            yield f"replication factor {replication_factor} is less than {least}, which lets a broker fail without loss"

    def _cleanup_faults(self, state: TopicState) -> Iterator[str]:
        cleanup = _cleanup(state)
        if cleanup not in self.cleanup_policies:
            known = ", ".join("+".join(sorted(policies)) for policies in self.cleanup_policies)
            yield f"cleanup.policy {state.configs.get('cleanup.policy')!r} is none of {known}"
        retention = state.configs.get("retention.ms")
        if retention is not None and "delete" in cleanup:
            if int(retention) < 0:
                yield f"retention.ms {retention} keeps records for ever: at most {self.max_retention_ms} here, or compact the topic"
            elif not self.min_retention_ms <= int(retention) <= self.max_retention_ms:
                yield f"retention.ms {retention} is not within {self.min_retention_ms} and {self.max_retention_ms}"

    def _durability_faults(self, state: RequestedTopicState) -> Iterator[str]:
        in_sync = int(state.configs.get("min.insync.replicas", 1))
        if 1 < state.replication_factor <= in_sync:
            yield (
                f"min.insync.replicas {in_sync} with replication factor {state.replication_factor} stops producers "
                "whenever one broker restarts"
            )


def _cleanup(state: TopicState) -> frozenset[str]:
    listed = state.configs.get("cleanup.policy", "delete")
    return frozenset(filter(None, (policy.strip() for policy in listed.split(","))))


def _changed(before: TopicState, after: TopicState, *keys: str) -> bool:
    return any(before.configs.get(key) != after.configs.get(key) for key in keys)
