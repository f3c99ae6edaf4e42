"""Redacts secrets as `[hidden]` in the log, the audit log, the metrics and the page.

Rule: a value is a secret if its key is a password or is unknown, such as the key of a plugin or of
one listener; a gateway knows also the keys of which its cluster says that they are no secrets. The
same values are redacted in messages, where they may be quoted whole, escaped or in part. Policies
receive redacted configs, so their messages need no redaction.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from ...audit.event import REDACTED
from ...cluster.errors import LEFT_OUT
from ...policies.configs.canonical import LEARNED
from ...policies.configs.newer_keys import NEWER_KEYS
from ...policies.configs.values import KeyType
from ..settings.keys import KEYS
from ..settings.log_levels import LEVELS
from ..settings.topic_configs import TOPIC_KEYS

Text = TypeVar("Text", str, str | None)

PUBLIC_KEYS = (
    frozenset(TOPIC_KEYS)
    | {name for name, key in KEYS.items() if not key.is_sensitive}
    | {name for name, kind in NEWER_KEYS.items() if kind is not KeyType.PASSWORD}
)
PUBLIC_KINDS = frozenset({"acl", "client_quota", "token", "group", "replica"})
"""The kinds of changes whose operands are no secrets."""
MIN_SECRET_CHARACTERS = 4
"""Shorter values are not redacted in texts, where they occur by chance."""
WHOLE_CHARACTERS = 200
"""Shorter texts are never cut, so they cannot begin or end within a secret."""
QUOTED = re.compile(r""""((?:[^"\\]|\\.)*+)"?|'((?:[^'\\]|\\.)*+)'?""", re.DOTALL)
"""Matches the quoted parts of a value, such as the password in a JAAS configuration."""
MAX_PARTS = 500
"""The most parts of secrets to search for. With more of them, the whole text is redacted."""


def is_public(key: str) -> bool:
    return key in PUBLIC_KEYS or key in LEARNED


def redact_configs(configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs of a topic or a broker with possible secrets redacted."""
    if not configs:
        return {}
    return {name: value if value is None or is_public(name) else REDACTED for name, value in configs.items()}


def redact_configs_of(kind: str, configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs of a resource with possible secrets redacted. The level of a logger is
    public, but an invalid level may be a secret. Of ACLs, quotas, tokens and groups no handler
    names one.
    """
    if kind in PUBLIC_KINDS:
        return dict(configs)
    if kind != "logger":
        return redact_configs(configs)
    return {name: value if value is None or value in LEVELS else REDACTED for name, value in configs.items()}


def configs_for_policies(configs: Mapping[str, Text]) -> Mapping[str, Text]:
    """Return a read-only view of redacted configs, or `configs` itself if it has no secrets."""
    if all(map(is_public, configs)):
        return configs
    return MappingProxyType(redact_configs(configs))


def secret_values(operations: Mapping[str, str | None] | None, kind: str = "") -> Collection[str]:
    """Return those requested values that may be secrets and may be quoted by a refusal, of a change
    of this kind.
    """
    if kind in PUBLIC_KINDS:
        return ()
    return {
        value for name, value in (operations or {}).items() if value and not is_public(name) and value not in LEVELS
    }


def redact(text: str, secrets: Collection[str], *, at_least: int = MIN_SECRET_CHARACTERS) -> str:
    """Return `text` with every secret of `at_least` characters replaced, including a part of a
    secret where the text may have been cut. Returns REDACTED if there are too many secrets.
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
    quoted = (match[1] or match[2] or "" for match in QUOTED.finditer(secret))
    return (part for part in (secret, *quoted) if len(part) >= at_least)


def _escaped_forms(part: str) -> Iterator[str]:
    """Yield a text, and its forms after Python or JSON escaped it once or twice."""
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
    """Return the length of the longest proper prefix of `form` that `text` ends with, or 0 if it is
    shorter than MIN_SECRET_CHARACTERS. The time is linear.
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
