"""The one hook for each request and its response.

Metrics, the request log, and the records of refused requests are observers of a dispatcher, and so
may be a journal of all requests, or rules by which some fail on purpose. An observer overrides the
methods that it needs; the dispatcher calls no others, so that those cost nothing.

Rule: `before` and `after` may wait and decide the answer, and where an observer has one of them
each request costs a task. `refused_early` may wait. The others neither wait nor change anything.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...cluster.errors import EarlyRefusal, Refusal
from ...protocol.schema import WireStruct
from .context import RequestContext


class RequestObserver:
    """Sees the requests that were decoded, in the order of the methods below. Requests inside
    others (Envelope) are seen as well.

    A response may have rows that are encoded already (`bytes`), in the version of the context.
    """

    async def before(self, ctx: RequestContext, request: Any) -> WireStruct | None:
        """Return a response instead of the handler's, or None to let the handler answer. Raises
        Refusal to refuse the whole request.
        """

    def refused(self, ctx: RequestContext, request: Any, refusal: Refusal) -> None:
        """Learn that the request is refused as a whole, and why. An unexpected error counts as
        UNKNOWN_SERVER_ERROR.
        """

    def failed(self, ctx: RequestContext, request: Any, error: Exception) -> None:
        """Learn of an unexpected error, which is a defect of this program."""

    async def refused_early(self, ctx: RequestContext, request: Any, refusal: EarlyRefusal) -> None:
        """Learn that the request is refused and that no handler saw it. The answer waits."""

    async def after(self, ctx: RequestContext, request: Any, response: WireStruct) -> WireStruct:  # noqa: ARG002
        """Return the response that is sent: this one, which may be changed, or another."""
        return response

    def answered(self, ctx: RequestContext, request: Any, response: Any, now: float) -> None:
        """Learn of a response that was encoded at this time, by the clock of `ctx.arrived`.
        `ctx.notes` have the first error code in it, and how long its client has to wait.
        """


def overridden(observers: Sequence[RequestObserver], method: Callable[..., Any]) -> tuple[Any, ...]:
    name = method.__name__
    return tuple(getattr(each, name) for each in observers if getattr(type(each), name) is not method)
