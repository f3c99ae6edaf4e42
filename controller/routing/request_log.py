"""How a request and an accident look in the log: complete enough to mend a bug, and never with a
secret.

Rule: what may be a secret is left out by kind, not by guess: tokens of SASL, and every value of a
config (the names stay). A traceback keeps its lines; the texts of its exceptions are cut wherever
they repeat such a value. A stranger's request may be as large as it likes: no more of it is looked
at than is told.
"""

import traceback
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from ...audit.event import NOT_AUTHENTICATED, REDACTED
from ..observe.logs import cut
from ..observe.secrets import MAX_PARTS, redact
from ..requests.context import RequestContext

SECRET_FIELDS = frozenset({"auth_bytes", "value", "request_data", "request_principal"})
"""By Kafka's field names: SaslAuthenticate's token, the value of a config, and an Envelope, which
may hold both.
"""
MAX_CHARACTERS = 2_000
"""Of one request in the log: a batch of ten thousand topics is no help to anyone."""
MAX_TRACE = 50_000
"""Characters of an accident."""
MAX_VALUES = 2_000
"""Of a request whose secrets are looked for in the texts of exceptions; of a larger one these are
hidden altogether.
"""
MIN_SECRET_CHARACTERS = 3
"""Shorter parts of a token or of a value are not looked for in a traceback."""


def describe_request(ctx: RequestContext, request: Any) -> str:
    """Return a line that says who asked for what."""
    who = (
        f"{cut(ctx.origin.principal) or NOT_AUTHENTICATED} (client {cut(ctx.client_id)!r} at {ctx.origin.client_host})"
    )
    return f"{type(request).__name__} v{ctx.api_version} of {who}: {_show(request)}"


def describe_accident(error: BaseException, request: Any) -> str:
    """Return a traceback without the secrets of the request; without the texts of its exceptions
    if these are too long, or the secrets too many to look for.
    """
    secrets = _secrets(request)
    text = "" if secrets is None else "".join(traceback.format_exception(error))
    if secrets is not None and len(text) <= MAX_TRACE:
        text = redact(text, secrets, at_least=MIN_SECRET_CHARACTERS)
    else:
        text = REDACTED
    return _shorten("\n".join(_without_texts(error)), MAX_TRACE) if text == REDACTED else text


def _show(value: Any) -> str:
    shown, length = list[str](), 0
    for piece in _pieces(value):
        shown.append(piece)
        length += len(piece)
        if length > MAX_CHARACTERS:
            break
    return _shorten("".join(shown), MAX_CHARACTERS)


def _pieces(value: Any) -> Iterator[str]:
    """Yield the text of a value bit by bit: whoever has enough takes no more."""
    if isinstance(value, msgspec.Struct):
        yield f"{type(value).__name__}("
        for number, name in enumerate(value.__struct_fields__):
            field = getattr(value, name)
            yield f"{', ' if number else ''}{name}="
            if name in SECRET_FIELDS and field is not None:
                yield REDACTED
            else:
                yield from _pieces(field)
        yield ")"
    elif isinstance(value, list):
        yield "["
        for number, element in enumerate(value):
            if number:
                yield ", "
            yield from _pieces(element)
        yield "]"
    elif isinstance(value, str | bytes):
        yield repr(value[:MAX_CHARACTERS])
    else:
        yield repr(value)


def _secrets(request: Any) -> set[str] | None:
    """Return the texts of all secret fields, whole and in the parts in which a message may repeat
    them; None if they are too many to look for.
    """
    values = list(islice(_values("", request), MAX_VALUES + 1))
    secrets = set[str]()
    for name, value in values:
        texts = _texts(value) if name in SECRET_FIELDS else ()
        for secret in texts:
            if MIN_SECRET_CHARACTERS <= len(secret) <= MAX_TRACE:
                secrets.add(secret)
            if len(secrets) > MAX_PARTS:
                return None
    return secrets if len(values) <= MAX_VALUES else None


def _values(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value of a request that holds no others, with the name of its field."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _values(field, getattr(value, field))
    elif isinstance(value, list):
        for element in value:
            yield from _values(name, element)
    else:
        yield name, value


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a secret: a value of a config, or the parts of a token and all of it."""
    if isinstance(value, bytes):
        yield from value.decode("utf-8", "replace").split("\0")
        yield repr(value)[2:-1]
    elif isinstance(value, str):
        yield value


def _without_texts(error: BaseException) -> Iterator[str]:
    """Yield the types and places of an exception and its causes, without their texts."""
    yield "".join(traceback.format_tb(error.__traceback__)).rstrip()
    yield f"{type(error).__name__}: {REDACTED}"
    for other in (*getattr(error, "exceptions", ()), error.__cause__ or error.__context__):
        if other is not None:
            yield from _without_texts(other)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
