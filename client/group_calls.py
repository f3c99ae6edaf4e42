"""The calls of the administrative client about groups and their offsets.

Rule: what concerns a group is asked of its coordinator, which is looked up first, and again while
it is on its way. A change whose outcome is unknown is not sent again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import trio

from ..network.peer import PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.schema import WireStruct
from .batches import Batches, each_of, value_of
from .errors import AdminError, ClusterUnreachable, in_doubt
from .model import GroupDescription, GroupListing, OffsetAndMetadata, Results, TopicPartition

T = TypeVar("T")


class GroupCalls(Batches):
    """Reads and changes the groups of a cluster."""

    async def list_consumer_groups(self) -> tuple[GroupListing, ...]:
        """Return the groups that this client may see, of all brokers, in the order of their names.
        Raises AdminError.
        """
        from . import group_messages

        found: set[GroupListing] = set()
        for broker_id in sorted((await self._network.look()).brokers):
            try:
                link = await self._network.broker(broker_id)
                found.update(group_messages.listed(await link.ask(group_messages.everything(), ApiKey.LIST_GROUPS)))
            except PeerUnavailable as error:
                raise ClusterUnreachable(f"{error}, and broker {broker_id} may have groups.") from error
        return tuple(sorted(found))

    async def describe_consumer_groups(self, groups: Sequence[str]) -> Results[str, GroupDescription]:
        """Describe groups by their names. A group that does not exist has the state `Dead`."""
        from . import group_messages

        ask = partial(self._of_group, ApiKey.DESCRIBE_GROUPS, group_messages.question, group_messages.described)
        return {group: await ask(group) for group in dict.fromkeys(groups)}

    async def list_consumer_group_offsets(self, group: str) -> Results[TopicPartition, OffsetAndMetadata]:
        """Return all offsets of a group that this client may see. Raises AdminError."""
        from . import group_messages

        found = await self._of_group(ApiKey.OFFSET_FETCH, group_messages.offsets_of, group_messages.fetched, group)
        return value_of(found)

    async def alter_consumer_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Results[TopicPartition, None]:
        """Set offsets of a group without members; the group is created if it does not exist."""
        from . import group_messages

        return await self._of_partitions(
            group,
            list(offsets),
            ApiKey.OFFSET_COMMIT,
            group_messages.alteration(group, offsets),
            group_messages.altered,
        )

    async def delete_consumer_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Remove offsets of a group. A group without any offset exists no longer."""
        from . import group_messages

        named = list(dict.fromkeys(partitions))
        return await self._of_partitions(
            group, named, ApiKey.OFFSET_DELETE, group_messages.removal(group, named), group_messages.removed
        )

    async def delete_consumer_groups(self, groups: Sequence[str]) -> Results[str, None]:
        """Delete groups without members, with their offsets."""
        from . import group_messages

        ask = partial(self._of_group, ApiKey.DELETE_GROUPS, group_messages.deletion, group_messages.deleted)
        return {group: await ask(group) for group in dict.fromkeys(groups)}

    async def _of_partitions(
        self,
        group: str,
        partitions: Sequence[TopicPartition],
        key: ApiKey,
        request: WireStruct,
        read: Callable[[WireStruct], Results[TopicPartition, None]],
    ) -> Results[TopicPartition, None]:
        """Send a change of a group's offsets, and return what became of each partition."""
        from . import group_messages

        def read_or_retry(_broker_id: int, answer: WireStruct) -> Results[TopicPartition, None]:
            results = read(answer)
            if group_messages.is_on_its_way(results):
                (*_, last) = results.values()
                assert isinstance(last, AdminError)
                raise last
            return results

        found = await self._of_group(key, lambda _group, _version: request, read_or_retry, group)
        if isinstance(found, AdminError):
            return dict.fromkeys(partitions, found)
        return each_of(partitions, found)

    async def _of_group(
        self,
        key: ApiKey,
        request: Callable[[str, int], WireStruct],
        read: Callable[[int, WireStruct], T],
        group: str,
    ) -> T | AdminError:
        """Ask the coordinator of a group until it answers, or the time is over."""
        from . import group_messages

        until = trio.current_time() + self._config.api_timeout_seconds
        while True:
            try:
                broker_id = await self._coordinator(group)
                link = await self._link(broker_id)
                return read(broker_id, await link.ask(request(group, link.version_of(key)), key))
            except AdminError as error:
                failure: Exception = error
                if error.code not in group_messages.ON_ITS_WAY:
                    return error
            except PeerUnavailable as error:
                if error.in_doubt:
                    return in_doubt(f"{error}, so it is unknown whether the request was carried out")
                failure = ClusterUnreachable(f"{error}.")
            if trio.current_time() + self._config.retry_backoff_seconds >= until:
                if isinstance(failure, AdminError):
                    return failure
                raise failure
            self._network.forget()
            await trio.sleep(self._config.retry_backoff_seconds)

    async def _coordinator(self, group: str) -> int:
        """Return the id of the broker that coordinates a group. Raises AdminError."""
        from . import group_messages

        try:
            link = await self._link(None)
            answer = await link.ask(
                group_messages.lookup(group, link.version_of(ApiKey.FIND_COORDINATOR)), ApiKey.FIND_COORDINATOR
            )
        except PeerUnavailable as error:
            raise PeerUnavailable(str(error), in_doubt=False) from error  # a lookup changes nothing
        return group_messages.coordinator(answer)
