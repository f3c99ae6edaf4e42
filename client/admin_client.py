"""The administrative client (KIP-117), on our own wire: against nodes of ours and any Kafka.

    async with connect(config) as admin:
        results = await admin.create_topics([NewTopic("orders", num_partitions=6)])

Rule: a batch gives each of its elements a value or an error (K117-2). A write is sent again only if
it certainly was not carried out: the node refused that element because it is not the controller, or
nothing was sent. If the connection ends before the answer the element's error is `in_doubt`, and
whoever asked decides.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from ..controller.network.peer import PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ..protocol.schema import WireStruct
from . import metadata_messages
from .configuration import ClientConfig
from .errors import AdminError, Unreachable, in_doubt
from .model import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    CreatedTopic,
    NewTopic,
    Resource,
    Results,
    TopicDescription,
    TopicListing,
)
from .network import Network, NodeLink, Versions

K = TypeVar("K")
T = TypeVar("T")

SERVER_SHARE = 0.8
"""Of the time that we wait for an answer: what a node may take to complete a write, so that its own
word comes in time.
"""


@asynccontextmanager
async def connect(config: ClientConfig) -> "AsyncIterator[AdminClient]":
    """Make a client for the time of the block; connections are made when they are first needed."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        network = Network(nursery, config)
        try:
            yield AdminClient(network)
        except Exception as error:  # noqa: BLE001 - raised again outside of the nursery, which would wrap it in a group
            failure = error
        finally:
            network.close()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


