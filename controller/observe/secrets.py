"""What may be a secret, and what stands in its place wherever it would be told: `[hidden]`.

Rule: hidden is what is secret or what nobody knows not to be: values of password keys, and of all
keys that neither Kafka's tables nor ours know (those of plugins and of listeners, for instance);
and the same values wherever a message of ours quotes them, whole, escaped or in parts. Policies do
not see them, so that what they say can be told as it is: else whoever asks could choose words that
vanish from it.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from ...audit.event import HIDDEN
from ..config.keys import KEYS
from ..config.log_levels import LEVELS
from ..config.topic_configs import TOPIC_KEYS
from ..errors import LEFT_OUT

Text = TypeVar("Text", str, str | None)

PLAIN_KEYS = frozenset(TOPIC_KEYS) | {name for name, key in KEYS.items() if not key.is_sensitive}
LEAST = 4
"""Characters: what is shorter is found in any text, and is no secret."""
CUT = 200
"""Characters: shorter texts are whole."""
QUOTED = re.compile(r""""((?:[^"\\]|\\.)*+)"?|'((?:[^'\\]|\\.)*+)'?""", re.DOTALL)
"""What begins with a quote, as far as the next one or the end, of a value that holds others, as a
JAAS configuration holds a password.
"""
MAX_PARTS = 500
"""A message that could quote more of them than these is not told."""


def hidden(configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs with values hidden that may be secrets."""
    if not configs:
        return {}
    return {name: value if name in PLAIN_KEYS or value is None else HIDDEN for name, value in configs.items()}


def hidden_of(kind: str, configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs of a kind of resource with secrets hidden. A logger's level is none; what
    is given for one and is no level may be.
    """
    if kind != "logger":
        return hidden(configs)
    return {name: value if value is None or value in LEVELS else HIDDEN for name, value in configs.items()}


def known(configs: Mapping[str, Text]) -> Mapping[str, Text]:
    """Return configs as a policy may see them: what nobody knows, or may be a secret, has its value
    hidden.
    """
    return configs if all(name in PLAIN_KEYS for name in configs) else MappingProxyType(hidden(configs))


def secrets_of(operations: Mapping[str, str | None] | None) -> Collection[str]:
    """Return the values of a request that may be secrets: whoever refuses them may quote them."""
    return {
        value for name, value in (operations or {}).items() if name not in PLAIN_KEYS and value and value not in LEVELS
    }


def without(text: str, secrets: Collection[str]) -> str:
    """Replace the secrets within a text."""
    if not secrets:
        return text
    parts = {part for secret in secrets for part in _parts(secret)}
    if len(parts) > MAX_PARTS:
        return HIDDEN
    forms = sorted({form for part in parts for form in _forms(part)}, key=len, reverse=True)
    for form in forms:
        text = text.replace(form, HIDDEN)
    if len(text) < CUT:
        return text
    head, left_out, tail = text.partition(LEFT_OUT)
    if not left_out:
        return _without_beginning(text, forms)
    return f"{_without_beginning(head, forms)}{left_out}{_without_beginning(_without_end(tail, forms), forms)}"


def _parts(secret: str) -> Iterator[str]:
    """Return a secret, and what stands in quotes within it."""
    quoted = (match[1] or match[2] or "" for match in QUOTED.finditer(secret))
    return (part for part in (secret, *quoted) if len(part) >= LEAST)


def _forms(part: str) -> Iterator[str]:
    """Yield a text as it is, and as Python and JSON escape it, once or twice."""
    yield part
    for once in (repr(part)[1:-1], json.dumps(part)[1:-1]):
        yield once
        yield repr(once)[1:-1]


def _without_end(text: str, forms: Sequence[str]) -> str:
    """Hide the beginning of a text that may have been cut within a secret."""
    backwards = text[::-1]
    longest = max((_overlap(backwards, form[::-1]) for form in forms), default=0)
    return HIDDEN + text[longest:] if longest else text


def _without_beginning(text: str, forms: Sequence[str]) -> str:
    """Hide the end of a text that may have been cut within a secret."""
    longest = max((_overlap(text, form) for form in forms), default=0)
    return text[: len(text) - longest] + HIDDEN if longest else text


def _overlap(text: str, form: str) -> int:
    """Return how much of the form's beginning the text ends with, if at least LEAST and not all of
    it; each character is looked at twice at most.
    """
    form = form[:-1]
    tail = text[-len(form) :] if form else ""
    if form[:LEAST] not in tail or len(form) < LEAST:
        return 0
    borders = [0]  # of each beginning of the form: the longest other beginning that it ends with
    for character in form[1:]:
        borders.append(_grown(form, borders, borders[-1], character))
    length = 0
    for character in tail:
        length = _grown(form, borders, borders[length - 1] if length == len(form) else length, character)
    return length if length >= LEAST else 0


def _grown(form: str, borders: Sequence[int], length: int, character: str) -> int:
    while length and form[length] != character:
        length = borders[length - 1]
    return length + (form[length] == character)
