"""The keys of a gateway as they were written, and the mistakes that are found in them.

Rule: a mistake is noted and reading goes on, so that one error reports all of them. Each sentence
begins with its key, to which the place is added here, and never has a secret. A second mistake of
one key is not noted, because it mostly follows from the first.
"""

from collections.abc import Iterator, Sequence

from ..cluster.errors import Mistakes
from ..policies.configs.values import java_int
from ..process.settings.loading import Setting, Written, key_of


class WrittenKeys(Mistakes):
    def __init__(self, written: Written) -> None:
        super().__init__()
        self.settings: dict[str, Setting] = dict(written.settings)
        self._doubtful: set[str] = set()
        """The keys with a mistake."""
        for fault in written.faults:
            self.note(fault)

    def __contains__(self, key: str) -> bool:
        return key in self.settings

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def text(self, key: str) -> str:
        """Return a trimmed value, or an empty text if nobody has set it."""
        return self.settings[key].text.strip() if key in self.settings else ""

    def note(self, sentence: str) -> None:
        """Note a mistake, with the place of the key at its beginning."""
        key = key_of(sentence)
        if key not in self.settings:
            super().note(sentence)
        elif key not in self._doubtful:
            self._doubtful.add(key)
            super().note(f"{self.settings[key].place}: {sentence}")

    def doubt(self, key: str) -> None:
        """Let a key count as one with a mistake: another one that was written probably means it."""
        self._doubtful.add(key)

    def are_certain(self, *keys: str) -> bool:
        return self._doubtful.isdisjoint(keys)

    def one_of(self, key: str, values: Sequence[str], hint: str = "") -> str:
        """Return the value of a key as it stands in `values`, whose first one is the default."""
        value = next((each for each in values if each.lower() == self.text(key).lower()), None)
        if value is None and key in self:
            self.note(f"{key} must be one of {', '.join(values)}.{hint}")
        return value or values[0]

    def number(self, key: str, default: int, least: int) -> int:
        number = java_int(self.text(key)) if key in self else default
        if number is None or number < least:
            self.note(f"{key} must be a whole number from {least} on.")
            return default
        return number
