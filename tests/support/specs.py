"""Declarations of APIs for tests that put handlers of their own in the place of the real ones."""

from collections.abc import Mapping

import msgspec

from minicontroller.controller.apis import APIS
from minicontroller.network.serving.api import Handler, ServedApi
from minicontroller.protocol.api_keys import ApiKey


def specs_with(handlers: Mapping[ApiKey, ServedApi | Handler]) -> list[ServedApi]:
    """The declarations of these APIs. What stands as a mere handler takes the place of the real one
    at once: nothing is done where the request is received, and no metadata is waited for.
    """
    return [
        handler
        if isinstance(handler, ServedApi)
        else msgspec.structs.replace(APIS[key], handler=handler, receiver=None, waits_for_update=False)
        for key, handler in handlers.items()
    ]
