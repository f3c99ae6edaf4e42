"""Gives out blocks of ids for producers, the newest of which is in `/latest_producer_id_block`.

Rule: no id is given out twice. A block whose write is in doubt is given to nobody.
"""

import logging

import trio

from ...cluster.delta import OutsideOfTheImage
from ...cluster.znodes import layout
from ...cluster.znodes.cluster import decode_producer_ids, encode_producer_ids
from ...cluster.znodes.content import MalformedZnodeError
from ...store.base import SetData, Store
from .jobs import Draft, StagedElement
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

BLOCK_SIZE = 1000
MAX_ID = 2**63 - 1


class NoBlockLeft(Exception):  # noqa: N818 - as the other outcomes of plans
    """The newest block cannot be read, or no other one fits behind it."""


class ProducerIdBlocks:
    """The blocks that one active controller gives out, one after the other."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._turn = trio.Lock()

    async def next_block(self, broker_id: int) -> range:
        """Give the next block to a broker. Raises NoBlockLeft, ControllerMoved, or Refusal if the
        write is in doubt.
        """
        async with self._turn:
            block, element = await self._writer.write(lambda draft: self._plan(draft, broker_id))
        if element.refusal is not None:
            raise element.refusal
        return block

    async def _plan(self, draft: Draft, broker_id: int) -> tuple[range, StagedElement]:
        entry = await self._store.get(layout.LATEST_PRODUCER_ID_BLOCK)
        if entry is None:
            raise NoBlockLeft
        try:
            first = 0 if entry.data is None else decode_producer_ids(entry.data) + 1
        except MalformedZnodeError as error:
            log.warning("producers get no ids: %s", error)
            raise NoBlockLeft from error
        if first > MAX_ID - BLOCK_SIZE:
            raise NoBlockLeft
        block = range(first, first + BLOCK_SIZE)
        data = encode_producer_ids(broker_id, block.start, block.stop - 1)
        write = SetData(layout.LATEST_PRODUCER_ID_BLOCK, data, entry.stat.version)
        return block, draft.stage(OutsideOfTheImage(), [write])
