"""An API as a role serves it: its declaration, and the functions that answer its requests."""

from collections.abc import Callable
from typing import Any

from ...admin.spec import Spec

Handler = Callable[[Any, Any, Any], Any]
"""`handle(node, context, request)` returns the response at once, or an awaitable of it. Raises
Refusal to refuse the whole request.
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
    declared = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return ServedApi(**declared, handler=handler, receiver=receiver)
