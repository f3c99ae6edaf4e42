"""Commits that the store refused because others wrote where the controller was about to write.

Everything that was planned behind such a commit is planned again. An element that meets the same
again and again, or meets it although nothing has changed, is refused, so that the writer goes on.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..metadata.image import Image
from ..store.base import NodeExists, NodeMissing, SessionExpired, StoreError, StoreUnavailable, VersionConflict
from .commits import Commit
from .jobs import ControllerMoved, Element, InDoubt, WriterJob

MAX_CONFLICTS = 10
"""How often a job is planned again because others wrote what it was about to write, before the
element that met them is refused.
"""
MAX_UNEXPLAINED = 3
"""How often a job is planned again although the store shows nothing new where others wrote: they
may have taken it back at once.
"""
OPERATIONS_BEFORE = 2
"""How many operations a commit that writes begins with: the fence and the count."""

Reread = Callable[[Image, str], Awaitable[Sequence[Element]]]
"""Returns what others wrote at this path, as elements without operations that bring the image up to
date. Raises StoreError.
"""


async def nothing_new(_image: Image, _path: str) -> Sequence[Element]:
    return ()


def raise_if_fatal(commit: Commit, error: StoreError) -> None:
    """Raise ControllerMoved, SessionExpired or InDoubt, unless the store refused one operation of
    this commit, of an element of which nothing took effect.
    """
    if error.index == 0:  # the fence
        raise ControllerMoved from error
    if isinstance(error, SessionExpired):
        raise error
    if isinstance(error, StoreUnavailable) or error.index is None or error.index < OPERATIONS_BEFORE:
        raise InDoubt from error
    if commit.owners[error.index - OPERATIONS_BEFORE].begun:
        raise InDoubt from error  # the first part of a divided element stands: let the state be loaded


def count_conflict(job: WriterJob, element: Element, refusal: Refusal, *, is_explained: bool) -> None:
    """Count that others wrote what an element of this job was about to write. After too many times
    the job's next plan gets the refusal for it.
    """
    job.conflicts += 1
    job.unexplained += not is_explained
    if job.unexplained > MAX_UNEXPLAINED or job.conflicts > MAX_CONFLICTS:
        job.barred[element.key] = refusal


def kept_elements(undone: Iterable[Element], refused: Element, refusal: Refusal) -> list[Element]:
    """Return those undone elements whose jobs took effect in part. They are sent as planned, or
    refused where they build upon an element that is not.
    """
    kept, gone = [], {refused.key}
    for element in undone:
        if element.can_be_planned_again:
            gone.add(element.key)
            continue
        if element.key is not None and element.key in gone:
            element.refuse(refusal)
        kept.append(element)
    return kept


def is_behind(error: StoreError) -> bool:
    """Return whether a commit was refused because one before it was."""
    return isinstance(error, VersionConflict) and error.index == 1


def refusal_for(error: StoreError) -> Refusal:
    """Return what a client is answered whose change met this error again and again."""
    match error:
        case NodeExists():
            return Refusal(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Somebody else than this cluster's controller has created {error.path}.",
            )
        case NodeMissing():
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        case VersionConflict():
            return Refusal(ErrorCode.INVALID_UPDATE_VERSION)
        case _:
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
