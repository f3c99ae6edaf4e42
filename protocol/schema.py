"""The declaration of messages. A message is declared once, as a `WireStruct` whose annotations name
the versions that have each field.

    @message(19, "request", versions=(0, 7), flexible=5)
    class CreateTopicsRequest(WireStruct):
        topics: list[CreatableTopic] = []
        timeout_ms: Int32 = 60000
        validate_only: Annotated[bool, since(1)] = False

A type checker sees plain `int`, `str`, `bytes`, `list[...]`. Fields are declared in wire order with
Kafka's defaults. In a version that lacks a field, an `ignorable` field is dropped, and any other
must have its default. `X | None` is nullable in every version, or from `nullable_since` on. The
decorator checks the declaration at import; `compiler` compiles it when a version is first used.
"""

from collections.abc import Callable, Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

ZERO_UUID = bytes(16)  # Kafka: Uuid.ZERO_UUID, "no id"


class WireStruct(msgspec.Struct, kw_only=True):
    """The base class of messages and of structs inside them."""

    unknown_tags: dict[int, bytes] | None = None  # the bytes of tagged fields that are not declared, by tag


# --- wire types ----------------------------


class Fixed(msgspec.Struct, frozen=True):
    """A wire type of fixed size: `code` is that of the `struct` module, `size` is in bytes."""

    code: str
    size: int


class Text(msgspec.Struct, frozen=True):
    """The wire type of strings: a length and UTF-8."""


class Blob(msgspec.Struct, frozen=True):
    """The wire type of bytes, and of records: a length and the bytes."""


class Nested(msgspec.Struct, frozen=True):
    """The wire type of a struct. A nullable one follows a byte that is -1 for null, 1 otherwise
    (KIP-893).
    """

    cls: type[WireStruct]


class Array(msgspec.Struct, frozen=True):
    """The wire type of arrays: a count and the elements, none of which is null."""

    element: Fixed | Text | Blob | Nested


Kind = Fixed | Text | Blob | Nested | Array

UUID = Fixed("16s", 16)
BOOL = Fixed("?", 1)
FLOAT64 = Fixed("d", 8)
INT32 = Fixed("i", 4)

Int8 = Annotated[int, Fixed("b", 1)]
Int16 = Annotated[int, Fixed("h", 2)]
UInt16 = Annotated[int, Fixed("H", 2)]
Int32 = Annotated[int, INT32]
Int64 = Annotated[int, Fixed("q", 8)]
Uuid = Annotated[bytes, UUID]

# The wire types of Python types that need no annotation.
PLAIN: dict[object, Kind] = {str: Text(), bytes: Blob(), bool: BOOL, float: FLOAT64}


# --- annotations of fields ----------------------------


class FieldMark(msgspec.Struct, frozen=True):
    word: Literal["since", "until", "nullable_since", "tag", "tag_section", "ignorable", "classic"]
    number: int = 0


def since(version: int) -> FieldMark:
    """Mark a field that versions below this one lack."""
    return FieldMark("since", version)


def until(version: int) -> FieldMark:
    """Mark a field that versions above this one lack."""
    return FieldMark("until", version)


def nullable_since(version: int) -> FieldMark:
    """Mark a field that must not be null in versions below this one."""
    return FieldMark("nullable_since", version)


def tagged(tag: int) -> FieldMark:
    """Mark a tagged field (KIP-482), which is not sent while it has its default."""
    return FieldMark("tag", tag)


tag_section = FieldMark("tag_section")  # its struct has the tagged fields of the struct around it, or is None
ignorable = FieldMark("ignorable")  # a version that lacks the field drops its value
classic = FieldMark("classic")  # not in the compact form in flexible versions either: the client id in a request header


