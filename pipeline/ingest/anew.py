"""All audit files read again, in place of what the tables hold: for tables of an older form.

Rule: nothing is removed unless every file that was ever read lies in the folders, so no event is
lost.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from ..delta import OLD_STATE, STATE, Tables, TablesError
from ..schemas import Table
from .files import Found, base_name
from .state import Ledger


class _OldState(msgspec.Struct):
    """What is used of the state of versions before Delta tables."""

    files: dict[str, object] = {}


def clear(tables: Tables, found: Mapping[str, Found]) -> None:
    """Remove the tables, whose audit files were all `found`. Raises TablesError, OSError."""
    there = {base_name(name) for name in found}
    if gone := sorted(name for name in _read(tables) if base_name(name) not in there):
        others = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise TablesError(
            f"What the tables hold of {gone[0]}{others} does not lie in the folders: "
            f"keep {tables.location}, and ingest into another folder."
        )
    filesystem = tables.location.filesystem()
    for folder in (*(table.value for table in Table), STATE):
        with suppress(FileNotFoundError):
            filesystem.delete_dir(folder)


def _read(tables: Tables) -> Iterable[str]:
    """Return the names of the files that are in the tables."""
    try:
        with tables.location.filesystem().open_input_stream(OLD_STATE) as stream:
            return msgspec.json.decode(stream.readall(), type=_OldState).files
    except FileNotFoundError:
        return Ledger(tables).state.files
