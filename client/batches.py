"""The ways of a request from the administrative client to the cluster and back: to any node, to the
controller, to one broker, to the leaders of partitions, or to the coordinator of a group.

Rule: a batch gives each of its elements a value or an error (K117-2). A write is sent again only if
it certainly was not carried out: the node refused that element because it is not the controller, or
nothing was sent. If the connection ends before the answer, the error of the element is `in_doubt`,
and the caller decides.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import trio

from ..network.peer import PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ..protocol.schema import WireStruct, layout_of
from .errors import (
    GROUP_MEANINGS,
    ON_ITS_WAY,
    AdminError,
    ClusterUnreachable,
    Results,
    check,
    each_of,
    in_doubt,
    value_of,
)
from .network import BrokerLink, Network, Versions
from .topic_partition import TopicPartition

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R", bound=WireStruct)
"""The class of a response, which says whose API is asked."""

SERVER_SHARE = 0.8
"""The share of the client's timeout that a node may spend on completing a write, so that its answer
arrives before the client gives up.
"""
WRONG_NODE = frozenset({ErrorCode.NOT_CONTROLLER})
ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE})
"""The errors of a partition that another node leads, or none yet."""
MANY_SINCE = 4
"""The first FindCoordinator with many keys."""


class Batches:
    """Sends batches of elements to the nodes that answer for them, until each has its answer."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._config = network.config

    @property
    def timeout_ms(self) -> int:
        """The time that a node has to complete a write."""
        return max(1, int(self._config.request_timeout_seconds * SERVER_SHARE * 1000))

    # ------------------------------------------------------ to any node, or to all

    async def ask_any(self, request: WireStruct, response: type[R]) -> R:
        """Send a read to any node. Raises AdminError if that node does not offer it, and
        ClusterUnreachable.
        """
        answer = await self._network.ask_any(request, _key_of(response))
        assert isinstance(answer, response)
        return answer

    async def metadata(self, names: Sequence[str] | None) -> MetadataResponse:
        """Describe topics, or all of them (None), with the brokers and the controller."""
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in dict.fromkeys(names)]
        answer = await self.ask_any(MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse)
        self._network.learn(answer)
        return answer

    async def ask_all(self, request: WireStruct, response: type[R], read: Callable[[R], T], has: str) -> list[T]:
        """Send a read to each broker. Raises AdminError, and ClusterUnreachable if a broker that
        may have some of what is asked for, such as groups, does not answer.
        """
        found = []
        for broker_id in sorted((await self._network.look()).brokers):
            try:
                found.append(read(await _ask(await self._network.broker(broker_id), request, response)))
            except PeerUnavailable as error:
                raise ClusterUnreachable(f"{error}, and broker {broker_id} may have {has}.") from error
        return found

    async def all_versions(self) -> Results[int, Versions]:
        """Return the versions of APIs that each broker offers, by its id."""
        view = await self._network.look()
        results: Results[int, Versions] = {}

        async def ask(broker_id: int) -> None:
            try:
                link = await self._network.broker(broker_id)
                await link.greet()
            except PeerUnavailable as error:
                results[broker_id] = AdminError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))
            else:
                results[broker_id] = link.versions

        async with trio.open_nursery() as nursery:
            for broker_id in view.brokers:
                nursery.start_soon(ask, broker_id)
        return dict(sorted(results.items()))

    # ------------------------------------------------------ to the controller, or to one broker

    async def write(
        self,
        elements: Sequence[K],
        response: type[R],
        request: Callable[[Sequence[K], int], WireStruct],
        read: Callable[[R], Results[K, T]],
        broker_id: int | None = None,
    ) -> Results[K, T]:
        """Send elements to the controller, or to one broker, until each has its answer or the time
        is over. `request` makes the message for the elements that have none, in a version; the
        AdminError that `read` may raise is that of each of them.
        """
        results: Results[K, T] = {}
        pending = list(elements)
        until = self._deadline()
        while pending:
            unreachable: ClusterUnreachable | None = None
            try:
                link = await self._link(broker_id)
                answer = await _ask(link, request(pending, link.version_of(_key_of(response))), response)
                results |= each_of(pending, read(answer))
            except AdminError as error:
                results |= dict.fromkeys(pending, error)
            except PeerUnavailable as error:
                if error.in_doubt:
                    return each_of(elements, results | dict.fromkeys(pending, _doubt(error)))
                unreachable = ClusterUnreachable(f"{error}.")
            if unreachable is None:
                pending = [element for element in pending if _has(results[element], WRONG_NODE)]
            if pending:
                self._network.forget()
                if not await self._pause(until):
                    if unreachable is not None:
                        raise unreachable
                    break
        return each_of(elements, results)

    async def write_one(self, request: WireStruct, response: type[R], read: Callable[[R], T]) -> T:
        """Send a change that is the only one of its request. Raises AdminError."""

        def read_one(answer: R) -> Results[None, T]:
            return {None: read(answer)}

        results = await self.write([None], response, lambda _part, _version: request, read_one)
        return value_of(results[None])

    async def check_dry_runs(self, broker_id: int | None = None) -> None:
        """Raise AdminError if the controller, or this broker, does not know of dry runs of
        deletions. Nothing is sent to it then.
        """
        from ..protocol.dry_runs import FEATURE  # which loads the messages of deletions

        try:
            link = await self._link(broker_id)
        except PeerUnavailable as error:
            raise ClusterUnreachable(f"{error}.") from error
        if FEATURE not in link.features:
            text = f"{link.address} does not know of dry runs of deletions: it was not asked"
            raise AdminError(ErrorCode.UNSUPPORTED_VERSION, text)

    async def _link(self, broker_id: int | None) -> BrokerLink:
        if broker_id is not None:
            link = await self._network.broker(broker_id)
        else:
            found = await self._network.controller()
            if found is None:
                raise PeerUnavailable("the cluster has no controller", in_doubt=False)
            link = found
        try:
            await link.greet()
        except PeerUnavailable as error:
            raise PeerUnavailable(str(error), in_doubt=False) from error  # whatever became of a greeting
        return link

    # ------------------------------------------------------ to the leaders of partitions

    async def by_leader(
        self,
        partitions: Sequence[TopicPartition],
        response: type[R],
        request: Callable[[Sequence[TopicPartition], int], WireStruct],
        read: Callable[[R], Results[TopicPartition, T]],
        check_leader: Callable[[int], Awaitable[None]] | None = None,
    ) -> Results[TopicPartition, T]:
        """Send a request about partitions to their leaders, which are looked up first, and again if
        another node leads by then. `check_leader` may refuse a leader by raising AdminError.
        """
        results: Results[TopicPartition, T] = {}
        pending = list(partitions)
        until = self._deadline()
        while pending:
            metadata = await self.metadata(list({each.topic for each in pending}))
            by_leader, refused = _leaders(metadata, pending)
            results |= refused
            for leader, part in by_leader.items():
                try:
                    if check_leader is not None:
                        await check_leader(leader)
                except AdminError as error:
                    results |= dict.fromkeys(part, error)
                    continue
                results |= await self.write(part, response, request, read, leader)
            pending = [each for each in pending if _has(results[each], ELSEWHERE)]
            if pending and not await self._pause(until):
                break
        return {each: results[each] for each in partitions}

    # ------------------------------------------------------ to the coordinator of a group

    async def by_coordinator(
        self, group: str, response: type[R], request: Callable[[int], WireStruct], read: Callable[[R, int], T]
    ) -> T | AdminError:
        """Ask the coordinator of a group, which is looked up first, and again while it is on its
        way, until it answers or the time is over. `read` gets its broker id, too, and may raise
        AdminError. A change whose outcome is unknown is not sent again.
        """
        until = self._deadline()
        while True:
            try:
                broker_id = await self._coordinator(group)
                link = await self._link(broker_id)
                return read(await _ask(link, request(link.version_of(_key_of(response))), response), broker_id)
            except AdminError as error:
                failure: Exception = error
                if error.code not in ON_ITS_WAY:
                    return error
            except PeerUnavailable as error:
                if error.in_doubt:
                    return _doubt(error)
                failure = ClusterUnreachable(f"{error}.")
            self._network.forget()
            if not await self._pause(until):
                if isinstance(failure, AdminError):
                    return failure
                raise failure

    async def _coordinator(self, group: str) -> int:
        """Return the id of the broker that coordinates a group. Raises AdminError."""
        from ..protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

        try:
            link = await self._link(None)
            has_many = link.version_of(ApiKey.FIND_COORDINATOR) >= MANY_SINCE
            request = (
                FindCoordinatorRequest(coordinator_keys=[group]) if has_many else FindCoordinatorRequest(key=group)
            )
            answer = await _ask(link, request, FindCoordinatorResponse)
        except PeerUnavailable as error:
            raise PeerUnavailable(str(error), in_doubt=False) from error  # a lookup changes nothing
        found = answer.coordinators[0] if answer.coordinators else answer
        check(found.error_code, GROUP_MEANINGS.get(found.error_code))
        return found.node_id

    # ------------------------------------------------------------------ time

    def _deadline(self) -> float:
        return trio.current_time() + self._config.api_timeout_seconds

    async def _pause(self, until: float) -> bool:
        """Wait before a request is sent again. Returns False if the time is over by then."""
        if trio.current_time() + self._config.retry_backoff_seconds >= until:
            return False
        await trio.sleep(self._config.retry_backoff_seconds)
        return True


