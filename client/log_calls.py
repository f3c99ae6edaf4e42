"""The calls of the administrative client about the logs of partitions: records, offsets, and the
directories that replicas lie in.

Rule: what concerns a partition is asked of its leader, which is looked up first, and again if
another node leads it by then; what concerns a replica is asked of its broker.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import trio

from ..protocol.api_keys import ApiKey
from ..protocol.schema import WireStruct
from .batches import Batches
from .errors import AdminError
from .model import ListedOffset, LogDirDescription, OffsetSpec, Replica, Results, TopicPartition

T = TypeVar("T")


class LogCalls(Batches):
    """Reads and changes the logs of partitions."""

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, validate_only: bool = False
    ) -> Results[TopicPartition, int]:
        """Delete the records of partitions before these offsets, -1 for all, and return the offset
        of the first record that is left, by partition (KIP-107). With `validate_only` the leaders
        only check whether they would, which nodes of minicontroller can alone.
        """
        from . import record_messages

        def request(part: Sequence[TopicPartition], _version: int) -> WireStruct:
            return record_messages.deletion(offsets, part, timeout_ms=self._timeout_ms, validate_only=validate_only)

        check = self._check_dry_runs if validate_only else None
        return await self._by_leader(offsets, ApiKey.DELETE_RECORDS, request, record_messages.deleted, check)

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec | int]
    ) -> Results[TopicPartition, ListedOffset]:
        """Return an offset of each partition (KIP-396): the first, the last, that of the record
        with the highest timestamp, or that of the first record with at least this timestamp, in
        milliseconds since 1970.
        """
        from . import offset_messages

        request = partial(offset_messages.question, specs)
        return await self._by_leader(specs, ApiKey.LIST_OFFSETS, request, offset_messages.listed)

    async def describe_log_dirs(self, brokers: Sequence[int]) -> Results[int, tuple[LogDirDescription, ...]]:
        """Return the directories of brokers with the replicas in them, by broker id (KIP-113)."""
        from . import log_dir_messages

        results: Results[int, tuple[LogDirDescription, ...]] = {}
        for broker_id in dict.fromkeys(brokers):
            results |= await self._write(
                [broker_id],
                ApiKey.DESCRIBE_LOG_DIRS,
                lambda _part, _version: log_dir_messages.question(),
                partial(log_dir_messages.described, broker_id),
                broker_id,
            )
        return results

    async def alter_replica_log_dirs(self, directories: Mapping[Replica, str]) -> Results[Replica, None]:
        """Move replicas to other directories of their brokers (KIP-113). A broker that does not
        have the replica remembers the directory, and answers REPLICA_NOT_AVAILABLE.
        """
        from . import log_dir_messages

        by_broker: dict[int, list[Replica]] = {}
        for replica in directories:
            by_broker.setdefault(replica.broker_id, []).append(replica)
        results: Results[Replica, None] = {}
        for broker_id, replicas in by_broker.items():
            results |= await self._write(
                replicas,
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                lambda part, _version: log_dir_messages.alteration(directories, part),
                partial(log_dir_messages.altered, broker_id),
                broker_id,
            )
        return {replica: results[replica] for replica in directories}

    async def _by_leader(
        self,
        partitions: Mapping[TopicPartition, object],
        key: ApiKey,
        request: Callable[[Sequence[TopicPartition], int], WireStruct],
        read: Callable[[WireStruct], Results[TopicPartition, T]],
        check: Callable[[int], Awaitable[None]] | None = None,
    ) -> Results[TopicPartition, T]:
        """Send a request about partitions to their leaders, which `check` may refuse by raising
        AdminError.
        """
        from . import record_messages

        results: Results[TopicPartition, T] = {}
        pending = list(partitions)
        until = trio.current_time() + self._config.api_timeout_seconds
        while pending:
            metadata = await self._metadata(list({each.topic for each in pending}))
            by_leader, refused = record_messages.leaders(metadata, pending)
            results |= refused
            for leader, part in by_leader.items():
                try:
                    if check is not None:
                        await check(leader)
                except AdminError as error:
                    results |= dict.fromkeys(part, error)
                    continue
                results |= await self._write(part, key, request, read, leader)
            pending = [each for each in pending if record_messages.has_moved(results[each])]
            if trio.current_time() + self._config.retry_backoff_seconds >= until:
                break
            if pending:
                await trio.sleep(self._config.retry_backoff_seconds)
        return {each: results[each] for each in partitions}
