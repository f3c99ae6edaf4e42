"""Declarations that contradict themselves are refused when they are imported."""

from typing import Annotated, Any

import msgspec
import pytest

from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.errors import MalformedMessage
from minicontroller.protocol.schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    UInt16,
    Uuid,
    WireStruct,
    ignorable,
    layout_of,
    message,
    nullable_since,
    since,
    tagged,
    until,
)


class Empty(WireStruct):
    pass


class Knot(WireStruct):
    more: "list[Knot]" = []  # noqa: RUF012 - msgspec copies the list


class Inner(WireStruct):
    a: Int8 = 0


def declared(versions: tuple[int, int] = (0, 3), flexible: int | None = 2, **fields: tuple[Any, Any]) -> Any:
    """A class as if it had been written with these fields: name=(annotation, default)."""
    cls = msgspec.defstruct(
        "Declared", [(name, kind, default) for name, (kind, default) in fields.items()], bases=(WireStruct,)
    )
    return message(-2, "request", versions=versions, flexible=flexible)(cls)


@pytest.mark.parametrize(
    ("kind", "default", "told"),
    [
        (int, 0, "is no wire type"),
        (list[list[Int32]], [], "array of arrays"),
        (str, None, "null is not allowed"),
        (str, msgspec.NODEFAULT, "every field has a default"),
        (Annotated[str, nullable_since(1)], "", "allows None"),
        (Annotated[Int32, since(1), tagged(0)], 0, "only flexible versions"),
        (Annotated[Int32, since(4)], 0, "no version has"),
        (Annotated[Int32, since(2), until(1)], 0, "no version has"),
    ],
)
def test_a_wrong_declaration_names_its_field(kind: Any, default: Any, told: str) -> None:
    """The error of a wrong declaration names the class, the field and the fault."""
    with pytest.raises(TypeError, match=rf"Declared\.field: .*{told}"):
        declared(field=(kind, default))


def test_elements_take_bytes() -> None:
    """An array whose elements take no bytes is refused: five bytes could announce two thousand
    million of them.
    """
    with pytest.raises(TypeError, match="takes no bytes in version 0"):
        declared(field=(list[Empty], []))


def test_a_message_has_a_depth() -> None:
    """A struct that contains itself is refused: its depth would be the sender's to choose."""
    with pytest.raises(TypeError, match="contains itself"):
        message(-2, "request", versions=(0, 0), flexible=None)(Knot)


def test_a_tag_is_used_once() -> None:
    """Two fields with one tag are refused."""
    tag = Annotated[Int32, since(2), tagged(3)]
    with pytest.raises(TypeError, match="a tag is used twice"):
        declared(a=(tag, 0), b=(tag, 0))


def test_a_shared_struct_belongs_to_like_messages() -> None:
    """A struct inside two messages takes its compact form from both, so they must agree."""
    declared(field=(list[Inner], []))
    with pytest.raises(TypeError, match="Inner: shared by messages of different versions"):
        declared(flexible=1, field=(list[Inner], []))


def test_what_was_not_declared_has_no_layout() -> None:
    """A class that belongs to no message raises an error."""

    class Stranger(WireStruct):
        pass

    with pytest.raises(LookupError, match="Stranger is part of no declared message"):
        layout_of(Stranger)


def test_every_wire_type() -> None:
    """Types that no message of the day uses are read and written as Kafka does: unsigned, floating,
    bytes and ids in arrays, structs in place.
    """
    cls = declared(
        unsigned=(UInt16, 0),
        ratio=(float, 0.0),
        ids=(list[Uuid], []),
        blobs=(list[bytes], []),
        flags=(list[bool], []),
        shorts=(list[Int16], []),
        longs=(list[Int64], []),
        inner=(Inner | None, None),
        late=(Annotated[str, since(1), ignorable], ""),
        extra=(Annotated[list[str] | None, since(2), tagged(1)], None),
    )
    full = cls(
        unsigned=65535,
        ratio=1.5,
        ids=[bytes(range(16)), bytes(16)],
        blobs=[b"", b"\x00\xff"],
        flags=[True, False],
        shorts=[-1, 2],
        longs=[-(2**63), 2**63 - 1],
        inner=Inner(5),
        late="x",
        extra=["a", "b"],
    )
    data = encoder(cls, 2)(full)
    assert data.hex() == (
        "ffff" "3ff8000000000000" "03" + bytes(range(16)).hex() + bytes(16).hex() + "03" "01" "0300ff" "03" "0100"
        "03" "ffff0002" "03" "8000000000000000" "7fffffffffffffff" "01" "05" "00" "0278" "01" "01" "05" "03" "0261" "0262"
    )  # fmt: skip
    assert decoder(cls, 2)(data, 0) == (full, len(data))
    for size in range(len(data)):
        with pytest.raises(MalformedMessage):
            decoder(cls, 2)(data[:size], 0)
    old = encoder(cls, 0)(cls(blobs=[b"ab"]))
    assert old.hex() == "0000" + "00" * 8 + "00000000" + "00000001000000026162" + "00000000" * 3 + "ff"
    assert decoder(cls, 0)(old, 0) == (cls(blobs=[b"ab"]), len(old))