def _key_of(response: type[WireStruct]) -> ApiKey:
    return ApiKey(layout_of(response).api_key)


async def _ask(link: BrokerLink, request: WireStruct, response: type[R]) -> R:
    answer = await link.ask(request, _key_of(response))
    assert isinstance(answer, response)
    return answer


def _has(result: object, codes: frozenset[ErrorCode]) -> bool:
    return isinstance(result, AdminError) and result.code in codes


def _doubt(error: PeerUnavailable) -> AdminError:
    return in_doubt(f"{error}, so it is unknown whether the request was carried out")


def _leaders(
    metadata: MetadataResponse, partitions: Sequence[TopicPartition]
) -> tuple[Mapping[int, list[TopicPartition]], dict[TopicPartition, AdminError]]:
    """Divide partitions by the broker ids of their leaders. Those that have none, or do not exist,
    have an error instead.
    """
    errors = {topic.name: topic.error_code for topic in metadata.topics}
    leader_of = {
        TopicPartition(topic.name or "", each.partition_index): each.leader_id
        for topic in metadata.topics
        for each in topic.partitions
    }
    by_leader: dict[int, list[TopicPartition]] = {}
    refused: dict[TopicPartition, AdminError] = {}
    for partition in partitions:
        leader = leader_of.get(partition)
        if leader is None:
            code = errors.get(partition.topic)
            absent = AdminError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
            refused[partition] = AdminError(code) if code else absent
        elif leader < 0:
            refused[partition] = AdminError(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            by_leader.setdefault(leader, []).append(partition)
    return by_leader, refused
