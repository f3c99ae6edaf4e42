"""How the log looks (`log.format`): lines for people, or one JSON object a line for machines.

Rule: an event begins on a line of its own and says who it is about: the node whose task speaks, and, where there is a request,
its principal, client, address, software (KIP-511) and correlation id. What strangers chose never breaks a line or an escape.
"""

import json
import logging
import math
import struct
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import trio

from ..policies.escaping import escaped
from ..protocol import registry

if TYPE_CHECKING:
    from .context import RequestContext
    from .security.caller import Caller

log = logging.getLogger("minicontroller")

NODE: ContextVar[int | None] = ContextVar("node", default=None)
"""The node whose task is running; tasks inherit it."""
ABOUT = "about"
"""The attribute of a log record that holds what `about` says."""
MAX_CLIENT_ID_BYTES = 255
"""Of what is told of a stranger whose request is not understood."""
START = struct.Struct(">hhi")
"""Of a request: API key, version, correlation id."""
NAMES = {int(key): api.name for key, api in registry.APIS.items()}
HUMAN, JSON = "human", "json"
HUMAN_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def about(context: "RequestContext") -> dict[str, dict[str, Any]]:
    """For `extra=` of a log call: the request that it is about, as its client sent it."""
    return _about(
        principal=context.principal,
        client=context.client_id,
        host=context.client_host,
        software=context.software,
        correlation=context.client_correlation_id,
        api=context.policy_api,
    )


def about_frame(caller: "Caller", frame: bytes) -> dict[str, dict[str, Any]]:
    """A request that could not be read, as far as it can be: its header begins as all do."""
    if len(frame) < START.size:
        return about_caller(caller)
    api_key, _, correlation_id = START.unpack_from(frame)
    return _about(
        principal=caller.principal,
        client=client_id(frame),
        host=caller.host,
        software=caller.software,
        correlation=correlation_id,
        api=NAMES.get(api_key, f"API {api_key}"),
    )


def about_caller(caller: "Caller") -> dict[str, dict[str, Any]]:
    """A connection."""
    return _about(principal=caller.principal, host=caller.host, software=caller.software)


def _about(*, principal: str | None, **said: object) -> dict[str, dict[str, Any]]:
    """Whoever has not authenticated has no principal, and the log says so."""
    known = {name: value for name, value in said.items() if value is not None and value != ""}
    return {ABOUT: {"principal": principal, **known}}


def client_id(frame: bytes) -> str | None:
    """It stands at the same place in every header that has one; the beginning of a long one is enough to tell whose it is."""
    begin = START.size + 2
    size = int.from_bytes(frame[START.size : begin], signed=True)
    if not 0 <= size <= len(frame) - begin:
        return None
    return frame[begin : begin + min(size, MAX_CLIENT_ID_BYTES)].decode("utf-8", "replace")


class HumanFormatter(logging.Formatter):
    """Time, level, logger, the message, then in brackets whom it is about. What has more lines (a trace) follows, each indented."""

    def __init__(self) -> None:
        super().__init__(HUMAN_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        said = {} if NODE.get() is None else {"node": NODE.get()}
        said |= getattr(record, ABOUT, {})
        first, *rest = map(escaped, text.split("\n"))
        tail = f" [{' '.join(f'{name}={_shown(value)}' for name, value in said.items())}]" if said else ""
        return "\n    ".join((first + tail, *rest))


class JsonFormatter(logging.Formatter):
    """One object a line; a trace is a text in it."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if NODE.get() is not None:
            event["node"] = NODE.get()
        event |= getattr(record, ABOUT, {})
        if record.exc_info:
            event["trace"] = self.formatException(record.exc_info)
        return json.dumps(event)


def _shown(value: object) -> str:
    """A word as it is, anything else in quotes and escaped: it may be a stranger's."""
    text = "null" if value is None else str(value)
    return text if text.isascii() and text.isprintable() and not set(text) & set(" []\"'=\\") and text else ascii(text)


FORMATTERS: dict[str, type[logging.Formatter]] = {HUMAN: HumanFormatter, JSON: JsonFormatter}


SELDOM_SECONDS = 60.0


class Seldom:
    """Says one line of many alike: not again within a minute, and then how many were left out."""

    def __init__(self, logger: logging.Logger) -> None:
        self._log = logger
        self._not_before = -math.inf
        self._left_out = 0

    def say(self, level: int, text: str, *arguments: object, extra: Mapping[str, Any] | None = None) -> None:
        now = trio.current_time()
        if now < self._not_before:
            self._left_out += 1
            return
        if self._left_out:
            text = f"{text} ({self._left_out} times more before)"
        self._log.log(level, text, *arguments, extra=extra)
        self._not_before = now + SELDOM_SECONDS
        self._left_out = 0


def use_format(name: str) -> None:
    """From now on everything that is logged looks like this."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(FORMATTERS[name]())