# --- declarations as the compiler reads them ----------------------------


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    default: Any
    first: int = 0
    last: int = 32767
    nullable_since: int | None = None
    tag: int | None = None
    tag_section: bool = False
    ignorable: bool = False
    classic: bool = False

    def present(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since


class Layout(msgspec.Struct, frozen=True):
    """A struct as declared, with the API, role and versions of its message. `flexible` is the first
    version with compact forms and tags.
    """

    cls: type[WireStruct]
    fields: tuple[Field, ...]
    api_key: int
    role: str
    min_version: int
    max_version: int
    flexible: int

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible

    def on_wire(self, version: int) -> list[Field]:
        return [
            field for field in self.fields if field.present(version) and field.tag is None and not field.tag_section
        ]

    def tagged(self, version: int) -> list[Field]:
        return sorted(
            (field for field in self.fields if field.present(version) and field.tag is not None),
            key=lambda field: field.tag or 0,
        )

    def tag_section(self, version: int) -> Field | None:
        """Return the field whose struct has the tagged fields, or None if this struct has them."""
        return next((field for field in self.fields if field.tag_section and field.present(version)), None)

    def missing(self, version: int) -> list[Field]:
        """Return the fields that this version lacks and that are not ignorable."""
        return [field for field in self.fields if not field.present(version) and not field.ignorable]


NEVER = 32768  # greater than any version
LAYOUTS: dict[type[WireStruct], Layout] = {}

S = TypeVar("S", bound=WireStruct)
Role = Literal["request", "response", "header"]


def message(
    api_key: int, role: Role, *, versions: tuple[int, int], flexible: int | None
) -> Callable[[type[S]], type[S]]:
    """Return a decorator that declares a class as the request or response of an API.

    Raises:
        TypeError: the declaration contradicts itself; the message names class and field.
    """
    first_flexible = NEVER if flexible is None else flexible

    def declare(cls: type[S]) -> type[S]:
        for struct in _with_structs_inside(cls, ()):
            # A struct that request and response share, such as a cursor, keeps the layout of the
            # first of them.
            layout = Layout(struct, _fields(struct), api_key, role, *versions, first_flexible)
            known = LAYOUTS.setdefault(struct, layout)
            if (known.min_version, known.max_version, known.flexible) != (*versions, first_flexible):
                raise TypeError(f"{struct.__name__}: shared by messages of different versions")
            _check(layout)
        return cls

    return declare


def layout_of(cls: type[WireStruct]) -> Layout:
    """Return the declaration of a message or of a struct inside one.

    Raises:
        LookupError: the class belongs to no message.
    """
    try:
        return LAYOUTS[cls]
    except KeyError:
        raise LookupError(f"{cls.__name__} is part of no declared message") from None


def min_size(kind: Kind, version: int, *, compact: bool, nullable: bool = False) -> int:
    """Return the fewest bytes that a value takes. The count of an array is compared with it before
    the array is decoded.
    """
    match kind:
        case Fixed(size=size):
            return size
        case Text():
            return 1 if compact else 2
        case Blob() | Array():
            return 1 if compact else 4
        case Nested(cls=cls):
            layout = LAYOUTS[cls]
            fields = layout.on_wire(version)
            inner = sum(min_size(f.kind, version, compact=compact, nullable=f.nullable(version)) for f in fields)
            return 1 if nullable else inner + int(layout.is_flexible(version))


def _with_structs_inside(cls: type[WireStruct], outer: tuple[type[WireStruct], ...]) -> Iterator[type[WireStruct]]:
    """Yield the structs inside a struct before the struct itself, so that their sizes are known
    when its arrays are checked.
    """
    if cls in outer:
        raise TypeError(f"{cls.__name__}: contains itself, so its depth has no bound")
    for field in _fields(cls):
        inner = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(inner, Nested):
            yield from _with_structs_inside(inner.cls, (*outer, cls))
    yield cls


@cache  # called three times a class at import
def _fields(cls: type[WireStruct]) -> tuple[Field, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(
        _field(cls, info, hints[info.name]) for info in msgspec.structs.fields(cls) if info.name != "unknown_tags"
    )


def _field(cls: type[WireStruct], info: msgspec.structs.FieldInfo, hint: Any) -> Field:
    where = f"{cls.__name__}.{info.name}"
    marks: dict[str, int] = {}
    if get_origin(hint) is Annotated:
        hint, *words = get_args(hint)
        marks = {word.word: word.number for word in words if isinstance(word, FieldMark)}
        fixed = [word for word in words if isinstance(word, Fixed)]
        if fixed:
            hint = Annotated[hint, fixed[0]]
    optional = get_origin(hint) in (Union, UnionType)
    if optional:
        (hint,) = (arg for arg in get_args(hint) if arg is not NoneType)
    if "nullable_since" in marks and not optional:
        raise TypeError(f"{where}: nullable_since belongs to a type that allows None")
    return Field(
        name=info.name,
        kind=_kind(where, hint),
        default=_default(where, info),
        first=marks.get("since", 0),
        last=marks.get("until", 32767),
        nullable_since=marks.get("nullable_since", 0) if optional else None,
        tag=marks.get("tag"),
        tag_section="tag_section" in marks,
        ignorable="ignorable" in marks,
        classic="classic" in marks,
    )


def _kind(where: str, hint: Any) -> Kind:
    if get_origin(hint) is Annotated:
        return next(word for word in get_args(hint) if isinstance(word, Fixed))
    if get_origin(hint) is list:
        element = _kind(where, get_args(hint)[0])
        if isinstance(element, Array):
            raise TypeError(f"{where}: an array of arrays is not Kafka's protocol")
        return Array(element)
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, WireStruct):
        return Nested(hint)
    raise TypeError(f"{where}: {hint} is no wire type")


def _default(where: str, info: msgspec.structs.FieldInfo) -> Any:
    if info.default is not msgspec.NODEFAULT:
        return info.default
    if info.default_factory is not msgspec.NODEFAULT:
        return info.default_factory()
    raise TypeError(f"{where}: every field has a default")


def _check(layout: Layout) -> None:
    tags = [field.tag for field in layout.fields if field.tag is not None]
    if len(tags) != len(set(tags)):
        raise TypeError(f"{layout.cls.__name__}: a tag is used twice")
    for field in layout.fields:
        where = f"{layout.cls.__name__}.{field.name}"
        if field.tag is not None and field.first < layout.flexible:
            raise TypeError(f"{where}: only flexible versions have tagged fields")
        if not field.first <= min(field.last, layout.max_version):
            raise TypeError(f"{where}: no version has this field")
        if field.default is None and field.nullable_since is None:
            raise TypeError(f"{where}: null is not allowed, so it cannot be the default")
        if field.tag_section and (field.default is not None or any(f.tag is None for f in _section(field).fields)):
            raise TypeError(f"{where}: a section of tags is None or a struct of tagged fields alone")
        if isinstance(field.kind, Array):
            _check_element_size(where, field, layout)


def _section(field: Field) -> Layout:
    assert isinstance(field.kind, Nested)
    return LAYOUTS[field.kind.cls]


def _check_element_size(where: str, field: Field, layout: Layout) -> None:
    """Refuse an array whose elements take no bytes: five bytes could announce 2**31 of them."""
    element = field.kind.element if isinstance(field.kind, Array) else field.kind
    for version in range(max(field.first, layout.min_version), min(field.last, layout.max_version) + 1):
        if min_size(element, version, compact=layout.is_flexible(version)) == 0:
            raise TypeError(f"{where}: an element takes no bytes in version {version}")
