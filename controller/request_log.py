"""How a request and an accident look in the log: complete enough to mend a bug, and never with a secret.

Rule: what may be a secret is left out by kind, not by guess: tokens of SASL, and every value of a config (the names stay). A
traceback keeps its lines; the texts of its exceptions are cut wherever they repeat such a value.
"""

import traceback
from collections.abc import Iterator
from typing import Any

import msgspec

from .context import RequestContext

HIDDEN = "[hidden]"
SECRET_FIELDS = frozenset({"auth_bytes", "value", "request_data", "request_principal"})
"""By Kafka's field names: SaslAuthenticate's token, the value of a config, and an Envelope, which may hold both."""
MAX_CHARACTERS = 2_000
"""Of one request in the log: a batch of ten thousand topics is no help to anyone."""


def describe_request(ctx: RequestContext, request: Any) -> str:
    """One line: who asked for what."""
    who = f"{ctx.principal or 'an unauthenticated caller'} (client {ctx.client_id!r} at {ctx.client_host})"
    return f"{type(request).__name__} v{ctx.api_version} of {who}: {_shorten(_show(request))}"


def describe_accident(error: BaseException, request: Any) -> str:
    """The traceback, without the secrets of the request."""
    text = "".join(traceback.format_exception(error))
    for secret in sorted(set(_secrets(request)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _show(value: Any) -> str:
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        shown = (
            f"{name}={HIDDEN if name in SECRET_FIELDS and field is not None else _show(field)}"
            for name, field in fields
        )
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, list):
        # No more than can be shown: a hostile array is not walked to its end.
        return f"[{', '.join(_show(element) for element in value[: MAX_CHARACTERS // 10])}]"
    return repr(value)


def _secrets(value: Any) -> Iterator[str]:
    """The texts of all secret fields, whole and in the parts in which a message may repeat them."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            field = getattr(value, name)
            if name not in SECRET_FIELDS:
                yield from _secrets(field)
            elif isinstance(field, bytes):
                yield from (part for part in field.decode("utf-8", "replace").split("\0") if len(part) > 2)
                yield repr(field)[2:-1]
            elif isinstance(field, str) and len(field) > 2:
                yield field
    elif isinstance(value, list):
        for element in value:
            yield from _secrets(element)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}... ({len(text)} characters)"
