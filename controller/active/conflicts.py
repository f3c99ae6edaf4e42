"""Handles commits that the store refused because another process wrote to the same znodes.

All elements planned after such a commit are planned again. An element that keeps meeting conflicts,
or meets one although nothing has changed, is refused, so that the writer goes on.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from ...cluster.delta import EntitiesChanged
from ...cluster.entity_paths import is_followed
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...protocol.error_codes import ErrorCode
from ...store.base import (
    NodeExists,
    NodeMissing,
    NodeNotEmpty,
    SessionExpired,
    Store,
    StoreError,
    StoreUnavailable,
    VersionConflict,
    whole_trees,
)
from .commits import Commit
from .jobs import ControllerMoved, InDoubt, StagedElement, WriterJob

MAX_CONFLICTS = 10
"""The most conflicts after which a job is planned again; then the element that met them is refused.
"""
MAX_UNEXPLAINED = 3
"""The most conflicts without a visible change in the store after which a job is planned again.
Another process may have taken its write back at once.
"""
OPERATIONS_BEFORE = 2
"""The number of operations at the beginning of each commit that writes: the fence and the count."""

Reread = Callable[[Image, StoreError], Awaitable[Sequence[StagedElement]]]
"""Returns what other processes wrote where a commit met this error, as elements without operations
that bring the image up to date. Raises StoreError.
"""


async def nothing_new(_image: Image, _error: StoreError) -> Sequence[StagedElement]:
    return ()


def raise_if_fatal(commit: Commit, error: StoreError) -> None:
    """Raise ControllerMoved, SessionExpired or InDoubt, unless the store refused one operation of
    an element of which nothing took effect.
    """
    if error.index == 0:  # the fence
        raise ControllerMoved from error
    if isinstance(error, SessionExpired):
        raise error
    if isinstance(error, StoreUnavailable) or error.index is None or error.index < OPERATIONS_BEFORE:
        raise InDoubt from error
    if commit.owners[error.index - OPERATIONS_BEFORE].begun:
        raise InDoubt from error  # the first part of a divided element took effect, so the state is loaded again


def count_conflict(job: WriterJob, element: StagedElement, refusal: Refusal, *, is_explained: bool) -> None:
    """Count a conflict at an element of this job. After too many of them, the job's next plan
    refuses the element with this refusal.
    """
    job.conflicts += 1
    job.unexplained += not is_explained
    if job.unexplained > MAX_UNEXPLAINED or job.conflicts > MAX_CONFLICTS:
        job.barred[element.key] = refusal


async def learn_below(store: Store, element: StagedElement, error: StoreError) -> bool:
    """If an entity's znode was not deleted because others have put znodes below it, note these for
    the next plan of its job. Return whether nothing was noted before. Raises StoreError.
    """
    path, job = error.path, element.job
    if (
        not isinstance(error, NodeNotEmpty)
        or not isinstance(element.delta, EntitiesChanged)
        or path is None
        or job is None
    ):
        return False
    is_new = path not in job.below
    job.below[path] = (await whole_trees(store, [path]))[1:]
    return is_new


def kept_elements(undone: Iterable[StagedElement], refused: StagedElement, refusal: Refusal) -> list[StagedElement]:
    """Return the undone elements whose jobs took effect in part. They are sent as planned, or
    refused if they build upon an element that is not sent.
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
    """Return whether a commit was refused because an earlier one was."""
    return isinstance(error, VersionConflict) and error.index == 1


def refusal_for(error: StoreError) -> Refusal:
    """Return the refusal for a client whose change met this error again and again."""
    if isinstance(error, NodeExists | NodeMissing | NodeNotEmpty | VersionConflict) and is_followed(error.path or ""):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"Another program keeps changing {error.path}.")
    match error:
        case NodeExists():
            return Refusal(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Another program has created {error.path}.",
            )
        case NodeMissing():
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        case VersionConflict():
            return Refusal(ErrorCode.INVALID_UPDATE_VERSION)
        case _:
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
