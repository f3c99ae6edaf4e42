"""The texts that are most of a line, and that the next lines repeat: topics' states, requests, and
the replicas in them. They stay JSON when a line is decoded, and each different text of a block is
read once.

Rule: whatever is left as JSON is read later by msgspec with the type that it has in the log, so it
is judged as strictly as the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import field

from ...audit.event import NamedState, RecordedState, Requested
from ..schemas import INT

Replicas = tuple[tuple[int, ...], ...]
Text = msgspec.Raw | None
TYPES = {
    "replicas": Replicas,
    "state": RecordedState | None,
    "before": RecordedState | None,
    "after": RecordedState | None,
    "requested": Requested | None,
}
"""The types of the fields that are left as JSON, by name."""
NULL = b"null"


def with_texts(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a kind of struct that leaves these fields as JSON."""
    fields = []
    for each in msgspec.structs.fields(kind):
        default: Any = {"default": each.default, "default_factory": each.default_factory}
        fields.append((each.name, _with_texts(each.name, each.type), field(**default)))
    config = kind.__struct_config__
    return msgspec.defstruct(
        kind.__name__, fields, kw_only=True, frozen=True, gc=False, tag_field=config.tag_field, tag=config.tag
    )


def _with_texts(name: str, type_: Any) -> Any:
    if TYPES.get(name) == type_:
        return msgspec.Raw
    return tuple[_NAMED_STATE, ...] if (name, type_) == ("topics", tuple[NamedState, ...]) else type_


_NAMED_STATE: Any = with_texts(NamedState)
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    RecordedState | None: msgspec.json.Decoder(with_texts(RecordedState) | None),
    Requested | None: msgspec.json.Decoder(with_texts(Requested) | None),
    Replicas: msgspec.json.Decoder(Replicas),
}


def arrays_of(type_: Any, make: Callable[[Sequence[Any]], pa.Array], *columns: Sequence[Text]) -> Iterator[pa.Array]:
    """Yield the arrays of columns of texts, all of one type, null where there is no text. `make`
    makes an array of what the different texts hold. Raises msgspec.DecodeError and what `make`
    raises.
    """
    numbers: dict[bytes, int] = {}
    codes = [[numbers.setdefault(bytes(text or NULL), len(numbers)) for text in column] for column in columns]
    made = make(list(map(_DECODERS[type_].decode, numbers)))
    return (made.take(pa.array(each, INT)) for each in codes)
