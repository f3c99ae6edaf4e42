"""A request and its cluster as the rules see them.

Rule: nothing is made before a rule that matches asks for it, and only the fields that some expression reads: to hand a value to the
engine costs more than to judge it (measured: 1 us a string, 3 us a row of replicas, 0.3 us a comparison).
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import cel

from ..interface import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
    RequestedTopicState,
    TopicState,
)
from ..topic_counts import counts_of
from .matching import compiled_regex
from .vocabulary import VARIABLES

OPERATION_OF = {
    CreateTopicRequest: "create",
    AlterTopicRequest: "alter",
    DeleteTopicRequest: "delete",
    DeleteRecordsRequest: "delete_records",
}
ANONYMOUS = "User:ANONYMOUS"
"""Kafka's name for a caller who is not authenticated."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NoTimeError(Exception):
    """The request does not tell when it was made."""


class Facts:
    """Of one request."""

    def __init__(self, request: PolicyRequest, cluster: ClusterState, reads: Collection[tuple[str, str]]) -> None:
        self.request = request
        self.cluster = cluster
        self.operation = OPERATION_OF[type(request)]
        self.principal = request.principal or ANONYMOUS
        self._reads = reads

    @cached_property
    def before(self) -> TopicState | None:
        return None if self.operation == "create" else self.cluster.topic_state(self.request.topic)

    @property
    def after(self) -> RequestedTopicState | None:
        return (
            self.request.requested_state if isinstance(self.request, CreateTopicRequest | AlterTopicRequest) else None
        )

    @property
    def created_ms(self) -> int | None:
        """When the topic that is to be deleted was created."""
        return self.request.created_ms if isinstance(self.request, DeleteTopicRequest) else None

    @property
    def time(self) -> datetime:
        if self.request.time_ms is None:
            raise NoTimeError("the request does not tell its time")
        return EPOCH + timedelta(milliseconds=self.request.time_ms)

    @cached_property
    def context(self) -> cel.Context:
        """For the engine. A variable that is null has no fields: an expression that asks for one fails."""
        variables: dict[str, Any] = {"principal": self.principal}
        for variable in VARIABLES:
            if any(read == variable for read, _ in self._reads):
                variables[variable] = self._variable(variable)
        return cel.Context(variables, {"_matches": _matches})

    def _variable(self, variable: str) -> dict[str, Any] | None:
        if getattr(self, variable) is None:
            return None
        return {
            field: value
            for read, field in self._reads
            if read == variable and field and (value := self._field(variable, field)) is not Missing
        }

    def _field(self, variable: str, field: str) -> Any:
        if variable == "request":
            return self._request_field(field)
        if variable == "cluster":
            return self.cluster.cluster_size if field == "cluster_size" else self._topic_count()
        value = getattr(getattr(self, variable), field)
        if field == "replica_assignments":
            return [list(value[partition]) for partition in sorted(value)]
        return dict(value) if isinstance(value, Mapping) else value

    def _topic_count(self) -> int:
        counts = counts_of(self.cluster)
        return len(self.cluster.topics()) if counts is None else counts.topics

    def _request_field(self, field: str) -> Any:
        if field == "operation":
            return self.operation
        if field == "time":
            return Missing if self.request.time_ms is None else self.time
        if field == "created":
            return Missing if self.created_ms is None else EPOCH + timedelta(milliseconds=self.created_ms)
        value = getattr(self.request, field, None)
        return dict(value) if isinstance(value, Mapping) else value


class Missing:
    """Stands for a field that is left out: whoever reads it fails, and so denies."""


def _matches(text: str, pattern: str) -> bool:
    return compiled_regex(pattern).search(text.encode("utf-8", "replace")) is not None
