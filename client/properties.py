"""The entries of a client's configuration, read by key.

Rule: an error names the file, the line and the key, and never a value.
"""

from collections.abc import Mapping
from pathlib import Path

from ..controller.errors import ConfigurationError
from ..policies.configs.values import MAX_INT, is_number
from ..text.properties import Property


class ClientProperties:
    def __init__(self, entries: Mapping[str, Property], file: str) -> None:
        self.entries = entries
        self.file = file

    def text(self, key: str) -> str:
        """Return a value, empty if the key is not there."""
        entry = self.entries.get(key)
        return "" if entry is None else entry.value.strip()

    def seconds(self, key: str, default: float) -> float:
        text = self.text(key)
        if not text:
            return default
        if not (is_number(text, MAX_INT)):
            raise self.fault(key, "is a number of milliseconds")
        return int(text) / 1000

    def content(self, key: str) -> bytes:
        """Return the content of the file that a key names."""
        path = Path(self.text(key))
        try:
            return path.read_bytes()
        except (OSError, ValueError) as error:
            raise self.fault(key, f"names a file that cannot be read: {path}: {reason(error)}") from None

    def fault(self, key: str, text: str) -> ConfigurationError:
        """Make an error about a key, to be raised."""
        return ConfigurationError(f"{self.place(key)}: {key} {text}.")

    def place(self, key: str) -> str:
        """Name the place of a key: its file, and its line if it was read from a file."""
        entry = self.entries.get(key)
        return self.file if entry is None or not entry.line else f"{self.file}, line {entry.line}"


def reason(error: Exception) -> str:
    """Return the message of an error of the operating system, without its number."""
    return getattr(error, "strerror", None) or str(error)
