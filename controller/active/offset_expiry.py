"""Removes the offsets of groups that were set too long ago (`offsets.retention.minutes`), and those
in topics that were deleted.

Rule: offsets in deleted topics are shown to nobody, whether they are removed yet or not.
"""

import contextlib
import logging

import trio

from ...clock import now_ms
from ...cluster.groups import Group
from ...cluster.image import Image
from ...process.settings.node_config import NodeConfig
from ...process.time_slices import TimeSlice
from .entity_writing import stage_group
from .jobs import ControllerMoved, Draft, StagedElement
from .writer import Writer

log = logging.getLogger("minicontroller.controller")


class OffsetExpiry:
    """Looks for such offsets every `offsets.retention.check.interval.ms`."""

    def __init__(self, config: NodeConfig, writer: Writer) -> None:
        self._kept_ms = config.integer("offsets.retention.minutes") * 60_000
        self._pause_seconds = config.integer("offsets.retention.check.interval.ms") / 1000
        self._writer = writer

    async def run(self) -> None:
        with contextlib.suppress(ControllerMoved):  # the next controller does it
            while True:
                while await self._outdated(self._writer.image, TimeSlice()):
                    elements = await self._writer.write(self._remove)
                    if all(element.refusal is not None for element in elements):
                        break
                    log.info("offsets of groups that have expired, or whose topic is gone, are being removed")
                await trio.sleep(self._pause_seconds)

    async def _outdated(self, image: Image, time_slice: TimeSlice) -> list[tuple[str, Group]]:
        """Return the groups with offsets to remove, without these, and the groups that an earlier
        version wrote, by the name of their znode.
        """
        since = now_ms() - self._kept_ms
        found = []
        for name, group in image.groups.items():
            kept = group.kept(image.topics, since_ms=since)
            if kept is not group or group.header.older is not None or not group.offsets:
                found.append((name, kept))
            await time_slice.pause()
        return found

    async def _remove(self, draft: Draft) -> list[StagedElement]:
        """Stage the removal of what a commit holds of them."""
        elements: list[StagedElement] = []
        for name, group in await self._outdated(draft.image, draft.time_slice):
            if draft.is_over:
                break
            elements.append(stage_group(draft, name, group if group.offsets else None))
            await draft.time_slice.pause()
        return elements
