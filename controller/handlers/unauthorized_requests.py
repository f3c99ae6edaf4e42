"""Records requests for changes that are refused before any handler sees them, because they are
unauthorized, forged, or too large.

The controller records them like every other refusal; another node sends them to the controller. If
a refusal cannot be recorded, the client is still refused, and the node's log says that the audit
log lacks it.
"""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import trio

from ...admin.bounds import check_changes
from ...admin.changes import Change, Outcome
from ...cluster.errors import EarlyRefusal, Refusal, TooManyChanges
from ...network.serving.context import RequestContext
from ...network.serving.observers import RequestObserver
from ...process.observe.logs import about
from ...process.time_slices import carried_out
from ...protocol.api_keys import ApiKey
from ...protocol.dry_runs import is_dry_run
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from . import decided_elements
from .changes import record_refused, refused_one_by_one
from .controller_port import ControllerPort

log = logging.getLogger("minicontroller.audit")

PATIENCE_SECONDS = 5.0
"""The seconds that a node waits until the controller has recorded a refusal."""


class RefusedRequests(RequestObserver):
    """Shows the requests that a node refused as a whole, and records those for changes."""

    def __init__(self, port: ControllerPort) -> None:
        self._port = port

    def refused(self, ctx: RequestContext, request: Any, refusal: Refusal) -> None:
        self._port.decisions.refused(ctx, request, refusal)

    async def refused_early(self, ctx: RequestContext, request: Any, refusal: EarlyRefusal) -> None:
        if ctx.spec.changes is not None and self._port.audit is not None:
            await _record(self._port, ctx, request, refusal)


async def _record(port: ControllerPort, context: RequestContext, request: Any, refusal: Refusal) -> None:
    outcomes = await _refused(context, request, refusal)
    validate_only = getattr(request, "validate_only", False) or is_dry_run(request)
    with trio.move_on_after(PATIENCE_SECONDS) as scope:
        try:
            if port.controller.active is not None:
                await record_refused(port, context, outcomes, validate_only=validate_only)
            else:
                await _send_to_controller(context, outcomes, validate_only=validate_only)
        except Refusal as reason:
            log.warning("a refusal is not in the audit log: %s", reason.code.name, extra=about(context))
    if scope.cancelled_caught:
        log.warning("a refusal is not in the audit log: no controller recorded it in time", extra=about(context))


async def _refused(context: RequestContext, request: Any, refusal: Refusal) -> list[Outcome]:
    """Return a refused change for each element of a request, or one if there are too many."""
    try:
        check_changes(request)
    except TooManyChanges:
        return [Outcome(Change("", "resource"), refusal=refusal)]
    return await carried_out(refused_one_by_one(context, request, refusal))


async def _send_to_controller(context: RequestContext, outcomes: Sequence[Outcome], *, validate_only: bool) -> None:
    """Send the refusals to the controller, in an IncrementalAlterConfigs without resources."""
    route = context.dispatcher.routes.get(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    if route is None or route.ask_controller is None:
        return
    asking = msgspec.structs.replace(
        context,
        spec=route.spec,
        origin=msgspec.structs.replace(
            context.origin,
            api_key=context.api_key,
            decided=[decided_elements.encode(outcome) for outcome in outcomes],
        ),
    )
    await route.ask_controller(asking, IncrementalAlterConfigsRequest(validate_only=validate_only))
