"""The interface of whatever runs in a process and is shown by the site: nodes, or a gateway."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from ...admin.recording.decisions import RecentDecisions
from ...admin.recording.log import AuditLog
from ...cluster.image import Image
from .listener import HttpListener
from .topic_statistics import TopicStatistics
from .views import PageState


class NodeHealth(msgspec.Struct, frozen=True):
    node: int
    ready: bool
    reasons: list[str]
    """Why the node is not ready, or why it is ready and refuses changes."""


class Health(msgspec.Struct, frozen=True):
    ready: bool
    reasons: list[str]
    """Why the process is not ready, beside its nodes."""
    nodes: list[NodeHealth]


class Metrics(Protocol):
    async def text(self, *, event_listeners: int) -> bytes:
        """Return all families in the exposition format of Prometheus."""


class ShownProcess(Protocol):
    @property
    def decisions(self) -> RecentDecisions: ...
    @property
    def generation(self) -> int:
        """A number that grows with every change that a watcher could see."""

    @property
    def image(self) -> Image: ...

    @property
    def audit_logs(self) -> Sequence[AuditLog]: ...
    @property
    def log_id(self) -> str:
        """The cluster id in the events of the audit logs."""

    def watch(self) -> None: ...

    async def wait_for_change(self, seen: int) -> None:
        """Wait until the generation is no longer `seen`."""

    def health(self) -> Health: ...

    async def state(self, statistics: TopicStatistics) -> PageState:
        """Return the state of the cluster, for the head of the page."""

    async def configs(self, topic: str) -> Mapping[str, str] | None:
        """Return the configs of a topic, redacted; None if they cannot be read now."""

    def metrics(self, listener: HttpListener, statistics: TopicStatistics) -> Metrics: ...
