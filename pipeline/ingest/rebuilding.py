"""Removes the tables for `ingest --anew`, which reads all audit files again.

It removes only tables of this program, and only if every audit file that was ever read is in the
folders, so no event is lost. An object marks the removal: while it exists, other runs refuse what
is left of the tables.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from pyarrow import fs

from ..delta import CLEARING, OLD_STATE, Tables, TablesError
from ..location import output_stream
from ..schemas import Table
from .files import AuditFile, lasting_name
from .state import loaded, states


class _OldState(msgspec.Struct):
    """The part that is used of the state of versions before Delta tables."""

    files: dict[str, object] = {}


def clear_tables(tables: Tables, found: Mapping[str, AuditFile]) -> None:
    """Remove the tables, whose audit files were all `found`. Raises TablesError, OSError."""
    tables.check_folders()
    filesystem = tables.location.filesystem()
    if filesystem.get_file_info(CLEARING).type == fs.FileType.NotFound:
        there = set(map(lasting_name, found))
        if gone := sorted(name for name in _read(tables) if lasting_name(name) not in there):
            others = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise TablesError(
                f"The tables have events of {gone[0]}{others}, which is in none of the folders: "
                f"keep {tables.location}, and ingest into another folder."
            )
        output_stream(tables.location, CLEARING).close()
    for table in Table:
        with suppress(FileNotFoundError):
            filesystem.delete_dir(table.value)
    for name in (*states(tables), OLD_STATE, CLEARING):
        with suppress(FileNotFoundError):
            filesystem.delete_file(name)


def _read(tables: Tables) -> Iterable[str]:
    """Return the names of the files that are in the tables. Raises TablesError if there is
    something that this program did not make.
    """
    filesystem = tables.location.filesystem()
    try:
        with filesystem.open_input_stream(OLD_STATE) as stream:
            return msgspec.json.decode(stream.readall(), type=_OldState).files
    except FileNotFoundError:
        pass
    except msgspec.DecodeError as error:
        raise TablesError(
            f"{tables.location.child(OLD_STATE)} is broken ({error}): ingest everything into another folder."
        ) from None
    if found := states(tables):
        return loaded(tables, found[-1]).files
    for info in filesystem.get_file_info([table.value for table in Table]):
        if info.type != fs.FileType.NotFound:
            raise TablesError(
                f"{tables.location.child(info.path)} exists, and no state describes it: ingest into another folder."
            )
    return ()
