"""Lines that hold events in every way that JSON has: members in any order, twice, unknown ones,
left out where that is allowed; numbers and texts at their bounds, each written in several ways.

They are made from the types of `audit/event.py`, so that a new field is met by itself.
"""

import json
from enum import Enum
from random import Random
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from minicontroller.audit.event import AuditEvent, Decision

BOUNDS = (2**31, 2**53, 2**63, 10**40, 62_135_596_800_000, 253_402_300_800_000)
INTS = [str(sign * bound + more) for bound in BOUNDS for sign in (1, -1) for more in (-1, 0, 1)]
NUMBERS = ["-0", "1.0", "1e2", "0.0", "-0.0", "10e-1", "1.5", "1e18", f"{2**63 - 1}.0", "1e400", "01", "null"]
TEXTS = ["\0", "\x1f\x7f", '"\\/\b\f\n\r\t', "ü\u2028🙂\ufffe", "é" * 61, "🙂" * 60, "__HIVE_DEFAULT_PARTITION__", ""]
STRANGE_TEXTS = [r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\u0000"', r'"\/"', r'"\x"', "1", "true", "{}", "null"]
"""Texts as JSON may write them: pairs of surrogates, half a pair; and what is none."""
KEYS = ['"01"', '"1.0"', '"-0"', '"1e2"', '"2147483648"', '"x"', '""', '"9223372036854775808"']
"""Strange keys of maps whose keys are numbers."""
UNKNOWN = ["null", "1e999", "[[{}]]", '{"a":1,"a":2}', '"x"', "1" * 40, "-0.0", r'"\ud800"', '"\udcff"', "tru"]
"""Values of fields that no event has, or that another one has; one is no UTF-8."""
BOOLEANS = ["true", "false"]


def a_line(random: Random, oddity: float = 0.02) -> bytes:
    """Make a line that is an event, or nearly; `oddity` says how often something in it is odd."""
    return (
        _Writer(random, oddity)
        .struct(random.choice([*get_args(AuditEvent), *[Decision] * 4]))
        .encode("utf-8", "surrogateescape")
    )


class _Writer:
    def __init__(self, random: Random, oddity: float) -> None:
        self._random = random
        self._oddity = oddity

    def struct(self, kind: type[msgspec.Struct]) -> str:
        hints = get_type_hints(kind)
        members = [(f'"{field.name}"', self._field(field.name, hints)) for field in msgspec.structs.fields(kind)]
        left_out = [index for index, field in enumerate(msgspec.structs.fields(kind)) if not field.required]
        if left_out and self._random.random() < 0.5:
            del members[self._random.choice(left_out)]
        if self._is_odd() and members:
            members.append((self._random.choice(members)[0], self._random.choice([*UNKNOWN, *INTS, *NUMBERS])))
        if self._is_odd():
            members.append((self._random.choice(members)[0], self._random.choice(members)[1]))
        if self._is_odd():
            members.append((self._random.choice(['"unknown"', '""', '"\\u006bind"']), self._random.choice(UNKNOWN)))
        if self._is_odd():
            del members[self._random.randrange(len(members))]
        tag = kind.__struct_config__.tag
        if tag is not None:
            members.insert(0, ('"kind"', f'"{tag}"'))
        if self._is_odd():
            self._random.shuffle(members)
        return self._object(members)

    def _field(self, name: str, hints: dict[str, Any]) -> str:
        """Write the value of a field. Places are near each other, so that some go on."""
        if self._is_odd():
            return self._value(hints[name])
        if name in ("epoch", "sequence", "schema_version"):
            return str(self._random.randint(1, {"epoch": 2, "sequence": 4}.get(name, 1)))
        if name == "cluster_id":
            return self._random.choice(['"c"', '"d"'])
        return self._value(hints[name])

    def _value(self, type_: Any) -> str:
        arguments, origin = get_args(type_), get_origin(type_)
        if origin is UnionType:
            return self._value(self._random.choice(arguments))
        if origin is tuple:
            return f"[{','.join(self._value(arguments[0]) for _ in range(self._random.randrange(4)))}]"
        if origin is dict:
            key = self._text if arguments[0] is str else self._number
            return self._object([(key(), self._value(arguments[1])) for _ in range(self._random.randrange(4))])
        if issubclass(type_, msgspec.Struct):
            return self.struct(type_)
        if issubclass(type_, Enum):
            return json.dumps(self._random.choice(list(type_)).value)
        if type_ is int:
            return self._int()
        if type_ is str:
            return self._text()
        return self._bool() if type_ is bool else "null"

    def _object(self, members: list[tuple[str, str]]) -> str:
        space = " " if self._is_odd() else ""
        return "{" + ",".join(f"{space}{key}:{space}{value}" for key, value in members) + "}"

    def _int(self) -> str:
        return self._random.choice([*INTS, *NUMBERS]) if self._is_odd() else str(self._random.randrange(1000))

    def _number(self) -> str:
        return self._random.choice(KEYS) if self._is_odd() else f'"{self._random.randrange(-2, 10)}"'

    def _text(self) -> str:
        if not self._is_odd():
            return self._random.choice(['"a"', '"topic"', '"User:alice"'])
        text = json.dumps(self._random.choice(TEXTS), ensure_ascii=self._random.random() < 0.5)
        return self._random.choice([text, text, *STRANGE_TEXTS])

    def _bool(self) -> str:
        return self._random.choice(["0", '"true"', "null"] if self._is_odd() else BOOLEANS)

    def _is_odd(self) -> bool:
        return self._random.random() < self._oddity
