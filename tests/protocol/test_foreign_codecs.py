"""Agreement with two codecs that share no code with ours or with each other: kio (Rust, decoding)
and kafka-python (from Kafka's schemas).

They see valid bytes only: kio ends the whole process on a hostile array count, kafka-python takes
its time over a hostile varint.
"""

import io
import re
from typing import Any, Literal
from uuid import UUID

import kio.index
import kio.serial
from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from minicontroller.protocol import schema
from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.schema import Array, Kind, Nested, WireStruct, layout_of
from tests.protocol.instances import HEADERS, MESSAGES, cases, samples, versions
from tests.support import wire

KAFKA_PYTHON: dict[str, Any] = {cls.__name__: cls for pair in wire.MESSAGES.values() for cls in pair}

ROLES: dict[str, Literal[EntityType.request, EntityType.response]] = {
    "request": EntityType.request,
    "response": EntityType.response,
}


def kio_entity(cls: type[WireStruct], version: int) -> Any:
    """Kio's class of the message in the version."""
    module = kio.index.load_entity_module(kio_name(cls), version, ROLES[layout_of(cls).role])
    return getattr(module, cls.__name__)


def kio_name(cls: type[WireStruct]) -> str:
    """Kio's name of the API whose request or response the message is."""
    name = re.sub("(Request|Response)$", "", cls.__name__)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


ROUNDED_BY_KIO = {
    *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken"),
    "DescribeTransactions",
}
"""The APIs whose times kio takes for dates and durations, which it counts in floats."""


def known_to_kio(cls: type[WireStruct], version: int) -> bool:
    if cls in HEADERS or cls.__name__.removesuffix("Request").removesuffix("Response") in ROUNDED_BY_KIO:
        return False
    return ROLES[layout_of(cls).role] in schema_name_map.get(kio_name(cls), {}).get(version, {})


def known_to_kafka_python(cls: type[WireStruct], version: int) -> bool:
    theirs = KAFKA_PYTHON.get(cls.__name__)
    return theirs is not None and theirs.min_version <= version <= theirs.max_version


@cases(of=known_to_kio)
def test_kio_agrees(cls: type[WireStruct], version: int) -> None:
    """Kio reads all of our bytes and writes them again as they were."""
    entity = kio_entity(cls, version)
    read, write = kio.serial.entity_reader(entity), kio.serial.entity_writer(entity)
    for message in samples(cls, version):
        data = encoder(cls, version)(message)
        theirs, size = read(data, 0)
        written = io.BytesIO()
        write(written, theirs)
        assert (written.getvalue(), size) == (data, len(data))


@cases(of=known_to_kafka_python)
def test_kafka_python_agrees(cls: type[WireStruct], version: int) -> None:
    """kafka-python, given the same values under the same names, writes the same bytes, and we read
    the message from them.
    """
    theirs = KAFKA_PYTHON[cls.__name__]
    for message in samples(cls, version):
        data = bytes(
            wire.build(theirs, theirs._struct, as_dict(message, version, theirs._struct), version).encode(
                version=version
            )
        )
        assert data == encoder(cls, version)(message)
        assert decoder(cls, version)(data, 0) == (message, len(data))


def test_the_oracles_know_most_of_it() -> None:
    """The foreign codecs know most messages, so that agreement with them means something."""
    for known in (known_to_kio, known_to_kafka_python):
        assert sum(known(cls, version) for cls, version in versions(MESSAGES)) > 140


def as_dict(message: WireStruct, version: int, known: Any) -> dict[str, Any]:
    """The fields of the version as kafka-python wants them: ids as UUIDs, authorized operations,
    where it calls them so, as a set.
    """
    body: dict[str, Any] = {}
    for field in layout_of(type(message)).fields:
        if not field.present(version):
            continue
        value = getattr(message, field.name)
        if field.name not in known.fields or known.fields[field.name]._type_str == "bitfield":
            body["authorized_operations"] = {bit for bit in range(32) if value >> bit & 1}
        else:
            body[field.name] = as_value(value, field.kind, version, known.fields[field.name])
    return body


def as_value(value: Any, kind: Kind, version: int, known: Any) -> Any:
    if value is None:
        return None
    match kind:
        case Array(element=Nested()):
            return [as_dict(item, version, known) for item in value]
        case Nested():
            return as_dict(value, version, known)
    return UUID(bytes=value) if kind == schema.UUID else value
