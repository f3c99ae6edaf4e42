"""Topic names: which are legal, and which exclude each other.

Rule: two names collide when they are equal once every `.` reads `_`, since Kafka's metric names
cannot tell them apart. The question is asked at creation alone, and never answered by looking at
every topic: `NameIndex` keeps the answer.
"""

import re
from collections.abc import Iterable

import msgspec
from immutables import Map

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal

MAX_NAME_LENGTH = 249
"""Kafka's: with `-` and a partition of five digits a log directory stays within the 255 bytes of
common file systems.
"""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]++", re.ASCII)
_NO_NAMES: tuple[str, ...] = ()


def validate_topic_name(name: str) -> None:
    """Raise Refusal(INVALID_TOPIC_EXCEPTION) for a name that is not legal; the reasons are tried in
    Kafka's order.
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


def collides(one: str, other: str) -> bool:
    """Whether two names cannot exist together; a name is said to collide with itself,
    as in Kafka.
    """
    return _folded(one) == _folded(other)


class NameIndex(msgspec.Struct, frozen=True):
    """Tells which of the known names collide with a new one, without a look at the others.
    Immutable.
    """

    names: Map[str, tuple[str, ...]] = Map()
    """By folded name; only names that hold a `.` or a `_` can collide with another, so only those
    are kept.
    """

    def colliding(self, name: str) -> tuple[str, ...]:
        """Return the known names that exclude `name`, in order. `name` itself, if known, is not
        among them.
        """
        if not _can_collide(name):
            return _NO_NAMES
        return tuple(known for known in self.names.get(_folded(name), _NO_NAMES) if known != name)

    def changed(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> "NameIndex":
        """Return the index without some names and with others."""
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
        """Raise Refusal(INVALID_TOPIC_EXCEPTION) that lists the names in the way, if there are
        some.
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
