"""Tells which files with secrets every user of the machine can read.

Rule: that is a warning and never an error, because where secrets are mounted, their modes are often
not ours to choose. No text shows a value.
"""

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from .environment import JAAS_FILE
from .keys import base_name
from .node_config import NodeConfig
from .properties import PropertiesError, parse_properties

Doubt = tuple[str, str]
FILES = frozenset(
    {
        "ssl.keystore.location",
        "zookeeper.ssl.keystore.location",
        "http.ssl.keystore.location",
        "http.bearer.token.file",
        JAAS_FILE,
    }
)
"""The keys that name files with private keys, tokens or passwords."""
SECRETS = ("password", "secret", "jaas.config", "bearer.token", "keystore.key", "secret.key", "master.key")
"""The ends of the names of keys whose values are secrets."""


def is_open_to_all(file: Path) -> bool:
    """Return whether every user of this machine can read a file."""
    try:
        found = file.stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & stat.S_IROTH)


def doubts_of_files(config: NodeConfig) -> Iterator[Doubt]:
    """Yield (key, sentence) for each file with secrets that a node's configuration names and
    everybody can read.
    """
    for key in config.static:
        if base_name(key) in FILES and is_open_to_all(Path(config.string(key))):
            yield key, f"{key}: {sentence_of(config.string(key))}"


def warnings_of_configuration(text: str, file: str) -> list[str]:
    """Return a sentence if a file of properties has secrets and everybody can read it."""
    try:
        names: Iterable[str] = parse_properties(text, file).entries
    except PropertiesError:
        names = ()
    has_secrets = any(name.endswith(SECRETS) for name in names)
    return [sentence_of(file)] if has_secrets and is_open_to_all(Path(file)) else []


def sentence_of(file: str) -> str:
    return f"{file} has secrets, and every user of this machine can read it: chmod o-r {file}"
