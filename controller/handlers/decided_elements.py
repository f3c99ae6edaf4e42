"""Encodes decisions of the node that received a request, for their way to the active controller.

There is one audit log, that of the active controller, so no node decides alone while it is on. What
the receiving node refuses, or carries out itself, goes to the controller in the header of the same
request. The client is answered after the controller has recorded it in sequence with everything
else.
"""

from ...admin.changes import ENTITY_KINDS, kind_of
from ...admin.requested_changes import UNKNOWN_OPERATION, resource_type_of
from ...cluster.errors import Refusal
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.header import DecidedConfig, DecidedElement
from .planning import PlannedChange


def encode(change: PlannedChange) -> DecidedElement:
    """Encode a decision of this node for the controller."""
    before, after = change.levels or ({}, {})
    return DecidedElement(
        resource_type=_number_of(change.kind),
        resource_name=change.resource,
        error_code=change.code,
        error_message=change.message,
        configs=[
            DecidedConfig(
                name=name,
                value=value,
                kind=(change.operation_kinds or {}).get(name, ""),
                before=before.get(name, ""),
                after=after.get(name, ""),
            )
            for name, value in (change.operations or {}).items()
        ],
    )


def _number_of(kind: str) -> int:
    return -1 - ENTITY_KINDS.index(kind) if kind in ENTITY_KINDS else resource_type_of(kind)


def _kind_of(number: int) -> str:
    """Return the kind of a change by its number: negative ones are of ENTITY_KINDS, which have no
    number in Kafka.
    """
    return ENTITY_KINDS[-1 - number] if -len(ENTITY_KINDS) <= number < 0 else kind_of(number)


def decode(context: RequestContext, *, validate_only: bool) -> list[PlannedChange]:
    """Decode another node's decisions, for the controller to record."""
    return [
        PlannedChange(
            resource=element.resource_name,
            kind=_kind_of(element.resource_type),
            refusal=Refusal(ErrorCode(element.error_code), element.error_message) if element.error_code else None,
            operations={config.name: config.value for config in element.configs},
            operation_kinds={config.name: config.kind or UNKNOWN_OPERATION for config in element.configs},
            levels=(
                {config.name: config.before for config in element.configs if config.before},
                {config.name: config.after for config in element.configs if config.after},
            ),
            is_done=not element.error_code and not validate_only,
        )
        for element in context.origin.decided
    ]
