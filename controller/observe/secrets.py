"""Redaction: `[hidden]` stands for each secret in the log, the audit log, the metrics, the page.

Rule: a value is a secret if its key is a password's, or if nobody knows the key: the keys of
plugins and those of one listener, for instance. Messages lose the same values wherever they quote
them, whole, escaped or in parts. Policies get redacted configs, so that their messages can be shown
as they are.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from ...audit.event import REDACTED
from ..config.keys import KEYS
from ..config.log_levels import LEVELS
from ..config.topic_configs import TOPIC_KEYS
from ..errors import LEFT_OUT

Text = TypeVar("Text", str, str | None)

PUBLIC_KEYS = frozenset(TOPIC_KEYS) | {name for name, key in KEYS.items() if not key.is_sensitive}
MIN_SECRET_CHARACTERS = 4
"""Shorter values are not looked for in texts: they occur in any text by chance."""
WHOLE_CHARACTERS = 200
"""Texts shorter than this are never cut, so no half of a secret stands at an end of one."""
QUOTED = re.compile(r""""((?:[^"\\]|\\.)*+)"?|'((?:[^'\\]|\\.)*+)'?""", re.DOTALL)
"""The parts of a value that stand between quotes, as a password does in a JAAS configuration."""
MAX_PARTS = 500
"""The most parts of secrets that are looked for; beside more of them a text is not shown at all."""


def redact_configs(configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs of a topic or of a broker with the values redacted that may be secrets."""
    if not configs:
        return {}
    return {name: value if name in PUBLIC_KEYS or value is None else REDACTED for name, value in configs.items()}


def redact_configs_of(kind: str, configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs of a kind of resource, redacted. The level of a "logger" is public; a text
    that is no level may be a secret.
    """
    if kind != "logger":
        return redact_configs(configs)
    return {name: value if value is None or value in LEVELS else REDACTED for name, value in configs.items()}


def configs_for_policies(configs: Mapping[str, Text]) -> Mapping[str, Text]:
    """Return a read-only view of configs, redacted; `configs` itself if nothing in it is secret."""
    if all(name in PUBLIC_KEYS for name in configs):
        return configs
    return MappingProxyType(redact_configs(configs))


def secret_values(operations: Mapping[str, str | None] | None) -> Collection[str]:
    """Return the requested values that may be secrets, which a refusal may quote."""
    return {
        value for name, value in (operations or {}).items() if name not in PUBLIC_KEYS and value and value not in LEVELS
    }


def redact(text: str, secrets: Collection[str], *, at_least: int = MIN_SECRET_CHARACTERS) -> str:
    """Return a text with each secret of `at_least` characters replaced, and each beginning or end
    of one where the text may have been cut. Returns REDACTED alone if there are too many secrets.
    """
    if not secrets:
        return text
    parts = {part for secret in secrets for part in _parts(secret, at_least)}
    if len(parts) > MAX_PARTS:
        return REDACTED
    forms = sorted({form for part in parts for form in _escaped_forms(part)}, key=len, reverse=True)
    for form in forms:
        text = text.replace(form, REDACTED)
    if len(text) < WHOLE_CHARACTERS:
        return text
    head, left_out, tail = text.partition(LEFT_OUT)
    if not left_out:
        return _redact_end(text, forms)
    return f"{_redact_end(head, forms)}{left_out}{_redact_end(_redact_beginning(tail, forms), forms)}"


def _parts(secret: str, at_least: int) -> Iterator[str]:
    """Yield a secret, and what stands in quotes within it."""
    quoted = (match[1] or match[2] or "" for match in QUOTED.finditer(secret))
    return (part for part in (secret, *quoted) if len(part) >= at_least)


def _escaped_forms(part: str) -> Iterator[str]:
    """Yield a text as it is, and as Python and JSON escape it, once or twice."""
    yield part
    for once in (repr(part)[1:-1], json.dumps(part)[1:-1]):
        yield once
        yield repr(once)[1:-1]


def _redact_beginning(text: str, forms: Sequence[str]) -> str:
    """Redact the beginning of a text that may have been cut within a secret."""
    backwards = text[::-1]
    longest = max((_overlap(backwards, form[::-1]) for form in forms), default=0)
    return REDACTED + text[longest:] if longest else text


def _redact_end(text: str, forms: Sequence[str]) -> str:
    """Redact the end of a text that may have been cut within a secret."""
    longest = max((_overlap(text, form) for form in forms), default=0)
    return text[: len(text) - longest] + REDACTED if longest else text


def _overlap(text: str, form: str) -> int:
    """Return the length of the longest beginning of `form` with which the text ends; 0 if it is
    shorter than MIN_SECRET_CHARACTERS or all of the form. Looks at each character twice at most.
    """
    form = form[:-1]
    tail = text[-len(form) :] if form else ""
    if form[:MIN_SECRET_CHARACTERS] not in tail or len(form) < MIN_SECRET_CHARACTERS:
        return 0
    borders = [0]  # of each beginning of the form: the longest other beginning that it ends with
    for character in form[1:]:
        borders.append(_grown(form, borders, borders[-1], character))
    length = 0
    for character in tail:
        length = _grown(form, borders, borders[length - 1] if length == len(form) else length, character)
    return length if length >= MIN_SECRET_CHARACTERS else 0


def _grown(form: str, borders: Sequence[int], length: int, character: str) -> int:
    while length and form[length] != character:
        length = borders[length - 1]
    return length + (form[length] == character)
