"""Formats requests and unexpected exceptions for the log, with enough to repair a defect and
without secrets.

Rule: whole kinds of fields are redacted, so no value has to be recognized as a secret: SASL tokens
and all values of configs, but not their names. A traceback keeps its lines, and its exceptions'
texts are redacted where they repeat such a value. The work for one request is bounded, however
large an unauthenticated client makes it.
"""

import logging
import traceback
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from ...audit.event import NOT_AUTHENTICATED, REDACTED
from ...process.observe.logs import about, cut
from ...process.observe.secrets import MAX_PARTS, redact
from .context import RequestContext
from .observers import RequestObserver

log = logging.getLogger("minicontroller.answer")

SECRET_FIELDS = frozenset(
    {
        *("auth_bytes", "value", "request_data", "request_principal", "salt", "salted_password", "hmac"),
        *("records", "metadata", "assignment"),
    }
)
"""The names of secret fields, as Kafka has them: the token of SaslAuthenticate, the value of a
config, a SCRAM password, the HMAC of a delegation token, the parts of an Envelope, which may
contain all of these, what a client produces, and what members of a group tell each other.
"""
MAX_CHARACTERS = 2_000
"""The most characters that the log shows of one request."""
MAX_TRACE = 50_000
"""The most characters that the log shows of one traceback."""
MAX_VALUES = 2_000
"""The most values of a request that are searched for secrets. If it has more, the texts of
exceptions are redacted as a whole.
"""
MIN_SECRET_CHARACTERS = 3
"""The length below which parts of a token or value are not redacted in a traceback."""


class RequestLog(RequestObserver):
    def failed(self, ctx: RequestContext, request: Any, error: Exception) -> None:
        log.error(
            "%s failed:\n%s",
            describe_request(ctx, request),
            describe_unexpected_error(error, request),
            extra=about(ctx),
        )


def describe_request(ctx: RequestContext, request: Any) -> str:
    """Return a line that names the client and shows its request."""
    who = (
        f"{cut(ctx.origin.principal) or NOT_AUTHENTICATED} (client {cut(ctx.client_id)!r} at {ctx.origin.client_host})"
    )
    return f"{type(request).__name__} v{ctx.header.api_version} of {who}: {_show(request)}"


def describe_unexpected_error(error: BaseException, request: Any) -> str:
    """Return a traceback without the secrets of the request. The texts of its exceptions are left
    out if they are too long, or if there are too many secrets to search for.
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
    """Yield the text of a value piece by piece, so that a caller can stop when it has enough."""
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
    """Return the texts of all secret fields, whole and in the parts that a message may repeat, or
    None if there are too many to search for.
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
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _values(field, getattr(value, field))
    elif isinstance(value, list):
        for element in value:
            yield from _values(name, element)
    else:
        yield name, value


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a secret: the value of a config, or a token whole and in its parts."""
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
