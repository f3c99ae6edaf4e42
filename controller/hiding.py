"""What may be a secret, and what stands in its place wherever it would be told: `[hidden]`.

Rule: hidden is what is secret or what nobody knows not to be: values of password keys, and of all keys that neither Kafka's tables nor ours
know (those of plugins and of listeners, for instance); and the same values wherever a message quotes them, whole, escaped or in parts.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from ..policies.audit_event import HIDDEN
from ..policies.judging import Judged
from .config.keys import KEYS
from .config.topic_configs import TOPIC_KEYS

PLAIN_KEYS = frozenset(TOPIC_KEYS) | {name for name, key in KEYS.items() if not key.is_sensitive}
PARTS = re.compile(r'"((?:[^"\\]|\\.){3,})"')
"""Of a value that holds others, as a JAAS configuration holds a password."""


def hidden(configs: Mapping[str, Any]) -> dict[str, Any]:
    """The configs, and what may be a secret among them not."""
    return {name: value if name in PLAIN_KEYS or value is None else HIDDEN for name, value in configs.items()}


def secrets_of(request: Judged | None, operations: Mapping[str, str | None] | None = None) -> Collection[str]:
    """Values of what a policy was asked, or of what was named, that may be secrets: a message may quote them."""
    operations = operations or getattr(request, "config_operations", None) or {}
    wanted = getattr(request, "requested_state", None)
    configs: Mapping[str, str] = wanted.configs if wanted is not None else {}
    if not configs and not operations:
        return ()
    return {value for each in (operations, configs) for name, value in each.items() if name not in PLAIN_KEYS and value}


def without(text: str, secrets: Collection[str]) -> str:
    """The text, and nothing of the secrets."""
    if not secrets:
        return text
    forms = {form for secret in secrets for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def _forms(secret: str) -> list[str]:
    """As it is, as Python and JSON escape it, and its parts."""
    parts = [secret, *PARTS.findall(secret)]
    return [form for part in parts for form in (part, repr(part)[1:-1], json.dumps(part)[1:-1])]
