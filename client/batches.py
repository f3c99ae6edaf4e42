"""The way of a request from the administrative client to the cluster and back.

Rule: a batch gives each of its elements a value or an error (K117-2). A write is sent again only if
it certainly was not carried out: the node refused that element because it is not the controller, or
nothing was sent. If the connection ends before the answer, the error of the element is `in_doubt`,
and the caller decides.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import trio

from ..network.peer import PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ..protocol.schema import WireStruct
from .errors import AdminError, ClusterUnreachable, in_doubt
from .model import Resource, Results
from .network import BrokerLink, Network

K = TypeVar("K")
T = TypeVar("T")

SERVER_SHARE = 0.8
"""The share of the client's timeout that a node may spend on completing a write, so that its answer
arrives before the client gives up.
"""


class Batches:
    """Sends batches of elements to the nodes that answer for them, until each has its answer."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._config = network.config

    @property
    def _timeout_ms(self) -> int:
        return max(1, int(self._config.request_timeout_seconds * SERVER_SHARE * 1000))

    async def _metadata(self, names: Sequence[str] | None) -> MetadataResponse:
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in dict.fromkeys(names)]
        answer = await self._network.ask_any(
            MetadataRequest(topics=topics, allow_auto_topic_creation=False), ApiKey.METADATA
        )
        assert isinstance(answer, MetadataResponse)
        self._network.learn(answer)
        return answer

    async def _by_node(
        self,
        resources: Sequence[Resource],
        key: ApiKey,
        request: Callable[[Sequence[Resource], int], WireStruct],
        read: Callable[[WireStruct], Results[Resource, T]],
    ) -> Results[Resource, T]:
        """Send a request about resources: to each broker about its own configs, and to the
        controller about all others in one batch.
        """
        parts: dict[int | None, list[Resource]] = {}
        for resource in dict.fromkeys(resources):
            parts.setdefault(resource.broker_id, []).append(resource)
        results: Results[Resource, T] = {}
        for broker_id, part in parts.items():
            results |= await self._write(part, key, request, read, broker_id)
        return each_of(resources, results)

    async def _by_place(
        self,
        elements: Sequence[K],
        key: ApiKey,
        request: Callable[[Sequence[K]], WireStruct],
        read: Callable[[WireStruct], Sequence[T | AdminError]],
    ) -> Results[K, T]:
        """Send elements to the controller whose rows in the answer are known by their places."""
        asked: Sequence[K] = ()

        def remembered(part: Sequence[K], _version: int) -> WireStruct:
            nonlocal asked
            asked = tuple(part)
            return request(part)

        def by_element(answer: WireStruct) -> Results[K, T]:
            return dict(zip(asked, read(answer), strict=False))

        return await self._write(elements, key, remembered, by_element)

    async def _write(
        self,
        elements: Sequence[K],
        key: ApiKey,
        request: Callable[[Sequence[K], int], WireStruct],
        read: Callable[[WireStruct], Results[K, T]],
        broker_id: int | None = None,
    ) -> Results[K, T]:
        """Send elements to the controller, or to one broker, until each has its answer or the time
        is over.
        """
        results: Results[K, T] = {}
        pending = list(elements)
        until = trio.current_time() + self._config.api_timeout_seconds
        while pending:
            try:
                link = await self._link(broker_id)
                answer = await link.ask(request(pending, link.version_of(key)), key)
            except AdminError as error:
                return each_of(elements, results | dict.fromkeys(pending, error))
            except PeerUnavailable as error:
                if error.in_doubt:
                    doubt = in_doubt(f"{error}, so it is unknown whether the request was carried out")
                    return each_of(elements, results | dict.fromkeys(pending, doubt))
                failure: Exception = ClusterUnreachable(f"{error}.")
            else:
                results |= each_of(pending, read(answer))
                pending = [element for element in pending if _came_to_the_wrong_node(results[element])]
                failure = AdminError(ErrorCode.NOT_CONTROLLER)
            if pending and trio.current_time() + self._config.retry_backoff_seconds >= until:
                if isinstance(failure, ClusterUnreachable):
                    raise failure
                break
            if pending:
                self._network.forget()
                await trio.sleep(self._config.retry_backoff_seconds)
        return each_of(elements, results)

    async def _check_dry_runs(self, broker_id: int | None = None) -> None:
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

    async def _write_one(self, request: WireStruct, key: ApiKey, read: Callable[[WireStruct], T | AdminError]) -> T:
        """Send a change that is the only one of its request. Raises AdminError."""
        results = await self._write([None], key, lambda _part, _version: request, lambda answer: {None: read(answer)})
        return value_of(results[None])


def _came_to_the_wrong_node(result: object) -> bool:
    return isinstance(result, AdminError) and result.code == ErrorCode.NOT_CONTROLLER


def each_of(elements: Sequence[K], found: Results[K, T]) -> Results[K, T]:
    """Return the results in the order of the elements; an element that the answer leaves out has
    an error of its own.
    """
    silent = AdminError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer does not mention it")
    return {element: found.get(element, silent) for element in elements}


def value_of(result: T | AdminError) -> T:
    if isinstance(result, AdminError):
        raise result
    return result
