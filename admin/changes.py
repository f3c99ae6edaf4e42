"""Changes that requests ask for, and what becomes of them.

A request asks for changes. The policy's judgement of a change, the delta that it makes of the
cluster and the error that refuses it are its outcome. Nodes and gateways decide on outcomes, and
the audit log and the page show them; nothing here decides or writes anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..cluster.delta import NO_CHANGE, Delta
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..policies.configs.values import java_int
from ..policies.interface import JudgedRequest
from ..policies.verdict import Verdict
from ..protocol.config_resources import ResourceType
from ..protocol.error_codes import ErrorCode

KINDS: Mapping[int, str] = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.BROKER_LOGGER: "logger",
    ResourceType.CLIENT_METRICS: "client_metrics",
    ResourceType.GROUP: "group_config",
}
"""The names of what has configs. Those of groups and of client metrics are Kafka's on KRaft alone:
nodes refuse to change them.
"""
ENTITY_KINDS = ("acl", "user", "client_quota", "token", "group", "replica")
"""The kinds of changes of what every node follows: the ACLs of a resource pattern, the SCRAM
credentials of a user, the quotas of a user, client or address, a delegation token, and a group; and
of the directories in which a node has its replicas of a topic.
"""
NAMED_BY_BROKER_ID = frozenset({"broker", "logger"})


class Change(msgspec.Struct, frozen=True):
    """One element of a request as the client sent it, before anything is decided."""

    resource: str
    """The name of what is changed; empty for a topic that is named by its id."""
    kind: str = "topic"
    """`topic`, `broker`, `logger`, or one of ENTITY_KINDS."""
    operations: Mapping[str, str | None] | None = None
    """The operand of each key of a change of configs, None to delete the key."""
    operation_kinds: Mapping[str, str] | None = None
    """The kind of operation on each key of `operations`: `set`, `delete`, `append`, `subtract`."""
    reassignments: Mapping[int, Sequence[int] | None] | None = None
    """The broker ids that a reassignment asks for, by partition; None cancels one."""
    delete_records_offsets: Mapping[int, int] | None = None
    """The offset before which records are deleted, by partition; -1 is the high watermark."""
    election_type: str | None = None
    """For an election of leaders: `preferred`, `unclean` or `unknown`."""


class Judgement(msgspec.Struct):
    """The request that a policy was asked about, and its verdict, if there is a policy."""

    request: JudgedRequest
    image: Image
    """The state of the cluster that the policy sees."""
    verdict: Verdict | None = None
    is_enforced: bool = True
    """Whether a refusal by the policy is carried out: a gateway may only observe."""


class Unjudged(msgspec.Struct, frozen=True):
    """The reason for which a gateway passes a change without a verdict."""

    reason: str
    was_due: bool = False
    """Whether the policy should have been asked; otherwise no state of the cluster needs it."""


class Element:
    """A delta on its way into the image, as the audit log observes it. It takes effect, or is
    refused, or writes nothing.
    """

    __slots__ = ("delta", "is_decision_only", "refusal", "request", "topic")

    def __init__(
        self,
        delta: Delta,
        *,
        refusal: Refusal | None = None,
        is_decision_only: bool = False,
        request: Any = None,
    ) -> None:
        self.delta = delta
        self.topic = delta.changed_topic
        """The name of the topic that it changes, if any."""
        self.refusal = refusal
        """The reason why its plan or the store refused the element, if one did."""
        self.is_decision_only = is_decision_only
        """Whether its plan refused it or only validated it, so that it writes nothing."""
        self.request = request
        """The request to which it belongs as the writer's observer knows it: an `AuditedRequest`
        with an audit log; None for changes by the controller itself or by other processes.
        """


class Outcome(msgspec.Struct):
    """The outcome of one change: its judgement, its element, and the error that refuses it."""

    change: Change
    refusal: Refusal | None = None
    element: Element | None = None
    """The element that carries it out; None until it is planned. The element of a refused change
    writes nothing, and that of a gateway says what the cluster is expected to do.
    """
    levels: tuple[Mapping[str, str], Mapping[str, str]] | None = None
    """The levels of the loggers that the request names, before and after it."""
    is_done: bool = False
    """Whether the node that received the request has already carried it out, so that nothing has to
    be written.
    """
    judgement: Judgement | None = None
    """None if there is neither a policy nor an audit log, or if it was refused before it was
    judged.
    """
    unjudged: Unjudged | None = None
    """Why a gateway passed it without a verdict; None at a node."""
    sequence: int = 0
    """The number of its event in the audit log; 0 if it has none yet."""
    is_late: bool = False
    """Whether it was carried out although its client got REQUEST_TIMED_OUT."""
    is_in_doubt: bool = False
    """Whether the cluster in front of a gateway did not say what became of it."""

    @property
    def code(self) -> ErrorCode:
        return ErrorCode.NONE if self.refusal is None else self.refusal.code

    @property
    def message(self) -> str | None:
        return None if self.refusal is None else self.refusal.message

    @property
    def is_carried_out(self) -> bool:
        """Whether the change was neither refused nor only validated."""
        return self.refusal is None and self.element is not None and not self.element.is_decision_only

    @property
    def delta(self) -> Delta:
        """The change of the image that its element makes."""
        return NO_CHANGE if self.element is None else self.element.delta

    def is_complete(self, shown: Image, committed: Image) -> bool:
        """Whether the change is complete: a node's image shows it, or the controller's image shows
        that others have undone it, so that nothing more will come of it.
        """
        return self.delta.is_complete(shown) or self.delta.is_overtaken(committed)

    @property
    def is_enforced(self) -> bool:
        """Whether a refusal by the policy is carried out. It is not where a verdict was due, and
        the change was passed without one.
        """
        if self.judgement is not None:
            return self.judgement.is_enforced
        return self.unjudged is None or not self.unjudged.was_due


def kind_of(resource_type: int) -> str:
    """Return the name of a resource type; `resource` for a type whose configs cannot be changed."""
    return KINDS.get(resource_type, "resource")


def kind_and_name(resource_type: int, name: str) -> tuple[str, str]:
    """Return the kind and the name of a resource. Broker ids are normalized as Java parses them:
    "+1", "01" and the digits of any script become "1".
    """
    kind = kind_of(resource_type)
    broker_id = java_int(name) if kind in NAMED_BY_BROKER_ID else None
    return kind, name if broker_id is None else str(broker_id)
