"""The rows that leave the table `quarantine`, because their files were read again: what stands
there now is in the rows that were written since.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from ..datafiles import DataFile, NewFiles, batches
from ..location import Location
from ..schemas import Table
from .files import lasting_name


class Rewritten(NamedTuple):
    """The files that were written anew, those that they replace, and how many rows they lack."""

    adds: list[DataFile]
    removes: list[DataFile]
    rows: int


def without(tables: Location, files: Sequence[DataFile], read_again: Mapping[str, int]) -> Rewritten:
    """Write the files of the quarantine anew that have rows of files which were `read_again`, by
    their lasting names, from after so many lines on. Raises OSError.
    """
    found = Rewritten([], [], 0)
    if not read_again:
        return found
    rows = 0
    written = NewFiles(tables, Table.QUARANTINE, found.adds)
    for file in files:
        kept = [(some, _kept(some, read_again)) for some in batches(tables, Table.QUARANTINE, [file], _NAMES)]
        left_out = sum(flags.count(False) for _, flags in kept)
        if left_out:
            rows += left_out
            found.removes.append(file)
            for some, flags in kept:
                written.write(None, some.filter(pa.array(flags, pa.bool_())))
    written.finish()
    return found._replace(rows=rows)


_NAMES = Table.QUARANTINE.schema.names


def _kept(rows: pa.RecordBatch, read_again: Mapping[str, int]) -> list[bool]:
    places = zip(rows.column("file").to_pylist(), rows.column("line").to_pylist(), strict=True)
    return [line <= read_again.get(lasting_name(file), line) for file, line in places]
