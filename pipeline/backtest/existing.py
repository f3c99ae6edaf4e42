"""The topics that are there today, each put to the candidate as if somebody asked for it now.

A topic is asked for by whoever created it if the log tells, beside all other topics; and by counts,
as most topics are, and not with replicas of its own, which a policy may refuse in itself.
"""

from collections.abc import Iterator, Mapping

import msgspec

from ...audit.event import RecordedState
from ...audit.replayed_topics import ReplayedCluster, ReplayedTopics, SeenStates
from ...policies.interface import CreateTopicRequest
from ...policies.states import requested_state
from ...policies.verdict import PolicyOutcome
from .verdicts import Opinion, opinion
from .watching import Watched


class Existing(msgspec.Struct, frozen=True):
    """A topic in its newest state."""

    topic: str
    state: RecordedState
    principal: str | None = None
    """The principal that created the topic; null if the log does not tell."""


class Now(msgspec.Struct, frozen=True):
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


def refused(watched: Watched, topics: Mapping[str, Existing], now: Now) -> Iterator[Refused]:
    """Yield the topics that the candidate would not allow, in the order of their names."""
    there, states = ReplayedTopics.of({name: existing.state for name, existing in topics.items()}), SeenStates()
    for name, existing in sorted(topics.items()):
        state = existing.state
        if state.marked_for_deletion:
            continue
        wanted = requested_state(state.replicas, state.configs, internal=state.internal)
        request = CreateTopicRequest(
            topic=name, principal=existing.principal, api="CreateTopics", time_ms=now.time_ms, requested_state=wanted
        )
        verdict = watched.ask(request, ReplayedCluster(there.changed(name, None), now.cluster_size, states))
        if verdict.decision is not PolicyOutcome.ALLOWED:
            said = opinion(verdict, names=watched.names)
            size = wanted.num_partitions, wanted.replication_factor
            yield Refused(now.cluster_id, name, existing.principal, *size, state.configs, said)
