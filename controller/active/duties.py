"""The duties of an active controller: its tasks beside the writer.

Rule: whatever runs for a whole epoch, or for as long as a loaded state holds, is begun and ended
here. `ActiveController` lists them in one place.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import trio

from ...process.settings.node_config import NodeConfig
from ...store.base import SessionExpired
from .jobs import ControllerMoved, InDoubt
from .offset_expiry import OffsetExpiry
from .preferred_leaders import LeaderRebalance
from .token_expiry import expire_tokens
from .writer import Writer

Duty = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Duties:
    """The tasks of one epoch."""

    of_epoch: Sequence[Duty]
    """Begun before the state is loaded for the first time; they end with the epoch."""
    of_state: Sequence[Duty]
    """Begun each time that the state was loaded; they end when the writer does, because a write is
    in doubt or the epoch has ended.
    """

    def begin(self, epoch: trio.Nursery) -> None:
        """Begin the duties of the epoch. They end with its nursery."""
        for duty in self.of_epoch:
            epoch.start_soon(duty)

    async def beside(self, write: Duty) -> None:
        """Carry out the duties of the loaded state until `write` ends, and raise what ended it:
        InDoubt, ControllerMoved or SessionExpired.
        """
        end: Exception | None = None
        async with trio.open_nursery() as tasks:
            for duty in self.of_state:
                tasks.start_soon(duty)
            try:
                await write()
            except (InDoubt, ControllerMoved, SessionExpired) as error:
                end = error  # raised outside of the nursery, so that no ExceptionGroup wraps it
            tasks.cancel_scope.cancel()
        assert end is not None
        raise end


def housekeeping(config: NodeConfig, writer: Writer, epoch: int) -> Sequence[Duty]:
    """Return the duties that look at the state from time to time."""
    return (
        partial(expire_tokens, config, writer),
        OffsetExpiry(config, writer).run,
        LeaderRebalance(config, writer, epoch).run,
    )
