"""The handlers of all APIs, and `SPECS`, which has the declaration of each by its key.

An API is the module of this package that is named after it and ends in `API = Spec(...)`; there is
no list to keep. It is advertised, and a request of any other API ends the connection.

A handler that reads returns its response at once and costs no task. One that has to wait returns an
awaitable.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from ...protocol.api_keys import ApiKey
from ..requests.spec import Spec


def _declared() -> Iterator[Spec]:
    for module in iter_modules(__path__):
        declaration = getattr(import_module(f".{module.name}", __name__), "API", None)
        if isinstance(declaration, Spec):
            yield declaration


SPECS: Mapping[ApiKey, Spec] = {spec.key: spec for spec in sorted(_declared(), key=lambda spec: spec.key)}
