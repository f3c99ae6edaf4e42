"""Bounds on what one request may ask for, and on the size of requests and answers.

A request that would pass a bound is refused with an error that Kafka has. The bound between nodes
is larger than that for clients, because forwarding adds the client's name and uses the newest
version.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from ..cluster.errors import Refusal, TooManyChanges
from ..protocol.error_codes import ErrorCode

MAX_ANSWER_BYTES = 100 * 1024 * 1024
"""The largest answer that clients accept (librdkafka: `receive.message.max.bytes`)."""
ENVELOPE_BYTES = 1024
"""The bytes that an Envelope may add to the answer inside it."""
MAX_BETWEEN_NODES_BYTES = 128 * 1024 * 1024
"""The largest request or answer between nodes, whatever `socket.request.max.bytes` is. It is the
same for all nodes of a cluster.
"""
MAX_ROWS = 200_000
"""The most rows of an answer with a row for each number in a request, or with all rows of a thing
each time that the request names it.
"""
MAX_REPEATED_BYTES = 1024 * 1024
"""The most bytes of an answer that may be repetition: further rows about one thing, or one error's
message in many rows.
"""
MAX_CHANGES = 20_000
"""The most topics, partitions, resources and configs that a request may change, since each is
judged, written and recorded.
"""
MAX_CONFIGS_BYTES = 1_000_000
"""The largest size of the configs of one topic or resource, as names and values in JSON. It fits
into a znode and into a line of the audit log.
"""
MAX_NAMES_BYTES = 8_000_000
"""The largest size of all names and values of a request in JSON, which answers, the audit log and
the node's log repeat.
"""
MAX_BYTES_OF_A_CHARACTER = 6
ENTITY_FIELDS = ("creations", "filters", "deletions", "upsertions", "entries", "groups_names")
"""The fields of requests that change ACLs, users, quotas and groups."""
NAME_FIELDS = ("name", "resource_name", "path")
SMALL_BYTES = 32 * 1024
"""The size up to which a request cannot pass the bounds on changes, and is not checked."""


def check_changes(request: Any) -> None:
    """Raise TooManyChanges (INVALID_REQUEST) for a request with more elements than MAX_CHANGES, or
    with more bytes of configs than a znode or an answer can hold.
    """
    elements = [
        *getattr(request, "topics", ()),
        *(getattr(request, "topic_partitions", None) or ()),
        *getattr(request, "topic_names", ()),
        *getattr(request, "resources", ()),
        *getattr(request, "dirs", ()),
    ]
    entities = [each for field in ENTITY_FIELDS for each in getattr(request, field, ())]
    if hasattr(request, "renewers"):
        entities.append(request)  # all that it names stands in the znode of one delegation token
    count = len(elements)
    count += sum(len(getattr(element, field, ())) for element in elements for field in ("configs", "partitions"))
    if count + len(entities) > MAX_CHANGES:
        text = f"{len(entities)} changes" if entities else f"{count} topics, partitions, resources and configs"
        raise TooManyChanges(ErrorCode.INVALID_REQUEST, f"The request has {text}; at most {MAX_CHANGES} are allowed.")
    texts = [*map(_texts, elements), *(list(_all_texts(each)) for each in entities)]
    if _is_longer(list(chain.from_iterable(texts)), MAX_NAMES_BYTES):
        text = f"The names and values in the request have more than {MAX_NAMES_BYTES} bytes."
        raise TooManyChanges(ErrorCode.INVALID_REQUEST, text)
    if any(_is_longer(each, MAX_CONFIGS_BYTES) for each in texts):
        text = f"The configs that the request names for one resource have more than {MAX_CONFIGS_BYTES} bytes."
        raise TooManyChanges(ErrorCode.INVALID_REQUEST, text)


def _texts(element: Any) -> list[str]:
    """Return an element's name or path, and the names and values of its configs."""
    if isinstance(element, str):
        return [element]
    name: str = next(filter(None, (getattr(element, field, "") for field in NAME_FIELDS)), "")
    texts = [name]
    for config in getattr(element, "configs", ()):
        texts += (config.name, config.value or "")
    return texts


def _all_texts(value: Any) -> Iterator[str]:
    """Yield all texts in an element, whatever fields it has."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _all_texts(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _all_texts(getattr(value, name))


def _is_longer(texts: Sequence[str], size: int) -> bool:
    """Return whether the texts take more than `size` bytes in JSON."""
    characters = sum(map(len, texts))
    return characters > size or (
        characters * MAX_BYTES_OF_A_CHARACTER > size and len(msgspec.json.encode(texts)) > size
    )


class RowCount:
    """Counts the rows of an answer that a short request can make long."""

    def __init__(self) -> None:
        self._rows = self._bytes = 0

    def add(self, rows: int, texts: int = 0) -> None:
        """Count rows before they are made, and the bytes of their texts. Raises INVALID_REQUEST."""
        self._rows += rows
        self._bytes += texts
        if self._rows > MAX_ROWS or self._bytes > MAX_ANSWER_BYTES:
            raise Refusal(ErrorCode.INVALID_REQUEST, "The answer would be too long: ask for less at a time.")


class AnswerSize:
    """Counts the bytes of an answer that consists of encoded rows."""

    def __init__(self) -> None:
        self._left = MAX_ANSWER_BYTES
        self._left_for_repeated = MAX_REPEATED_BYTES
        self._counted: set[Hashable] = set()

    def takes(self, thing: Hashable, row: bytes) -> bool:
        """Count a row about `thing`, and return whether the answer has room for it. Further rows
        about one thing share MAX_REPEATED_BYTES. Raises INVALID_REQUEST if the answer is full.
        """
        if thing in self._counted:
            self._left_for_repeated -= len(row)
            return self._left_for_repeated >= 0
        self._counted.add(thing)
        self._left -= len(row)
        if self._left < 0:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"The answer would have more than {MAX_ANSWER_BYTES} bytes: ask for less at a time.",
            )
        return True
