"""How much one request may ask for, and how large it and its answer may be.

Rule: who asks for little costs little, and what would pass a bound is refused with Kafka's own
error. Between nodes there is room above what clients may send: a request grows there by who asked
for it, and by the newest version's form.
"""

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import msgspec

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal, TooMuch

MAX_ANSWER_BYTES = 100 * 1024 * 1024
"""What clients take at most: librdkafka's `receive.message.max.bytes`."""
ENVELOPE_BYTES = 1024
"""More than stands round an answer in an Envelope."""
MAX_BETWEEN_NODES_BYTES = 128 * 1024 * 1024
"""Of a request or an answer between nodes, however small `socket.request.max.bytes` is: the same
for all nodes of a cluster.
"""
MAX_REPEATED_BYTES = 1024 * 1024
"""Of an answer: what it says of a thing for the second time, or of an error at each of many
elements.
"""
MAX_CHANGES = 20_000
"""Of topics, resources and their configs in one request that changes something: each is judged,
written and told of.
"""
MAX_CONFIGS_BYTES = 1_000_000
"""Of the names and values of one topic's or resource's configs, in JSON: no znode holds more, and a
line of the audit log has to.
"""
MAX_NAMES_BYTES = 8_000_000
"""The same of all that one request wants to change: all of it is told, in answers, in the audit log
and in the node's log.
"""
MAX_BYTES_OF_A_CHARACTER = 6
SMALL_BYTES = 32 * 1024
"""Of a request that cannot have so many."""


def check_changes(request: Any) -> None:
    """Raise TooMuch, INVALID_REQUEST, for a request of more elements than anybody changes at once,
    or more configs than anything has.
    """
    elements = [
        *getattr(request, "topics", ()),
        *getattr(request, "topic_names", ()),
        *getattr(request, "resources", ()),
    ]
    count = len(elements) + sum(len(getattr(element, "configs", ())) for element in elements)
    if count > MAX_CHANGES:
        raise TooMuch(
            ErrorCode.INVALID_REQUEST,
            f"The request has {count} topics, resources and configs, {MAX_CHANGES} are allowed.",
        )
    texts = [_texts(element) for element in elements]
    if _is_longer(list(chain.from_iterable(texts)), MAX_NAMES_BYTES):
        text = f"The names and values in the request have more than {MAX_NAMES_BYTES} bytes."
        raise TooMuch(ErrorCode.INVALID_REQUEST, text)
    if any(_is_longer(each, MAX_CONFIGS_BYTES) for each in texts):
        text = f"The configs that the request names for one resource have more than {MAX_CONFIGS_BYTES} bytes."
        raise TooMuch(ErrorCode.INVALID_REQUEST, text)


def _texts(element: Any) -> list[str]:
    """Return an element's name, and the names and values of its configs."""
    if isinstance(element, str):
        return [element]
    name: str = getattr(element, "name", "") or getattr(element, "resource_name", "")
    texts = [name]
    for config in getattr(element, "configs", ()):
        texts += (config.name, config.value or "")
    return texts


def _is_longer(texts: Sequence[str], size: int) -> bool:
    """Whether the texts take more than `size` bytes in JSON."""
    characters = sum(map(len, texts))
    return characters > size or (
        characters * MAX_BYTES_OF_A_CHARACTER > size and len(msgspec.json.encode(texts)) > size
    )


class AnswerSize:
    """The size of an answer that is put together of encoded rows."""

    def __init__(self) -> None:
        self._left = MAX_ANSWER_BYTES
        self._left_for_repeated = MAX_REPEATED_BYTES
        self._told: set[Hashable] = set()

    def takes(self, thing: Hashable, row: bytes) -> bool:
        """Whether there is room for a row about the thing; no row for endless repetitions. Raises
        INVALID_REQUEST if the answer is full.
        """
        if thing in self._told:
            self._left_for_repeated -= len(row)
            return self._left_for_repeated >= 0
        self._told.add(thing)
        self._left -= len(row)
        if self._left < 0:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"The answer would have more than {MAX_ANSWER_BYTES} bytes: ask for less at a time.",
            )
        return True
