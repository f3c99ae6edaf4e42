"""The entries of a client's configuration, read by key.

Rule: an error names the file, the line and the key, and never a value.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..cluster.errors import ConfigurationError
from ..policies.configs.values import MAX_INT, is_number


class PropertyEntry(msgspec.Struct, frozen=True):
    name: str
    """The key as it was written, perhaps with a prefix."""
    text: str
    place: str = ""
    """The place where it was written, such as `client.properties, line 3`."""


class ClientProperties:
    def __init__(self, entries: Mapping[str, PropertyEntry], place: str = "", prefix: str = "") -> None:
        """`place` is that of keys which are missing, and `prefix` stands before their names."""
        self.entries = entries
        self._place = place
        self._prefix = prefix

    def text(self, key: str) -> str:
        entry = self.entries.get(key)
        return "" if entry is None else entry.text.strip()

    def seconds(self, key: str, default: float) -> float:
        text = self.text(key)
        if not text:
            return default
        if not (is_number(text, MAX_INT)):
            raise self.fault(key, "is a number of milliseconds")
        return int(text) / 1000

    def content(self, key: str) -> bytes:
        path = Path(self.text(key))
        try:
            return path.read_bytes()
        except (OSError, ValueError) as error:
            raise self.fault(key, f"names a file that cannot be read: {path}: {reason(error)}") from None

    def fault(self, key: str, text: str) -> ConfigurationError:
        entry = self.entries.get(key)
        name = self._prefix + key if entry is None else entry.name
        return ConfigurationError(self.placed(key, f"{name} {text}."))

    def placed(self, key: str, sentence: str) -> str:
        entry = self.entries.get(key)
        place = self._place if entry is None else entry.place
        return f"{place}: {sentence}" if place else sentence


def reason(error: Exception) -> str:
    """Return the message of an error of the operating system, without its number."""
    return getattr(error, "strerror", None) or str(error)
