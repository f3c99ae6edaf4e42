"""Packs the writer's elements into commits: in order, many in one, below the store's limit."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from ...cluster.delta import TopicBecomes
from ...cluster.entities import Topic
from ...store.base import Operation, StoreError, weight
from .jobs import StagedElement


class Commit:
    """Operations that take effect together. `finishes` are the elements that complete with the
    commit, in order.
    """

    __slots__ = ("error", "finished", "finishes", "operations", "owners", "place", "weight", "zxid")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.owners: list[StagedElement] = []
        """The element of each operation."""
        self.finishes: list[StagedElement] = []
        self.weight = 0
        self.place = 0
        """The number of commits with operations that were sent before this one."""
        self.finished = False
        """Whether the store has answered."""
        self.error: StoreError | None = None
        self.zxid = -1
        """The transaction that it became; -1 if it did not."""

    def add(self, element: StagedElement, operations: Sequence[Operation], total: int, *, last: bool) -> None:
        self.operations.extend(operations)
        self.owners.extend([element] * len(operations))
        self.weight += total
        if last:
            self.finishes.append(element)

    def begun(self) -> None:
        """Note that the commit is on its way to the store."""
        for element in dict.fromkeys(self.owners):
            element.begun += 1

    def refused(self) -> None:
        """Note that the store refused the commit, so that none of its operations took effect."""
        for element in dict.fromkeys(self.owners):
            element.begun -= 1

    @property
    def elements(self) -> list[StagedElement]:
        """The elements of the commit in order: those that complete with it, then one that continues
        in the next commit, if there is one.
        """
        divided = self.owners[-1:] if self.owners and self.owners[-1] not in self.finishes else []
        return [*self.finishes, *divided]

    def created(self) -> list[Topic]:
        """Return the topics that the commit created. A topic that is too large for one commit is
        not among them, because it is older than its last commit.
        """
        whole = (element.delta for element in self.finishes if element.begun == 1)
        return [delta.topic for delta in whole if isinstance(delta, TopicBecomes)]


def pack(elements: Iterable[StagedElement], limit: int) -> list[Commit]:
    """Pack elements, in order, into commits of at most `limit` bytes. The operations of one job
    share a commit if they fit; only an element that exceeds a whole commit is divided.
    """
    commits: list[Commit] = []
    for _, group in groupby(elements, key=lambda element: element.job):
        of_job = list(group)
        total = sum(element.weight for element in of_job)
        if not commits or (commits[-1].weight + total > limit >= total):
            commits.append(Commit())
        for element in of_job:
            _add(commits, element, limit)
    return commits


def _add(commits: list[Commit], element: StagedElement, limit: int) -> None:
    total = element.weight
    if commits[-1].weight + total > limit:
        commits.append(Commit())
    if total <= limit:
        commits[-1].add(element, element.operations, total, last=True)
        return
    first = size = 0
    for index, one in enumerate(map(weight, element.operations)):
        if size + one > limit:
            commits[-1].add(element, element.operations[first:index], size, last=False)
            commits.append(Commit())
            first, size = index, 0
        size += one
    commits[-1].add(element, element.operations[first:], size, last=True)
