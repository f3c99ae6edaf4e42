"""An API as a role serves it: its declaration, and the functions that answer its requests."""

from collections.abc import Callable
from functools import partial
from types import GeneratorType
from typing import Any, Generic, TypeVarTuple, cast

import msgspec

from ...admin.spec import Spec
from ...process.time_slices import carried_out

Handler = Callable[[Any, Any], Any]
"""`handle(context, request)` returns the response, steps towards it (`process/steps.py`), or an
awaitable of it. Steps and awaitables may end in any of the three. Raises Refusal to refuse the
whole request.

A handler whose work grows with the request or with the cluster returns steps, however little it has
to do this time: the dispatcher takes the first of them at once, and only what is left costs a task.
"""

Receiver = Callable[[Any, Any, Handler], Any]
"""`receive(context, request, ask_controller)` answers a client's request on the node that received
it. `ask_controller` runs the handler at the active controller.
"""


Parts = TypeVarTuple("Parts")
"""The parts of its node that a handler takes, in front of the context and the request."""


class ServedApi(Spec, Generic[*Parts], frozen=True, kw_only=True, eq=False):
    """An API with its handler. Each module of `controller/handlers/` that answers an API ends in
    one. The handler and the receiver have the types Handler and Receiver once they are bound to
    the parts of a node.
    """

    handler: Callable[[*Parts, Any, Any], Any]
    receiver: Callable[[*Parts, Any, Any, Handler], Any] | None = None
    """The part of a controller API that runs at the node that received the request. Without one the
    request is forwarded unchanged.
    """

    def bound(self, *parts: *Parts) -> "ServedApi[()]":
        bind = cast("Callable[..., Handler]", partial)
        bound = {
            "handler": bind(self.handler, *parts),
            "receiver": None if self.receiver is None else bind(self.receiver, *parts),
        }
        return ServedApi[()](**msgspec.structs.asdict(self) | bound)


def served(
    spec: Spec,
    handler: Callable[[*Parts, Any, Any], Any],
    *,
    receiver: Callable[[*Parts, Any, Any, Handler], Any] | None = None,
) -> ServedApi[*Parts]:
    """Return an API whose declaration stands in `admin/` with the functions that answer it here."""
    return ServedApi(**msgspec.structs.asdict(spec), handler=handler, receiver=receiver)


async def response_of(answer: Any) -> Any:
    while not isinstance(answer, msgspec.Struct):
        answer = await (carried_out(answer) if isinstance(answer, GeneratorType) else answer)
    return answer
