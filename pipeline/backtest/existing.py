"""Asks the candidate about each existing topic, as if it were created now.

The request comes from the principal that created the topic, if the log records one, in a cluster
with all other topics. It names counts of partitions and replicas, not an assignment, which a policy
may refuse by itself.
"""

from collections.abc import Iterator, Mapping

import msgspec

from ...audit.event import RecordedState
from ...audit.replayed_topics import ReplayedCluster, ReplayedTopics, SeenStates
from ...policies.requests import RequestBuilder
from ...policies.states import requested_state
from ...policies.verdict import PolicyOutcome
from .sandbox import Sandbox
from .verdicts import Opinion, opinion


class Existing(msgspec.Struct, frozen=True):
    """A topic in its newest state."""

    topic: str
    state: RecordedState
    principal: str | None = None
    """The principal that created the topic; null if the log does not record it."""


class LogEnd(msgspec.Struct, frozen=True):
    """The state of a cluster at the end of its log."""

    cluster_id: str
    cluster_size: int
    time_ms: int
    """The time of the cluster's newest event, in milliseconds since 1970."""


class Refused(msgspec.Struct, frozen=True):
    """A topic that the candidate would not allow today."""

    cluster_id: str
    topic: str
    principal: str | None
    partitions: int
    replication_factor: int
    configs: dict[str, str]
    candidate: Opinion


def refused(sandbox: Sandbox, topics: Mapping[str, Existing], now: LogEnd) -> Iterator[Refused]:
    """Yield the topics that the candidate would not allow, in the order of their names."""
    there, states = ReplayedTopics.of({name: existing.state for name, existing in topics.items()}), SeenStates()
    for name, existing in sorted(topics.items()):
        state = existing.state
        if state.marked_for_deletion:
            continue
        wanted = requested_state(state.replicas, state.configs, internal=state.internal)
        asked = RequestBuilder(principal=existing.principal, api="CreateTopics", time_ms=now.time_ms)
        request = asked.create_topic(name, wanted)
        verdict = sandbox.ask(request, ReplayedCluster(there.changed(name, None), now.cluster_size, states))
        if verdict.decision is not PolicyOutcome.ALLOWED:
            said = opinion(verdict, names=sandbox.names)
            size = wanted.num_partitions, wanted.replication_factor
            yield Refused(now.cluster_id, name, existing.principal, *size, state.configs, said)
