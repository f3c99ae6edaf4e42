"""The JSON types that Kafka's znodes share, and how JSON is written and read.

Rule: each znode's JSON is declared once, its keys in the order in which Kafka writes them, so
what is written is byte for byte what Kafka 3.9 writes. What is read may have been written by any
Kafka since 0.8 or by another tool: unknown keys are ignored, but for reassignments, and what makes
no sense, or would not fit into Kafka's messages, raises `MalformedZnodeError`.
"""

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from ...protocol.wire import MAX_TEXT_BYTES
from ...store.base import HIDDEN

Shape = TypeVar("Shape")

MAX_INT = 2**31 - 1
MAX_TEXT = 255
"""The most characters of a name: no file name and no host name is longer."""

Int = Annotated[int, Meta(ge=-MAX_INT - 1, le=MAX_INT)]
BrokerId = Annotated[int, Meta(ge=0, le=MAX_INT)]
Leader = Annotated[int, Meta(ge=-1, le=MAX_INT)]
Epoch = Annotated[int, Meta(ge=0, le=MAX_INT)]
Replicas = tuple[BrokerId, ...]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]


class MalformedZnodeError(ValueError):
    """The data of a znode is not what any Kafka writes."""


def fits(text: str) -> bool:
    """Whether Kafka's messages can carry a text. One that does not fit would spoil each response
    that holds it, whatever else that tells.
    """
    return len(text) <= MAX_TEXT_BYTES // 4 or len(text.encode("utf-8", "surrogatepass")) <= MAX_TEXT_BYTES


def check_fit(what: str, texts: Iterable[str]) -> None:
    """Raise MalformedZnodeError if one of these texts does not fit into Kafka's messages."""
    for text in texts:
        if not fits(text):
            raise MalformedZnodeError(f"{what} has more than {MAX_TEXT_BYTES} bytes: {text!r:.80}")


write = msgspec.json.Encoder().encode


def read(what: str, data: bytes | None, reader: msgspec.json.Decoder[Shape], *, holds_secrets: bool = False) -> Shape:
    """Decode the data of a znode. Raises MalformedZnodeError, which quotes the beginning of the
    data unless it may hold secrets.
    """
    if data is HIDDEN.data:
        raise MalformedZnodeError("ZooKeeper's access control hides it from this node")
    try:
        return reader.decode(data or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if holds_secrets:
            raise MalformedZnodeError(f"{what} cannot be read ({type(error).__name__})") from None
        raise MalformedZnodeError(f"{what} cannot be read ({error}): {data!r:.80}") from None
