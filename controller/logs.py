"""How the log looks (`log.format`): lines for people, or one JSON object a line for machines.

Rule: an event begins on a line of its own and says who it is about: the node whose task speaks, and, where there is a request,
its principal, client, address, software (KIP-511) and correlation id. What strangers chose never breaks a line or an escape.
"""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .context import RequestContext

NODE: ContextVar[int | None] = ContextVar("node", default=None)
"""The node whose task is running; tasks inherit it."""
ABOUT = "about"
"""The attribute of a log record that holds what `about` says."""
HUMAN, JSON = "human", "json"
HUMAN_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def about(context: "RequestContext") -> dict[str, dict[str, Any]]:
    """For `extra=` of a log call: the request that it is about."""
    said = {
        "principal": context.principal or "User:ANONYMOUS",
        "client": context.client_id,
        "host": context.client_host,
        "software": context.software or None,
        "correlation": context.correlation_id,
        "api": context.policy_api,
    }
    return {ABOUT: {name: value for name, value in said.items() if value is not None}}


class HumanFormatter(logging.Formatter):
    """Time, level, logger, the message, then in brackets whom it is about. A trace follows, indented."""

    def __init__(self) -> None:
        super().__init__(HUMAN_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        said = {} if NODE.get() is None else {"node": NODE.get()}
        said |= getattr(record, ABOUT, {})
        first, _, rest = text.partition("\n")
        tail = f" [{' '.join(f'{name}={_shown(value)}' for name, value in said.items())}]" if said else ""
        return first + tail + ("\n    " + rest.replace("\n", "\n    ") if rest else "")


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
    text = str(value)
    return text if text.isascii() and text.isprintable() and not set(text) & set(" []\"'=\\") and text else ascii(text)


FORMATTERS: dict[str, type[logging.Formatter]] = {HUMAN: HumanFormatter, JSON: JsonFormatter}


def use_format(name: str) -> None:
    """From now on everything that is logged looks like this."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(FORMATTERS[name]())
