"""Topic names: which are legal, and which collide.

Rule: two names collide if they are equal after each `.` is replaced by `_`, since Kafka's metric
names cannot tell them apart. A collision is looked for only when a topic is created, in a
`NameIndex`, so that the cost does not grow with the number of topics.
"""

import re
from collections.abc import Iterable

import msgspec
from immutables import Map

from ..protocol.error_codes import ErrorCode
from .errors import Refusal

MAX_NAME_LENGTH = 249
"""Kafka's limit: with `-` and a partition of five digits the name of a log directory stays within
the 255 bytes of common file systems.
"""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]++", re.ASCII)
_NO_NAMES: tuple[str, ...] = ()


def validate_topic_name(name: str) -> None:
    """Raise Refusal(INVALID_TOPIC_EXCEPTION) if the name is not legal. The checks are in Kafka's
    order.
    """
    reason = _fault(name)
    if reason is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_valid_topic_name(name: str) -> bool:
    return _fault(name) is None


def _fault(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


class NameIndex(msgspec.Struct, frozen=True):
    """An immutable index of the names that can collide."""

    names: Map[str, tuple[str, ...]] = Map()
    """Names by their folded form, in which each `.` is a `_`. Only names with a `.` or a `_` can
    collide with another, so only those are kept.
    """

    def colliding(self, name: str) -> tuple[str, ...]:
        """Return the known names that collide with `name`, sorted and without `name` itself."""
        if not _can_collide(name):
            return _NO_NAMES
        return tuple(known for known in self.names.get(_folded(name), _NO_NAMES) if known != name)

    def changed(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> "NameIndex":
        added, removed = list(filter(_can_collide, added)), list(filter(_can_collide, removed))
        if not added and not removed:
            return self
        names = self.names.mutate()
        for name in removed:
            left = tuple(known for known in names.get(_folded(name), _NO_NAMES) if known != name)
            if left:
                names[_folded(name)] = left
            else:
                names.pop(_folded(name), None)
        for name in added:
            names[_folded(name)] = tuple(sorted({*names.get(_folded(name), _NO_NAMES), name}))
        return NameIndex(names.finish())

    def refuse_collision(self, name: str) -> None:
        """Raise Refusal(INVALID_TOPIC_EXCEPTION) with the names that `name` collides with, if there
        are any.
        """
        colliding = self.colliding(name)
        if colliding:
            raise Refusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
            )


def _folded(name: str) -> str:
    return name.replace(".", "_")


def _can_collide(name: str) -> bool:
    return "." in name or "_" in name
