"""How the log looks (`log.format`): lines for people, or one JSON object a line for machines.

Rule: an event begins on a line of its own and says who it is about: the node whose task speaks,
and, where there is a request, its principal, client, address, software (KIP-511) and correlation
id. What strangers chose never breaks a line or an escape.
"""

import json
import logging
import math
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Protocol

import trio

from ...protocol.header import REQUEST_START, RequestOrigin, client_id_of
from ...protocol.registry import KAFKA
from ...text.escaping import escaped
from ..security.caller import Caller

log = logging.getLogger("minicontroller")

NODE: ContextVar[int | None] = ContextVar("node", default=None)
"""The node whose task is running; tasks inherit it."""
ABOUT = "about"
"""The attribute of a log record that holds what `about` says."""
MAX_SAID = 255
"""Characters of a text of a client's: enough to tell whose it is."""
HUMAN, JSON = "human", "json"
HUMAN_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class LoggedRequest(Protocol):
    """What a log line tells of a request."""

    @property
    def client_id(self) -> str | None: ...
    @property
    def origin(self) -> RequestOrigin: ...
    @property
    def policy_api(self) -> str: ...


def about(context: LoggedRequest) -> dict[str, dict[str, Any]]:
    """Return `extra` for a log call about a request, as its client sent it."""
    return _about(
        principal=context.origin.principal,
        client=context.client_id,
        host=context.origin.client_host,
        software=context.origin.software,
        correlation=context.origin.correlation_id,
        api=context.policy_api,
    )


def about_frame(caller: Caller, frame: bytes) -> dict[str, dict[str, Any]]:
    """Return `extra` for a log call about a request that could not be read, as far as its header
    can be.
    """
    if len(frame) < REQUEST_START.size:
        return about_caller(caller)
    api_key, _, correlation_id = REQUEST_START.unpack_from(frame)
    return _about(
        principal=caller.principal,
        client=client_id_of(frame),
        host=caller.host,
        software=caller.software,
        correlation=correlation_id,
        api=KAFKA.name(api_key),
    )


def about_caller(caller: Caller) -> dict[str, dict[str, Any]]:
    """Return `extra` for a log call about a connection."""
    return _about(principal=caller.principal, host=caller.host, software=caller.software)


def _about(*, principal: str | None, **said: object) -> dict[str, dict[str, Any]]:
    """Return the fields of a log line; whoever has not authenticated has no principal."""
    known = {name: value for name, value in said.items() if value is not None and value != ""}
    told = {name: cut(value) if isinstance(value, str) else value for name, value in known.items()}
    return {ABOUT: {"principal": cut(principal), **told}}


def cut(text: str | None) -> str | None:
    """Shorten a client's text for a log line."""
    return text if text is None or len(text) <= MAX_SAID else f"{text[:MAX_SAID]}..."


class HumanFormatter(logging.Formatter):
    """Formats a log line as time, level, logger, message, then in brackets whom it is about.
    Further lines (a trace) follow, each indented.
    """

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
    """Formats a log line as one JSON object, with a trace as a text in it."""

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
    """Write a word as it is, and anything else, which may be a stranger's, in quotes
    and escaped.
    """
    text = "null" if value is None else str(value)
    return text if text.isascii() and text.isprintable() and not set(text) & set(" []\"'=\\") and text else ascii(text)


FORMATTERS: dict[str, type[logging.Formatter]] = {HUMAN: HumanFormatter, JSON: JsonFormatter}


SELDOM_SECONDS = 60.0


class RateLimitedLog:
    """Says a few lines of many alike in a minute, and with the next one how many were left out."""

    def __init__(self, logger: logging.Logger, lines: int = 1) -> None:
        self._log = logger
        self._lines = lines
        self._said = 0
        self._until = -math.inf
        self._left_out = 0

    def say(self, level: int, text: str, *arguments: object, extra: Mapping[str, Any] | None = None) -> None:
        now = trio.current_time()
        if now >= self._until:
            self._said, self._until = 0, now + SELDOM_SECONDS
        elif self._said >= self._lines:
            self._left_out += 1
            return
        if self._left_out:
            text = f"{text} ({self._left_out} times more before)"
        self._log.log(level, text, *arguments, extra=extra)
        self._said += 1
        self._left_out = 0


CLIENT_LINES = 20
"""How many lines of one kind are logged in SELDOM_SECONDS."""


class ClientWarnings:
    """Limits the warnings about what clients do, which may repeat it as often as they like: of each
    kind of warning a few are logged at once, and then one a minute.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, RateLimitedLog] = {}

    def say(
        self, logger: logging.Logger, text: str, *arguments: object, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Log a warning; its kind is the text as it is before its arguments."""
        if text not in self._kinds:
            self._kinds[text] = RateLimitedLog(logger, CLIENT_LINES)
        self._kinds[text].say(logging.WARNING, text, *arguments, extra=extra)


def use_format(name: str) -> None:
    """Log everything in this format from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(FORMATTERS[name]())
