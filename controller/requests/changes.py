"""Changes that requests ask for, and what was decided about them.

Each is one element of one request. Handlers plan them, the audit log and the page show them;
nothing here decides or writes anything.
"""

from collections.abc import Mapping

import msgspec

from ...policies.configs.values import java_int
from ...policies.interface import JudgedRequest
from ...policies.verdict import Verdict
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..metadata.image import Image

KINDS: Mapping[int, str] = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.BROKER_LOGGER: "logger",
}
"""The words for those types of resources whose configs can be changed."""
NAMED_BY_BROKER_ID = frozenset({"broker", "logger"})


class RequestedChange(msgspec.Struct, frozen=True):
    """One element of a request as the client sent it, before anything is decided."""

    resource: str
    """The name of the topic, broker or logger; empty for a topic that is named by its id."""
    kind: str = "topic"
    """`topic`, `broker` or `logger`."""
    operations: Mapping[str, str | None] | None = None
    """For configs: the keys that the request names, with their operands, None to delete one."""
    operation_kinds: Mapping[str, str] | None = None
    """The kind of operation on each key of `operations`: `set`, `delete`, `append`, `subtract`."""


class Judgement(msgspec.Struct):
    """The request that a policy was asked about, and its verdict, if there is a policy."""

    request: JudgedRequest
    image: Image
    """The state of the cluster that the policy sees."""
    verdict: Verdict | None = None


class Change(msgspec.Struct):
    """One element of a request, and what was decided about it."""

    resource: str = ""
    """The name of the topic, broker or logger."""
    kind: str = "topic"
    """`topic`, `broker` or `logger`; `resource` stands for a request as a whole."""
    refusal: Refusal | None = None
    operations: Mapping[str, str | None] | None = None
    """For configs: the keys that the request names, with their operands, None to delete one."""
    operation_kinds: Mapping[str, str] | None = None
    """The kind of operation on each key of `operations`: `set`, `delete`, `append`, `subtract`."""
    levels: tuple[Mapping[str, str], Mapping[str, str]] | None = None
    """The levels of the loggers that the request names, before and after it."""
    is_done: bool = False
    """Whether the node that received the request has carried it out: there is nothing to write."""
    judgement: Judgement | None = None
    """None where no policy was asked, and none would have been."""
    sequence: int = 0
    """The number of its event in the audit log; 0 while it has none."""
    is_late: bool = False
    """Whether it was carried out and its client got REQUEST_TIMED_OUT all the same."""

    @property
    def code(self) -> ErrorCode:
        return ErrorCode.NONE if self.refusal is None else self.refusal.code

    @property
    def message(self) -> str | None:
        return None if self.refusal is None else self.refusal.message


def kind_of(resource_type: int) -> str:
    """Return the word for a type of resource; `resource` for any that Kafka may add."""
    return KINDS.get(resource_type, "resource")


def kind_and_name(resource_type: int, name: str) -> tuple[str, str]:
    """Return the kind and the name of a resource. The name of a broker or logger is a broker id,
    which is written in one way only: "+1", "01" and digits of any script all become "1".
    """
    kind = kind_of(resource_type)
    broker_id = java_int(name) if kind in NAMED_BY_BROKER_ID else None
    return kind, name if broker_id is None else str(broker_id)
