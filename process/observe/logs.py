"""Formats the log (`log.format`) as lines for people, or as one JSON object per line.

Rule: an event begins on its own line and names its node. If it concerns a request, it also names
the principal, client, address, software (KIP-511) and correlation id. Text from clients is escaped,
so it can neither break a line nor control a terminal.
"""

import json
import logging
import math
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Protocol

import trio

from ...protocol.header import RequestOrigin
from ...text import escaped

log = logging.getLogger("minicontroller")

NODE: ContextVar[int | None] = ContextVar("node", default=None)
"""The node whose task is running; tasks inherit it."""
ABOUT = "about"
"""The attribute of a log record that holds the fields returned by `about`."""
MAX_SAID = 255
"""Longer texts of clients are cut to this number of characters."""
HUMAN, JSON = "human", "json"
HUMAN_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class LoggedRequest(Protocol):
    """The fields of a request that its log lines show."""

    @property
    def client_id(self) -> str | None: ...
    @property
    def origin(self) -> RequestOrigin: ...
    @property
    def policy_api(self) -> str: ...


def about(context: LoggedRequest) -> dict[str, dict[str, Any]]:
    """Return the argument `extra` of a log call about a request."""
    return log_fields(
        principal=context.origin.principal,
        client=context.client_id,
        host=context.origin.client_host,
        software=context.origin.software,
        correlation=context.origin.correlation_id,
        api=context.policy_api,
    )


def log_fields(*, principal: str | None, **said: object) -> dict[str, dict[str, Any]]:
    """Return the fields of a log line. The principal is None for unauthenticated clients."""
    known = {name: value for name, value in said.items() if value is not None and value != ""}
    shown = {name: cut(value) if isinstance(value, str) else value for name, value in known.items()}
    return {ABOUT: {"principal": cut(principal), **shown}}


def cut(text: str | None) -> str | None:
    """Shorten a client's text for a log line."""
    return text if text is None or len(text) <= MAX_SAID else f"{text[:MAX_SAID]}..."


class HumanFormatter(logging.Formatter):
    """Formats a log line as time, level, logger, message, and the fields in brackets. Further
    lines, such as a traceback, are indented.
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
    """Formats an event as one JSON object, with any traceback in the field `trace`."""

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
    """Return a plain word unchanged, and any other text quoted and escaped."""
    text = "null" if value is None else str(value)
    return text if text.isascii() and text.isprintable() and not set(text) & set(" []\"'=\\") and text else ascii(text)


FORMATTERS: dict[str, type[logging.Formatter]] = {HUMAN: HumanFormatter, JSON: JsonFormatter}


SELDOM_SECONDS = 60.0


class RateLimitedLog:
    """Logs at most `lines` lines of one kind in SELDOM_SECONDS. The next line tells how many were
    left out.
    """

    def __init__(self, logger: logging.Logger, lines: int = 1) -> None:
        self._log = logger
        self._lines = lines
        self._said = 0
        self._until = -math.inf
        self._left_out = 0

    def leaves_out(self) -> bool:
        """Return whether a line would be left out now, and count it if so. Who asks before making
        the arguments of a line that comes often saves their cost.
        """
        now = trio.current_time()
        if now >= self._until:
            self._said, self._until = 0, now + SELDOM_SECONDS
        elif self._said >= self._lines:
            self._left_out += 1
            return True
        return False

    def say(self, level: int, text: str, *arguments: object, extra: Mapping[str, Any] | None = None) -> None:
        if self.leaves_out():
            return
        if self._left_out:
            text = f"{text} ({self._left_out} more were left out)"
        self._log.log(level, text, *arguments, extra=extra)
        self._said += 1
        self._left_out = 0


CLIENT_LINES = 20
"""The most lines of one kind that are logged in SELDOM_SECONDS."""


class ClientWarnings:
    """Limits warnings about clients, which can cause the same warning as often as they like. Each
    kind of warning is limited to CLIENT_LINES in SELDOM_SECONDS.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, RateLimitedLog] = {}

    def say(
        self, logger: logging.Logger, text: str, *arguments: object, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Log a warning. Its kind is `text` before the arguments are inserted."""
        if text not in self._kinds:
            self._kinds[text] = RateLimitedLog(logger, CLIENT_LINES)
        self._kinds[text].say(logging.WARNING, text, *arguments, extra=extra)


LINES_OF_A_KIND = 100
"""The most warnings and errors of one kind that a node logs in SELDOM_SECONDS."""


class KindLimit(logging.Filter):
    """Leaves out warnings and errors beyond LINES_OF_A_KIND in SELDOM_SECONDS, because programs
    that write to ZooKeeper can cause the same line as often as they like. The next line of the kind
    tells how many were left out. A kind is the text before the arguments are inserted, of one node.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[tuple[int | None, str], tuple[float, int]] = {}
        """When the time of each kind began, and how many of its lines have come since."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or not record.name.startswith(log.name):
            return True
        kind = (NODE.get(), str(record.msg))
        began, count = self._counts.get(kind, (-math.inf, 0))
        if record.created < began + SELDOM_SECONDS:
            self._counts[kind] = (began, count + 1)
            return count < LINES_OF_A_KIND
        self._counts[kind] = (record.created, 1)
        if count > LINES_OF_A_KIND:
            record.msg = f"{record.msg} ({count - LINES_OF_A_KIND} more were left out)"
        return True


KIND_LIMIT = KindLimit()

LIBRARIES = frozenset({"httpcore", "kazoo"})
"""The loggers of libraries that log on DEBUG what they send and receive, such as bearer tokens."""


def use_format(name: str) -> None:
    """Set the format of all log output, HUMAN or JSON, and limit the lines of each kind. What
    libraries send and receive is not logged on any level, also if a client changes the levels of
    their loggers.
    """
    for handler in logging.getLogger().handlers:
        handler.setFormatter(FORMATTERS[name]())
        handler.addFilter(_may_be_shown)
        handler.addFilter(KIND_LIMIT)


def _may_be_shown(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.INFO or record.name.partition(".")[0] not in LIBRARIES
