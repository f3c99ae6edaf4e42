"""Encodes decisions of the node that received a request, for their way to the active controller.

There is one audit log, that of the active controller, so no node decides alone while it is on. What
the receiving node refuses, or carries out itself, goes to the controller in the header of the same
request. The client is answered after the controller has recorded it in sequence with everything
else.
"""

from ...admin.changes import ENTITY_KINDS, Change, Outcome, kind_of
from ...admin.requested_changes import UNKNOWN_OPERATION, resource_type_of
from ...cluster.errors import Refusal
from ...protocol.error_codes import ErrorCode
from ...protocol.header import DecidedConfig, DecidedElement


def encode(outcome: Outcome) -> DecidedElement:
    """Encode a decision of this node for the controller."""
    before, after = outcome.levels or ({}, {})
    return DecidedElement(
        resource_type=_number_of(outcome.change.kind),
        resource_name=outcome.change.resource,
        error_code=outcome.code,
        error_message=outcome.message,
        configs=[
            DecidedConfig(
                name=name,
                value=value,
                kind=(outcome.change.operation_kinds or {}).get(name, ""),
                before=before.get(name, ""),
                after=after.get(name, ""),
            )
            for name, value in (outcome.change.operations or {}).items()
        ],
    )


def _number_of(kind: str) -> int:
    return -1 - ENTITY_KINDS.index(kind) if kind in ENTITY_KINDS else resource_type_of(kind)


def _kind_of(number: int) -> str:
    """Return the kind of a change by its number: negative ones are of ENTITY_KINDS, which have no
    number in Kafka.
    """
    return ENTITY_KINDS[-1 - number] if -len(ENTITY_KINDS) <= number < 0 else kind_of(number)


def change_of(element: DecidedElement) -> Change:
    """Decode what was requested of another node."""
    return Change(
        element.resource_name,
        _kind_of(element.resource_type),
        {config.name: config.value for config in element.configs},
        {config.name: config.kind or UNKNOWN_OPERATION for config in element.configs},
    )


def decode(element: DecidedElement, *, validate_only: bool) -> Outcome:
    """Decode another node's decision, for the controller to record."""
    return Outcome(
        change_of(element),
        refusal=Refusal(ErrorCode(element.error_code), element.error_message) if element.error_code else None,
        levels=(
            {config.name: config.before for config in element.configs if config.before},
            {config.name: config.after for config in element.configs if config.after},
        ),
        is_done=not element.error_code and not validate_only,
    )
