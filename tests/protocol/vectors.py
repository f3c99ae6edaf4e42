"""Golden vectors: `tests/vectors/<api>/<role>.json`, one entry for each version, with the values,
the bytes, and who made the bytes.

Run as a program it records those of the APIs that it is given (`create_topics`), or of all, anew
with Kafka's own classes, and with kafka-python where that knows the message; both must agree. Our
codec has no part in it: the values are filled in by rule, so that each field has one that no other
field has.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from minicontroller.protocol.schema import UUID, Array, Blob, Field, Fixed, Kind, Nested, Text, WireStruct, layout_of
from tests.protocol.instances import MESSAGES, plain, versions

if TYPE_CHECKING:
    from tests.protocol.java_oracle import JavaOracle

FOLDER = Path(__file__).parents[1] / "vectors"


class Vector(NamedTuple):
    """One entry of a file."""

    message: str
    version: int
    made_by: list[str]
    values: dict[str, Any]
    data: bytes


def api_folder(name: str) -> str:
    """`CreateTopicsRequest` lies in `create_topics`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub("(Request|Response)$", "", name)).lower()


def path_of(cls: type[WireStruct]) -> Path:
    return FOLDER / api_folder(cls.__name__) / f"{layout_of(cls).role}.json"


def load() -> Iterator[Vector]:
    for cls in MESSAGES:
        path, name = path_of(cls), api_folder(cls.__name__)
        assert path.exists(), f"{cls.__name__} has no vectors: python -m tests.protocol.vectors {name}"
        recorded = json.loads(path.read_text())
        for entry in recorded["versions"]:
            data = bytes.fromhex(entry["bytes"])
            yield Vector(recorded["message"], entry["version"], entry["made_by"], entry["values"], data)


class Filling:
    """Gives each field a value of its own: numbers count up, texts say what they are, arrays have
    two elements, every third null.
    """

    def __init__(self) -> None:
        self.numbers = count(1)

    def struct(self, cls: type[WireStruct], version: int) -> WireStruct:
        present = [field for field in layout_of(cls).fields if field.present(version)]
        return cls(**{field.name: self.value(field, version) for field in present})

    def value(self, field: Field, version: int) -> Any:
        number = next(self.numbers)
        if field.nullable(version) and number % 3 == 0:
            return None
        return self.of_kind(field.kind, field.name, number, version)

    def of_kind(self, kind: Kind, name: str, number: int, version: int) -> Any:
        if kind == UUID:
            return bytes(range(number, number + 16))
        match kind:
            case Fixed(code="d"):
                return number + 0.25
            case Fixed(code=code):
                return number % 2 == 0 if code == "?" else (-number if number % 4 == 0 else number)
            case Text():
                return f"{name}-{number}" + ("-é☃😀" if number % 5 == 0 else "")
            case Blob():
                return bytes([0, 255, number])
            case Nested(cls=cls):
                return self.struct(cls, version)
            case Array(element=element):
                return [self.of_kind(element, name, next(self.numbers), version) for _ in range(2)]


def kafka_json(message: WireStruct, version: int) -> dict[str, Any]:
    """The message under the names of Kafka's JSON."""
    squeezed, out = plain(message, version), {}
    for field in layout_of(type(message)).fields:
        key = field.name.replace("_", "")
        if key in squeezed:
            out[kafka_name(field.name)] = kafka_value(getattr(message, field.name), squeezed[key], version)
    return out


def kafka_value(value: Any, squeezed: Any, version: int) -> Any:
    if isinstance(value, WireStruct):
        return kafka_json(value, version)
    if isinstance(value, list) and value and isinstance(value[0], WireStruct):
        return [kafka_json(element, version) for element in value]
    return squeezed


def kafka_name(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name).replace("Kraft", "KRaft")


def record(names: Sequence[str] = ()) -> None:
    """Record the vectors of these APIs, or of all. What Kafka lacks is left out, and named at the
    end.
    """
    from tests.protocol.java_oracle import JavaOracle, RefusedError

    unknown = set(names) - {api_folder(cls.__name__) for cls in MESSAGES}
    if unknown:
        raise SystemExit(f"No module of protocol/messages/ is called {', '.join(sorted(unknown))}.")
    left_out = []
    with JavaOracle() as java:
        for cls in MESSAGES:
            if names and api_folder(cls.__name__) not in names:
                continue
            try:
                entries = [recorded(java, cls, version) for _, version in versions([cls])]
            except RefusedError as refusal:
                left_out.append(f"{cls.__name__}: {refusal}")
                continue
            path = path_of(cls)
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
            path.write_text(f'{{"message": "{cls.__name__}", "versions": [\n{lines}\n]}}\n')
    if left_out:
        raise SystemExit("\n".join(["Kafka's own classes do not write these messages:", *left_out]))


def recorded(java: "JavaOracle", cls: type[WireStruct], version: int) -> dict[str, Any]:
    """Return the entry of one version of a message. Raises RefusedError if Kafka lacks it."""
    from importlib.metadata import version as installed_version

    from tests.protocol.test_foreign_codecs import KAFKA_PYTHON, as_dict, known_to_kafka_python
    from tests.support.wire import build

    message = Filling().struct(cls, version)
    data, made_by = java.write(cls.__name__, version, kafka_json(message, version)), ["kafka-clients 3.9.1"]
    if known_to_kafka_python(cls, version):
        theirs = KAFKA_PYTHON[cls.__name__]
        body = as_dict(message, version, theirs._struct)
        assert bytes(build(theirs, theirs._struct, body, version).encode(version=version)) == data
        made_by.append(f"kafka-python {installed_version('kafka-python')}")
    return {"version": version, "made_by": made_by, "values": plain(message, version), "bytes": data.hex()}


if __name__ == "__main__":
    record(sys.argv[1:])
