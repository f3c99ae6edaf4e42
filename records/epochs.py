"""The leader epochs of a log, each with its first offset (Kafka: LeaderEpochFileCache)."""

from bisect import bisect_right
from operator import attrgetter

import msgspec

_EPOCH, _OFFSET = attrgetter("epoch"), attrgetter("offset")


class EpochStart(msgspec.Struct, frozen=True, gc=False):
    epoch: int
    offset: int


UNKNOWN_EPOCH = EpochStart(-1, -1)


class Epochs:
    def __init__(self) -> None:
        self._starts: list[EpochStart] = []

    @property
    def first(self) -> EpochStart | None:
        return self._starts[0] if self._starts else None

    @property
    def latest(self) -> int:
        return self._starts[-1].epoch if self._starts else UNKNOWN_EPOCH.epoch

    def __len__(self) -> int:
        return len(self._starts)

    def begin(self, epoch: int, offset: int) -> None:
        """Note that a leader of an epoch writes from an offset on. One that has written nothing
        gives way.
        """
        if epoch <= self.latest:
            return
        while self._starts and self._starts[-1].offset >= offset:
            self._starts.pop()
        self._starts.append(EpochStart(epoch, offset))

    def end_of(self, epoch: int, log_end: int) -> EpochStart:
        """Return the largest epoch that is not above one, with the offset at which the next begins,
        as OffsetForLeaderEpoch asks for it.
        """
        if not self._starts or epoch == UNKNOWN_EPOCH.epoch or epoch > self.latest:
            return UNKNOWN_EPOCH
        if epoch == self.latest:
            return EpochStart(epoch, log_end)
        above = bisect_right(self._starts, epoch, key=_EPOCH)
        floor = self._starts[above - 1].epoch if above else epoch
        return EpochStart(floor, self._starts[above].offset)

    def of(self, offset: int) -> int:
        index = bisect_right(self._starts, offset, key=_OFFSET) - 1
        return self._starts[index].epoch if index >= 0 else UNKNOWN_EPOCH.epoch

    def begin_at(self, offset: int) -> None:
        """Forget the epochs that end before an offset."""
        index = bisect_right(self._starts, offset, key=_OFFSET) - 1
        if index >= 0:
            self._starts[: index + 1] = [EpochStart(self._starts[index].epoch, offset)]
