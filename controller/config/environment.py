"""Reads configuration from environment variables as Kafka's images do: KAFKA_BROKER_ID sets
broker.id.

Rule: the prefix `KAFKA_` is removed, the rest becomes lower case, and `___`, `__` and `_` become
`-`, `_` and `.`. Variables that match no key are ignored, because Kafka's images and Kubernetes set
variables of their own (KAFKA_PORT, for a service named kafka). There is a warning only if a
variable is almost a key.
"""

import difflib
import re
from collections.abc import Iterator, Mapping

from .keys import KEYS, in_declared_case, key_named

PREFIX = "KAFKA_"
JAVA_OPTIONS = "KAFKA_OPTS"
JAAS_FILE = "java.security.auth.login.config"
"""The property of Kafka's Java runtime that is a key here."""

_RUN = re.compile(r"___|__|_")
_MEANING = {"___": "-", "__": "_", "_": "."}


def key_of_variable(variable: str) -> str:
    """Return the key of a variable: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`."""
    name = _RUN.sub(lambda run: _MEANING[run[0]], variable.removeprefix(PREFIX).lower())
    return in_declared_case(name)


def settings_of(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (variable, key, value) for each variable that names a key."""
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            key = key_of_variable(variable)
            if key_named(key) is not None:
                yield variable, key, environ[variable]
    for option in environ.get(JAVA_OPTIONS, "").split():
        if option.startswith(f"-D{JAAS_FILE}="):
            yield JAVA_OPTIONS, JAAS_FILE, option.partition("=")[2]


def doubts_about(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable that differs from a key by a letter or two."""
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            key = key_of_variable(variable)
            near = difflib.get_close_matches(key, KEYS, 1, 0.9) if key_named(key) is None else []
            if near:
                yield f"Environment variable {variable} means {key}, which is no key and is ignored; did you mean {near[0]}?"
