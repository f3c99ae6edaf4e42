"""An API as a role serves it: its declaration, and the functions that answer its requests."""

from collections.abc import Callable
from types import GeneratorType
from typing import Any

import msgspec

from ...admin.spec import Spec
from ...process.time_slices import carried_out

Handler = Callable[[Any, Any, Any], Any]
"""`handle(node, context, request)` returns the response, steps towards it (`process/steps.py`), or
an awaitable of it. Steps and awaitables may end in any of the three. Raises Refusal to refuse the
whole request.

A handler whose work grows with the request or with the cluster returns steps, however little it has
to do this time: the dispatcher takes the first of them at once, and only what is left costs a task.
"""

Receiver = Callable[[Any, Any, Any, Handler], Any]
"""`receive(node, context, request, ask_controller)` answers a client's request on the node that
received it. `ask_controller(node, context, request)` runs the handler at the active controller.
"""


class ServedApi(Spec, frozen=True, kw_only=True, eq=False):
    """An API with its handler. Each module of `controller/handlers/` that answers an API ends in
    one.
    """

    handler: Handler
    receiver: Receiver | None = None
    """The part of a controller API that runs at the node that received the request. Without one the
    request is forwarded unchanged.
    """


def served(spec: Spec, handler: Handler, *, receiver: Receiver | None = None) -> ServedApi:
    """Return an API whose declaration stands in `admin/` with the functions that answer it here."""
    return ServedApi(**msgspec.structs.asdict(spec), handler=handler, receiver=receiver)


async def response_of(answer: Any) -> Any:
    """Return the response to which the result of a handler leads."""
    while not isinstance(answer, msgspec.Struct):
        answer = await (carried_out(answer) if isinstance(answer, GeneratorType) else answer)
    return answer