class AdminClient:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._config = network.config

    # ------------------------------------------------------------------ reads

    async def list_topics(self, *, include_internal: bool = False) -> dict[str, TopicListing]:
        topics = metadata_messages.described(await self._metadata(None), None)
        return {
            name: topic.listing
            for name, topic in sorted(topics.items())
            if isinstance(topic, TopicDescription) and (include_internal or not topic.is_internal)
        }

    async def describe_topics(self, names: Sequence[str]) -> Results[str, TopicDescription]:
        found = metadata_messages.described(await self._metadata(names), names)
        return _each(names, found)

    async def describe_cluster(self) -> ClusterDescription:
        return metadata_messages.cluster(await self._metadata(None))

    async def all_broker_versions(self) -> Results[int, Versions]:
        """Return the versions that each node offers; some may answer and others not (K117-5)."""
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

    async def describe_configs(
        self, resources: Sequence[Resource], keys: Sequence[str] | None = None
    ) -> Results[Resource, tuple[ConfigEntry, ...]]:
        """Describe configs of resources, of which a broker answers for itself; `keys` None asks for
        all.
        """
        from . import config_messages

        def question(part: Sequence[Resource], _version: int) -> WireStruct:
            return config_messages.question(part, keys)

        return await self._by_node(resources, ApiKey.DESCRIBE_CONFIGS, question, config_messages.described)

    async def _metadata(self, names: Sequence[str] | None) -> MetadataResponse:
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in dict.fromkeys(names)]
        answer = await self._network.ask_any(
            MetadataRequest(topics=topics, allow_auto_topic_creation=False), ApiKey.METADATA
        )
        assert isinstance(answer, MetadataResponse)
        self._network.learn(answer)
        return answer

    # ------------------------------------------------------------------ writes

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        from . import topic_messages

        by_name = {topic.name: topic for topic in topics}

        def request(names: Sequence[str], _version: int) -> WireStruct:
            wanted = [by_name[name] for name in names]
            return topic_messages.creation(wanted, timeout_ms=self._timeout_ms, validate_only=validate_only)

        return await self._write(list(by_name), ApiKey.CREATE_TOPICS, request, topic_messages.created)

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create one topic. Raises AdminError."""
        return _value((await self.create_topics([topic], validate_only=validate_only))[topic.name])

    async def delete_topics(self, names: Sequence[str]) -> Results[str, None]:
        """Delete topics, for which Kafka's dialect has no validate_only."""
        from . import topic_messages

        def request(part: Sequence[str], version: int) -> WireStruct:
            return topic_messages.deletion(part, timeout_ms=self._timeout_ms, version=version)

        return await self._write(list(dict.fromkeys(names)), ApiKey.DELETE_TOPICS, request, topic_messages.deleted)

    async def delete_topic(self, name: str) -> None:
        """Delete one topic. Raises AdminError."""
        _value((await self.delete_topics([name]))[name])

    async def create_partitions(self, counts: Mapping[str, int], *, validate_only: bool = False) -> Results[str, None]:
        """Give topics more partitions; `counts` tells how many each shall have in all."""
        from . import topic_messages

        def request(names: Sequence[str], _version: int) -> WireStruct:
            return topic_messages.growth(counts, names, timeout_ms=self._timeout_ms, validate_only=validate_only)

        return await self._write(list(counts), ApiKey.CREATE_PARTITIONS, request, topic_messages.grown)

    async def alter_configs(
        self, changes: Mapping[Resource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> Results[Resource, None]:
        """Change configs; what is not named stays as it is (KIP-339)."""
        from . import config_messages

        def request(part: Sequence[Resource], _version: int) -> WireStruct:
            return config_messages.alteration(changes, part, validate_only=validate_only)

        return await self._by_node(list(changes), ApiKey.INCREMENTAL_ALTER_CONFIGS, request, config_messages.altered)

    # ------------------------------------------------------------------ the way of a batch

    @property
    def _timeout_ms(self) -> int:
        return max(1, int(self._config.request_timeout_seconds * SERVER_SHARE * 1000))

    async def _by_node(
        self,
        resources: Sequence[Resource],
        key: ApiKey,
        request: Callable[[Sequence[Resource], int], WireStruct],
        read: Callable[[WireStruct], Results[Resource, T]],
    ) -> Results[Resource, T]:
        """Ask for resources: a broker for its own configs, the controller for all else, as one
        batch.
        """
        parts: dict[int | None, list[Resource]] = {}
        for resource in dict.fromkeys(resources):
            parts.setdefault(resource.broker_id, []).append(resource)
        results: Results[Resource, T] = {}
        for broker_id, part in parts.items():
            results |= await self._write(part, key, request, read, broker_id)
        return _each(resources, results)

    async def _write(
        self,
        elements: Sequence[K],
        key: ApiKey,
        request: Callable[[Sequence[K], int], WireStruct],
        read: Callable[[WireStruct], Results[K, T]],
        broker_id: int | None = None,
    ) -> Results[K, T]:
        """Write at the controller, or at one broker, until each element has its answer or the time
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
                return _each(elements, results | dict.fromkeys(pending, error))
            except PeerUnavailable as error:
                if error.in_doubt:
                    doubt = in_doubt(f"{error}, so nobody knows whether it was done")
                    return _each(elements, results | dict.fromkeys(pending, doubt))
                failure: Exception = Unreachable(f"{error}.")
            else:
                results |= _each(pending, read(answer))
                pending = [element for element in pending if _came_to_the_wrong_node(results[element])]
                failure = AdminError(ErrorCode.NOT_CONTROLLER)
            if pending and trio.current_time() + self._config.retry_backoff_seconds >= until:
                if isinstance(failure, Unreachable):
                    raise failure
                break
            if pending:
                self._network.forget()
                await trio.sleep(self._config.retry_backoff_seconds)
        return _each(elements, results)

    async def _link(self, broker_id: int | None) -> NodeLink:
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


def _came_to_the_wrong_node(result: object) -> bool:
    return isinstance(result, AdminError) and result.code == ErrorCode.NOT_CONTROLLER


def _each(elements: Sequence[K], found: Results[K, T]) -> Results[K, T]:
    """Return the outcomes in the order of the question; what the answer leaves out is an error of
    that element alone.
    """
    silent = AdminError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer says nothing of it")
    return {element: found.get(element, silent) for element in elements}


def _value(result: T | AdminError) -> T:
    if isinstance(result, AdminError):
        raise result
    return result
