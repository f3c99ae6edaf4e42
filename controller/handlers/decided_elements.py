"""What the node that received a request has decided of it already: told to the controller, whose
audit log is the only one.

Rule: while the audit log is on, no node decides anything alone. What the node that received a
request refuses, or does itself, travels to the controller in the header of the same request, is
recorded there in the same sequence as everything else, and is answered once it is.
"""

from ...protocol.error_codes import ErrorCode
from ...protocol.header import DecidedConfig, DecidedElement
from ..errors import Refusal
from ..requests.changes import kind_of
from ..requests.context import RequestContext
from .planning import PlannedChange
from .requested_changes import UNKNOWN_OPERATION, resource_type_of


def encode(change: PlannedChange) -> DecidedElement:
    """Encode a decision as the node that made it tells it to the controller."""
    before, after = change.levels or ({}, {})
    return DecidedElement(
        resource_type=resource_type_of(change.kind),
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


def decode(context: RequestContext, *, validate_only: bool) -> list[PlannedChange]:
    """Decode decisions that a node has told, as the controller records them."""
    return [
        PlannedChange(
            resource=element.resource_name,
            kind=kind_of(element.resource_type),
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
