"""The rest that a run leaves in the files: lines whose end is yet to come, or never will, and files
that it could not read.

Rule: what was not read is reported as long as it is not.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ...audit.files import name_parts
from ..location import reason
from .files import UNKNOWN, AuditFile, FileProgress, as_text, base_name, former_names, is_read, lasting_name
from .state import State


class Leftovers(NamedTuple):
    """The rest of each file that could not be read, by its name as text."""

    pending: dict[str, int]
    """How many bytes of each file follow its last line's end."""
    torn: dict[str, int]
    """How many bytes of each file that is finished follow its last line's end."""
    unreadable: dict[str, str]
    """The reasons why files could not be read, by file."""
    lost: dict[str, int]
    """How many events each file holds no more that were read of it."""


def leftovers(found: Mapping[str, AuditFile], files: Mapping[str, FileProgress]) -> Leftovers:
    left = Leftovers({}, {}, {}, {})
    former = former_names(found, files)
    newest = dict(sorted(filter(None, map(_key, found))))
    for name, file in found.items():
        shown = as_text(str(file.file))
        progress = files.get(former.get(name, name))
        if why := _why_not(name, file, progress):
            left.unreadable[shown] = why
            continue
        if progress is not None and UNKNOWN < progress.events < progress.most:
            left.lost[shown] = progress.most - progress.events
        rest = file.size if progress is None else progress.rest if file.is_compressed else file.size - progress.consumed
        if rest > 0:
            left.pending[shown] = rest
            key = _key(name)
            if file.is_compressed or (key is not None and key[1] < newest[key[0]]):
                left.torn[shown] = rest
    return left


def note_leftovers(state: State, found: Mapping[str, AuditFile], left: Leftovers) -> None:
    """Note in the state what could not be read; what is known of files that were not looked at
    stays.
    """
    looked_at = {lasting_name(as_text(name)) for name in found}
    for noted in (state.torn, state.unreadable, state.lost):
        for shown in [each for each in noted if lasting_name(each) in looked_at]:
            del noted[shown]
    state.torn.update(left.torn)
    state.unreadable.update(left.unreadable)
    state.lost.update(left.lost)


def _why_not(name: str, file: AuditFile, progress: FileProgress | None) -> str | None:
    if as_text(name) != name:
        return "its name is not UTF-8"
    if progress is not None and is_read(file, progress):
        return None
    try:
        file.file.open().close()
    except FileNotFoundError:
        return None
    except OSError as error:
        return reason(error)
    return None


def _key(name: str) -> tuple[tuple[str, int], tuple[int, int, int]] | None:
    """Split a file's name into cluster and node, and epoch, first sequence and number among files
    of that name.
    """
    parts = name_parts(base_name(name))
    return parts and ((parts.cluster_id, parts.node), (parts.epoch, parts.sequence, parts.again))
