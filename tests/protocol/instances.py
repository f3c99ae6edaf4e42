"""Random messages from our own declarations, and their plain form for comparisons with other
codecs.
"""

import base64
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from random import Random
from typing import Any

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, ResponseHeader
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import (
    BOOL,
    FLOAT64,
    UUID,
    Array,
    Blob,
    Field,
    Fixed,
    Kind,
    Nested,
    Text,
    WireStruct,
    layout_of,
)
from tests.support.grouped import Test, grouped

RANGES = {"b": 8, "h": 16, "i": 32, "q": 64}
MOST_CHARACTERS, MOST_ELEMENTS = 12, 3
CHARACTERS = 'aZ0.-_ :$\\"\x00\x7f\u00e9\u2603\U0001f600'
"""The characters of texts in samples, of one to four bytes, some with a meaning elsewhere."""
TIMES = frozenset({"log_append_time_ms"})
"""Fields of which kio makes a datetime, which none before 1970 can be."""
DURATIONS = frozenset({"retention_time_ms", "session_lifetime_ms"})
"""Fields of which kio makes a timedelta, which ends sooner than a number of 64 bits."""
SIMPLEST = 0.3
"""The share of the values of samples that are null, or a default, where they may be."""

MESSAGES: list[type[WireStruct]] = [cls for row in KAFKA.values() for cls in (row.request, row.response)]
HEADERS: list[type[WireStruct]] = [RequestHeader, ResponseHeader]

Case = tuple[type[WireStruct], int]


def cases(*, of: Callable[[type[WireStruct], int], bool] = lambda _cls, _version: True) -> Callable[[Test], Test]:
    """Run a test with every message in every version, of those that `of` wants. The versions of one
    message are one item of pytest.
    """
    wanted = [case for case in versions([*MESSAGES, *HEADERS]) if of(*case)]
    by_message = groupby(wanted, lambda case: case[0].__name__)
    return grouped("cls, version", {name: list(each) for name, each in by_message})


def versions(classes: list[type[WireStruct]]) -> Iterator[Case]:
    for cls in classes:
        layout = layout_of(cls)
        for version in range(layout.min_version, layout.max_version + 1):
            yield cls, version


@cache
def samples(cls: type[WireStruct], version: int, count: int = 8) -> list[Any]:
    """Return some messages that have nothing but what the version can carry, the same ones each
    time: the simplest, and random ones. Hypothesis takes longer to draw them than tests take.
    """
    random = Random(f"{cls.__name__} {version}")
    return [sample(cls, version, each) for each in (Simplest(), *[random] * (count - 1))]


class Simplest(Random):
    """Chooses the first and the least of everything."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, _bits: int) -> int:
        return 0


def sample(cls: type[WireStruct], version: int, random: Random) -> Any:
    present = [field for field in layout_of(cls).fields if field.present(version)]
    return cls(**{field.name: sample_value(field, version, random) for field in present})


def sample_value(field: Field, version: int, random: Random) -> Any:
    if field.name.endswith("error_code"):  # other codecs know only the codes that there are
        return int(random.choice(list(ErrorCode)))
    if field.name in TIMES:
        return random.randrange(2**45)
    if field.name in DURATIONS:
        return random.randrange(-(2**45), 2**45)
    if field.nullable(version) and random.random() < SIMPLEST:
        return None
    if field.tag is not None and random.random() < SIMPLEST:
        return field.default
    value = sample_of_kind(field.kind, version, random)
    return None if field.tag_section and value == type(value)() else value


def sample_of_kind(kind: Kind, version: int, random: Random) -> Any:
    if kind == UUID:
        return random.randbytes(16)
    if kind == BOOL:
        return random.random() < 0.5
    if kind == FLOAT64:
        return random.choice([0.0, -0.5, random.uniform(-1e300, 1e300)])
    match kind:
        case Fixed(code=code):
            end = 2 ** (RANGES[code] - 1)
            return random.choice(
                [0, 1, -1, end - 1, -end, random.randrange(-min(end, 300), min(end, 300)), random.randrange(-end, end)]
            )
        case Text():
            return "".join(random.choices(CHARACTERS, k=random.randrange(MOST_CHARACTERS + 1)))
        case Blob():
            return random.randbytes(random.randrange(MOST_CHARACTERS + 1))
        case Array(element=element):
            return [sample_of_kind(element, version, random) for _ in range(random.randrange(MOST_ELEMENTS + 1))]
        case Nested(cls=cls):
            return sample(cls, version, random)


def with_unknown_tags(message: WireStruct, version: int, tags: dict[int, bytes]) -> bool:
    """Put the tags on the message and on every struct in it; False if the version has no tags."""
    layout = layout_of(type(message))
    if not layout.is_flexible(version):
        return False
    message.unknown_tags = tags
    for field in layout.fields:
        is_here = field.present(version) and not field.tag_section
        value = getattr(message, field.name) if is_here else None
        inner = value if isinstance(value, list) else [value]
        for element in inner:
            if isinstance(element, WireStruct):
                with_unknown_tags(element, version, tags)
    return True


def plain(message: WireStruct, version: int) -> dict[str, Any]:
    """As Kafka's JSON has it: the fields of the version (tagged ones unless they have their
    default), their names squeezed, structs as dicts, bytes in base64, ids in its alphabet for URLs
    without padding.
    """
    layout = layout_of(type(message))
    return {
        squeezed(field.name): plain_value(getattr(message, field.name), field.kind, version)
        for field in layout.fields
        if field.present(version) and (field.tag is None or getattr(message, field.name) != field.default)
    }


def plain_value(value: Any, kind: Kind, version: int) -> Any:
    if value is None:
        return None
    match kind:
        case Array(element=element):
            return [plain_value(item, element, version) for item in value]
        case Nested():
            return plain(value, version)
        case Blob():
            return base64.b64encode(value).decode()
    if kind == UUID:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return value


def squeezed(name: str) -> str:
    """One spelling for `isKRaftController` and `is_kraft_controller`."""
    return name.replace("_", "").lower()
