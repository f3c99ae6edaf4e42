"""Has the active controller decide what administrators change of groups: the policy judges it, and
the audit log records it. Nothing is written to the store, because the coordinator keeps offsets.

What members commit is decided by nobody.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...admin.changes import Change
from ...cluster.entity_paths import Value, value_of
from ...cluster.image import Image
from ...cluster.znodes.groups import group_path
from ...controller.handlers.controller_port import ControllerPort
from ...controller.handlers.entity_changes import change_entities
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode


def is_judged(port: ControllerPort) -> bool:
    return port.policy is not None or port.audit is not None


async def decided(
    port: ControllerPort, context: RequestContext, request: Any, changes: Sequence[Change]
) -> Mapping[str, ErrorCode]:
    """Decide the changes of a request at the active controller, and return the codes of their
    groups.
    """
    outcomes = await change_entities(port, context, request, changes, change_of=_itself, plan=_unchanged, is_done=True)
    return {outcome.change.resource: outcome.code for outcome in outcomes}


def _itself(change: Change) -> Change:
    return change


def _unchanged(image: Image, change: Change) -> tuple[str, Value]:
    """Return what the store says of a group now, so that nothing is written."""
    path = group_path(change.resource)
    return path, value_of(image, path)[0]
