"""Compiles declarations into functions: one encoder and one decoder for each message and version,
each made when it is first used.

The source of each function is registered in `linecache`, so that tracebacks and debuggers show it.
The command `minicontroller protocol show` prints it.
"""

import linecache
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar, cast

from . import wire
from .decoder_source import decoder_source
from .encoder_source import encoder_source
from .errors import MalformedMessage, UnencodableMessage
from .schema import Array, Layout, Nested, WireStruct, layout_of

S = TypeVar("S", bound=WireStruct)
Encoder = Callable[[S], bytes]
Decoder = Callable[[bytes, int], tuple[S, int]]

# The names that generated code uses, besides the classes of its message.
RUNTIME: dict[str, Any] = {
    **{name: value for name, value in vars(wire).items() if not name.startswith("_")},
    "MalformedMessage": MalformedMessage,
    "UnencodableMessage": UnencodableMessage,
    "Struct": struct.Struct,
    "pack": struct.pack,
    "unpack_from": struct.unpack_from,
    "struct_error": struct.error,
}


def encoder(cls: type[S], version: int) -> Encoder[S]:
    """Return the function that encodes `cls` in `version`.

    Raises:
        LookupError: the class is no message, or has no such version.
    """
    return cast("Encoder[S]", _encoder(cls, version))


def decoder(cls: type[S], version: int) -> Decoder[S]:
    """Return the function that decodes `cls` in `version`. It takes bytes and an offset, and
    returns the message and the offset after it.

    Raises:
        LookupError: the class is no message, or has no such version.
    """
    return cast("Decoder[S]", _decoder(cls, version))


def counting_decoder(cls: type[S], version: int) -> Decoder[S]:
    """Return a decoder for large requests of clients, which raises MalformedMessage for more than
    MAX_ELEMENTS elements.
    """
    return cast("Decoder[S]", _decoder(cls, version, counts=True))


def sources_of(cls: type[WireStruct], version: int) -> tuple[str, str]:
    """Return the source of the encoder and of the decoder.

    Raises:
        LookupError: the class is no message, or has no such version.
    """
    layout = checked_layout(cls, version)
    return encoder_source(layout, version, errors="strict"), decoder_source(layout, version, errors="strict")


@cache
def _encoder(cls: type[WireStruct], version: int, errors: str = "strict") -> Callable[..., Any]:
    layout = checked_layout(cls, version)
    source = encoder_source(layout, version, errors=errors)

    def lenient(message: WireStruct) -> Any:
        return _encoder(cls, version, "replace")(message)

    names = {"lenient": lenient, **_classes(layout)}
    return _compiled(source, "encode", f"{cls.__name__} v{version} encoder {errors}", names)


@cache
def _decoder(
    cls: type[WireStruct], version: int, errors: str = "strict", *, counts: bool = False
) -> Callable[..., Any]:
    layout = checked_layout(cls, version)
    source = decoder_source(layout, version, errors=errors, counts=counts)

    def lenient(data: bytes, offset: int) -> Any:
        return _decoder(cls, version, "replace", counts=counts)(data, offset)

    names = {"lenient": lenient, **_classes(layout)}
    return _compiled(
        source, "decode", f"{cls.__name__} v{version} decoder {errors}{' counting' if counts else ''}", names
    )


def _classes(layout: Layout) -> dict[str, object]:
    """Return a message's structs by the names that they have in sources."""
    return {struct.__name__: struct for struct in structs_of(layout)}


def checked_layout(cls: type[WireStruct], version: int) -> Layout:
    layout = layout_of(cls)
    if not layout.min_version <= version <= layout.max_version:
        raise LookupError(f"{cls.__name__} has versions {layout.min_version} to {layout.max_version}, not {version}")
    return layout


def structs_of(layout: Layout) -> Iterator[type[WireStruct]]:
    """Yield the class of a message and of every struct inside it."""
    yield layout.cls
    for field in layout.fields:
        inner = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(inner, Nested):
            yield from structs_of(layout_of(inner.cls))


def _compiled(source: str, name: str, title: str, names: dict[str, Any]) -> Callable[..., Any]:
    filename = f"<minicontroller {title}>"
    namespace = {**RUNTIME, **names}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - generated from this program's declarations
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    function: Callable[..., Any] = namespace[name]
    return function
