"""Configuration from environment variables, read as Kafka's images read them: KAFKA_BROKER_ID is
broker.id.

Rule: after `KAFKA_`, in lower case, `___` is `-`, `__` is `_` and `_` is `.`. A variable that means
no key is nobody's mistake: such images and Kubernetes (KAFKA_PORT, for a service named kafka) set
variables of their own. It is told only if it is all but a key.
"""

import difflib
import re
from collections.abc import Iterator, Mapping

from .keys import KEYS, in_declared_case, key_named

PREFIX = "KAFKA_"

_RUN = re.compile(r"___|__|_")
_MEANING = {"___": "-", "__": "_", "_": "."}


def key_of_variable(variable: str) -> str:
    """Return the key that a variable means: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`."""
    name = _RUN.sub(lambda run: _MEANING[run[0]], variable.removeprefix(PREFIX).lower())
    return in_declared_case(name)


def settings_of(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (variable, key, value) of each variable that means a key."""
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            key = key_of_variable(variable)
            if key_named(key) is not None:
                yield variable, key, environ[variable]


def doubts_about(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable that misses a key by a letter or two."""
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            key = key_of_variable(variable)
            near = difflib.get_close_matches(key, KEYS, 1, 0.9) if key_named(key) is None else []
            if near:
                yield f"Environment variable {variable} means {key}, which is no key and is ignored; did you mean {near[0]}?"
