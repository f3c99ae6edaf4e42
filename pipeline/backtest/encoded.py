"""Columns of events as numbers that stand for their values, so that combinations of values are
found without a look at each event.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..schemas import Table
from .replaying import Window

SCHEMA = Table.EVENTS.schema

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

CONFIG, DEFAULT = "config ", "default "
"""The beginnings of the names of columns that hold the value of one config, requested or by
default.
"""

SEARCHED = 256
"""How many lines are searched at once, few enough that their copy stays in the processor's cache.
"""

REQUESTED = "requested"
_OF_REQUESTED = frozenset(field.name for field in SCHEMA.field(REQUESTED).type)
_SOURCES: Mapping[str, str] = {
    "num_partitions": "replicas",
    "replication_factor": "replicas",
    "least_replicas": "replicas",
    "most_replicas": "replicas",
}
"""The columns of `events` from which other columns are made, by the names of the latter."""
_REDUCED: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "replication_factor": lambda lengths, first: lengths[first],
    "least_replicas": np.minimum.reduceat,
    "most_replicas": np.maximum.reduceat,
}
"""Functions from the lengths of rows of replicas, and the first row of each topic, to a number for
each topic.
"""


def projection(names: Iterable[str]) -> dict[str, pc.Expression]:
    """Return what has to be read of the table `events` for columns of these names."""
    sources = {_source(name) for name in names}
    return {name: pc.field(REQUESTED, name) if name in _OF_REQUESTED else pc.field(name) for name in sorted(sources)}


def _source(name: str) -> str:
    if name.startswith(CONFIG):
        return "configs"
    return "default_configs" if name.startswith(DEFAULT) else _SOURCES.get(name, name)


def flags(column: pa.Array | pa.ChunkedArray) -> Flags:
    """Convert a column to booleans; null is false."""
    found: Flags = np.asarray(pc.fill_null(column, fill_value=False))
    return found


def within(times: Numbers, window: Window) -> Flags:
    found = np.ones(len(times), np.bool_)
    if window.since_ms is not None:
        found &= times >= window.since_ms
    if window.until_ms is not None:
        found &= times < window.until_ms
    return found


def mention(lines: pa.ChunkedArray, *words: bytes) -> Flags:
    """Return which lines have one of these words in them. Many lines are searched at once, because
    hardly any has one.
    """
    found = np.zeros(len(lines), np.bool_)
    begin = 0
    for chunk in lines.chunks:
        if len(chunk):
            _, ends, data = chunk.buffers()
            offsets = np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            for first in range(0, len(chunk), SEARCHED):
                some = offsets[first : first + SEARCHED + 1]
                text = memoryview(data)[some[0] : some[-1]].tobytes()
                places = [place for word in words for place in _places(text, word)]
                if places:
                    rows = np.searchsorted(some, np.array(places) + some[0], side="right") - 1
                    found[begin + first + rows] = True
        begin += len(chunk)
    return found


def _places(text: bytes, word: bytes) -> Iterator[int]:
    if word[:1] not in text:  # the search for one byte takes a tenth of that for several
        return
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


class Encoded:
    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._known: dict[str, tuple[Numbers, list[Any]]] = {}

    def add(self, name: str, values: Numbers) -> None:
        self._table = self._table.append_column(name, pa.array(values))

    def combinations(self, names: Sequence[str], rows: Numbers) -> tuple[list[tuple[Any, ...]], Numbers]:
        """Return the different combinations of values in these columns and rows, and for each row
        the index of its combination.
        """
        which = np.zeros(len(rows), np.int64)
        for name in names:
            codes, values = self._codes(name)
            together = pa.array(which * len(values) + codes[rows])
            which = together.dictionary_encode().indices.to_numpy().astype(np.int64)
        first = np.zeros(which.max(initial=-1) + 1, np.int64)
        first[which[::-1]] = np.arange(len(rows))[::-1]
        columns = []
        for name in names:
            codes, values = self._codes(name)
            columns.append([values[code] for code in codes[rows[first]].tolist()])
        return list(zip(*columns, strict=True)) if names else [()], which

    def _codes(self, name: str) -> tuple[Numbers, list[Any]]:
        """Return the code of each event's value, and the values by code."""
        found = self._known.get(name)
        if found is None:
            encoded = self._column(name).dictionary_encode(null_encoding="encode")
            values = encoded.dictionary.to_pylist()
            found = self._known[name] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), values
        return found

    def _column(self, name: str) -> pa.Array:
        column = self._table.column(_source(name)).combine_chunks()
        if name.startswith((CONFIG, DEFAULT)):
            return pc.map_lookup(column, pa.scalar(name.partition(" ")[2]), "first")
        if name == "num_partitions":
            return pc.list_value_length(column)
        return _of_rows(column, name) if name in _REDUCED else column


def _of_rows(column: pa.ListArray, name: str) -> pa.Array:
    """Return the length of each topic's first row of replicas, or of the shortest or longest one;
    null for a topic without partitions.
    """
    topics = pc.list_parent_indices(column).to_numpy()
    found: list[int | None] = [None] * len(column)
    if len(topics):
        first = np.flatnonzero(np.r_[True, np.diff(topics) != 0])
        lengths = _REDUCED[name](pc.list_value_length(pc.list_flatten(column)).to_numpy(), first)
        for topic, length in zip(topics[first].tolist(), lengths.tolist(), strict=True):
            found[topic] = length
    return pa.array(found, pa.int32())
