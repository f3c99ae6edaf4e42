"""The administrative client (KIP-117).

Rule: a batch gives each of its elements a value or an error (K117-2). A write is sent again only if
it certainly was not carried out: the node refused that element because it is not the controller, or
nothing was sent. If the connection ends before the answer, the error of the element is `in_doubt`,
and the caller decides.
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
from .errors import AdminError, ClusterUnreachable, in_doubt
from .model import (
    AclBinding,
    AclBindingFilter,
    AlterConfigOp,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    NewTopic,
    Resource,
    Results,
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
    TopicDescription,
    TopicListing,
)
from .network import BrokerLink, Network, Versions

K = TypeVar("K")
T = TypeVar("T")

SERVER_SHARE = 0.8
"""The share of the client's timeout that a node may spend on completing a write, so that its answer
arrives before the client gives up.
"""


class AdminClient:
    """Reads and changes the topics and configs of a cluster.

    Calls that name several elements return a dict with a value or an AdminError for each. All calls
    raise AdminError if the request as a whole is refused, and ClusterUnreachable if no node answers
    within the timeouts of the configuration.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._config = network.config

    @classmethod
    @asynccontextmanager
    async def connect(cls, config: ClientConfig) -> "AsyncIterator[AdminClient]":
        """Make a client that lives as long as the block. It connects when it first needs to."""
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            network = Network(nursery, config)
            try:
                yield cls(network)
            except Exception as error:  # noqa: BLE001 - raised again outside of the nursery, which would wrap it in a group
                failure = error
            finally:
                network.close()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------ reads

    async def list_topics(self, *, include_internal: bool = False) -> dict[str, TopicListing]:
        """Return the topics of the cluster by name, in order."""
        topics = metadata_messages.described(await self._metadata(None), None)
        return {
            name: topic.listing
            for name, topic in sorted(topics.items())
            if isinstance(topic, TopicDescription) and (include_internal or not topic.is_internal)
        }

    async def describe_topics(self, names: Sequence[str]) -> Results[str, TopicDescription]:
        """Describe topics; a name without a topic has the error UNKNOWN_TOPIC_OR_PARTITION."""
        found = metadata_messages.described(await self._metadata(names), names)
        return _each(names, found)

    async def describe_cluster(self) -> ClusterDescription:
        """Describe the brokers, the controller and all topics, from the Metadata of one node."""
        return metadata_messages.cluster(await self._metadata(None))

    async def all_broker_versions(self) -> Results[int, Versions]:
        """Return the versions of APIs that each broker offers, by its id (K117-5)."""
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
        """Describe the configs of topics and brokers: those that `keys` names, or all of them."""
        from . import config_messages

        def question(part: Sequence[Resource], _version: int) -> WireStruct:
            return config_messages.question(part, keys)

        return await self._by_node(resources, ApiKey.DESCRIBE_CONFIGS, question, config_messages.described)

    async def describe_acls(self, wanted: AclBindingFilter) -> tuple[AclBinding, ...]:
        """Return the ACLs that a filter matches, in order. Raises AdminError."""
        from . import acl_messages

        answer = await self._network.ask_any(acl_messages.question(wanted), ApiKey.DESCRIBE_ACLS)
        return acl_messages.described(answer)

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
        """Create topics; with `validate_only` the cluster only checks whether it would."""
        from . import topic_messages

        by_name = {topic.name: topic for topic in topics}

        def request(names: Sequence[str], _version: int) -> WireStruct:
            wanted = [by_name[name] for name in names]
            return topic_messages.creation(wanted, timeout_ms=self._timeout_ms, validate_only=validate_only)

        return await self._write(list(by_name), ApiKey.CREATE_TOPICS, request, topic_messages.created)

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create one topic. Raises its AdminError."""
        return _value((await self.create_topics([topic], validate_only=validate_only))[topic.name])

    async def delete_topics(self, names: Sequence[str]) -> Results[str, None]:
        """Delete topics. Kafka's DeleteTopics has no `validate_only`."""
        from . import topic_messages

        def request(part: Sequence[str], version: int) -> WireStruct:
            return topic_messages.deletion(part, timeout_ms=self._timeout_ms, version=version)

        return await self._write(list(dict.fromkeys(names)), ApiKey.DELETE_TOPICS, request, topic_messages.deleted)

    async def delete_topic(self, name: str) -> None:
        """Delete one topic. Raises its AdminError."""
        _value((await self.delete_topics([name]))[name])

    async def create_partitions(self, counts: Mapping[str, int], *, validate_only: bool = False) -> Results[str, None]:
        """Give topics more partitions; `counts` is the new total of each topic."""
        from . import topic_messages

        def request(names: Sequence[str], _version: int) -> WireStruct:
            return topic_messages.growth(counts, names, timeout_ms=self._timeout_ms, validate_only=validate_only)

        return await self._write(list(counts), ApiKey.CREATE_PARTITIONS, request, topic_messages.grown)

    async def alter_configs(
        self, changes: Mapping[Resource, Sequence[AlterConfigOp]], *, validate_only: bool = False
    ) -> Results[Resource, None]:
        """Change configs; those that are not named stay as they are (KIP-339)."""
        from . import config_messages

        def request(part: Sequence[Resource], _version: int) -> WireStruct:
            return config_messages.alteration(changes, part, validate_only=validate_only)

        return await self._by_node(list(changes), ApiKey.INCREMENTAL_ALTER_CONFIGS, request, config_messages.altered)

    # ------------------------------------------------------------------ users

    async def describe_user_scram_credentials(
        self, users: Sequence[str] = ()
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        """Return the mechanisms by which users log in, of all users if none is named (KIP-554)."""
        from . import scram_messages

        answer = await self._network.ask_any(scram_messages.question(users), ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
        return scram_messages.described(answer)

    async def alter_user_scram_credentials(
        self, alterations: Mapping[str, Sequence[ScramUpsertion | ScramDeletion]]
    ) -> Results[str, None]:
        """Set and remove passwords, by user (KIP-554). All that is asked for one user is done, or
        nothing of it.
        """
        from . import scram_messages

        def request(users: Sequence[str], _version: int) -> WireStruct:
            return scram_messages.alteration(alterations, users)

        return await self._write(
            list(alterations), ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request, scram_messages.altered
        )

    # ------------------------------------------------------------------ ACLs

    async def create_acls(self, acls: Sequence[AclBinding]) -> Results[AclBinding, None]:
        """Add ACLs. One that exists is a success."""
        from . import acl_messages

        return await self._by_place(
            list(dict.fromkeys(acls)), ApiKey.CREATE_ACLS, acl_messages.creation, acl_messages.created
        )

    async def delete_acls(
        self, filters: Sequence[AclBindingFilter]
    ) -> Results[AclBindingFilter, tuple[AclBinding, ...]]:
        """Remove the ACLs that filters match, and return them. An ACL that several filters match
        belongs to the first of them.
        """
        from . import acl_messages

        return await self._by_place(
            list(dict.fromkeys(filters)), ApiKey.DELETE_ACLS, acl_messages.deletion, acl_messages.deleted
        )

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
        """Send a request about resources: to each broker about its own configs, and to the
        controller about all others in one batch.
        """
        parts: dict[int | None, list[Resource]] = {}
        for resource in dict.fromkeys(resources):
            parts.setdefault(resource.broker_id, []).append(resource)
        results: Results[Resource, T] = {}
        for broker_id, part in parts.items():
            results |= await self._write(part, key, request, read, broker_id)
        return _each(resources, results)

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
                return _each(elements, results | dict.fromkeys(pending, error))
            except PeerUnavailable as error:
                if error.in_doubt:
                    doubt = in_doubt(f"{error}, so nobody knows whether it was done")
                    return _each(elements, results | dict.fromkeys(pending, doubt))
                failure: Exception = ClusterUnreachable(f"{error}.")
            else:
                results |= _each(pending, read(answer))
                pending = [element for element in pending if _came_to_the_wrong_node(results[element])]
                failure = AdminError(ErrorCode.NOT_CONTROLLER)
            if pending and trio.current_time() + self._config.retry_backoff_seconds >= until:
                if isinstance(failure, ClusterUnreachable):
                    raise failure
                break
            if pending:
                self._network.forget()
                await trio.sleep(self._config.retry_backoff_seconds)
        return _each(elements, results)

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


def _came_to_the_wrong_node(result: object) -> bool:
    return isinstance(result, AdminError) and result.code == ErrorCode.NOT_CONTROLLER


def _each(elements: Sequence[K], found: Results[K, T]) -> Results[K, T]:
    """Return the results in the order of the elements; an element that the answer leaves out has
    an error of its own.
    """
    silent = AdminError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer says nothing of it")
    return {element: found.get(element, silent) for element in elements}


def _value(result: T | AdminError) -> T:
    if isinstance(result, AdminError):
        raise result
    return result
