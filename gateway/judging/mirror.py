"""The gateway's picture of the cluster: an image, read from the cluster and kept by what passes.

Rule: what is judged is never older than it has to be. The topics that a request names are read when
the request is judged; all others as often as `metadata.max.age.ms` says. A topic that a request is
just changing belongs to that request, and no reading of the whole touches it meanwhile.
"""

import logging
import math
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec
import trio

from ...client.acl_messages import described
from ...client.errors import AdminError, ClusterUnreachable
from ...client.network import Network
from ...controller.audit.recorder import AuditRecorder
from ...controller.audit.requests import CompletedElement
from ...controller.config.node_config import ConfigSource, NodeConfig
from ...controller.metadata.entities import Topic
from ...controller.metadata.image import Image
from ...controller.network.peer import PeerUnavailable
from ...controller.requests.time_slices import TimeSlice
from ...policies.configs.values import java_int
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.api_keys import ApiKey
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_acls import DeleteAclsFilter
from ...protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ...protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ...protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ...protocol.schema import WireStruct
from .reading import NO_MOVES, ClusterDefaults, Moves, brokers_of, defaults_of, exists, moves_of, own_configs, topic_of

log = logging.getLogger("minicontroller.gateway")

PATIENCE_SECONDS = 10.0
"""How long the cluster may take to tell what a judgement needs."""
MOMENT_SECONDS = 1.0
"""How long a request that may create topics waits to hear which of them are missing."""
SILENCE_SECONDS = 5.0
"""How long the cluster is not asked for missing topics once it did not tell them in time."""
NAMES_AT_ONCE, CONFIGS_AT_ONCE = 1_000, 100
"""How many topics a question names, and one for configs, of which each has about forty."""
ABSENT = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)

T = TypeVar("T")


class NotKnownError(Exception):
    """The cluster does not tell what a judgement needs. The message says what and why."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """`reason` is told to clients, too; `detail` may have addresses of the cluster and keys of
        the gateway, and is for its log.
        """
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class Mirror:
    """The cluster's topics, brokers and defaults, as the gateway knows them."""

    def __init__(self, network: Network, config: NodeConfig) -> None:
        """Prepare a mirror that asks through `network`; `config` has the values of those keys that
        the cluster does not tell.
        """
        self.image = Image()
        self.cluster_id = ""
        self.defaults = ClusterDefaults(config)
        self.recorder: AuditRecorder | None = None
        """Records what the mirror learns, where there is an audit log."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the image has changed."""
        self.failure: str | None = None
        """Why the cluster could not be read the last time; None if it could."""
        self._network = network
        self._config = config
        self._read_at: float | None = None
        self._newer: dict[str, float] = {}
        """When topics were read or changed by themselves, in seconds by trio's clock: a reading of
        the whole that began before knows less of them.
        """
        self._silent_until = -math.inf
        """trio's time until which the cluster is not asked for missing topics."""
        self._tells_moves = True
        self._tells_defaults = True

    def record(self, recorder: AuditRecorder) -> None:
        """Record the image, and from now on whatever changes it."""
        self.recorder = recorder
        recorder.reloaded(self.image)

    @property
    def age_seconds(self) -> float | None:
        """How long ago the whole cluster was read; None if it never was."""
        return None if self._read_at is None else trio.current_time() - self._read_at

    # ------------------------------------------------------------------ reading

    async def read(self, busy: Callable[[], Container[str]]) -> None:
        """Read everything. Topics that are `busy` when it has been read stay as they are. Raises
        NotKnownError.
        """
        began = trio.current_time()
        try:
            metadata = await self._metadata(None)
            topics = await self._topics([row for row in metadata.topics if exists(row)])
            self.defaults = await self._defaults()
        except NotKnownError as error:
            self.failure = str(error)
            raise
        self.failure = None
        self._read_at = began
        self.cluster_id = metadata.cluster_id or self.cluster_id
        brokers = self.image.with_brokers(brokers_of(metadata.brokers))
        image = msgspec.structs.replace(brokers, controller_id=metadata.controller_id)
        mine = busy()
        self._newer = {name: at for name, at in self._newer.items() if at >= began}
        old = [name for name in {*topics, *image.topics} if name not in mine and name not in self._newer]
        changed = [topics[name] for name in old if name in topics and image.topics.get(name) is not topics[name]]
        self._take(image.with_topics(changed, [name for name in old if name not in topics]))

    async def look(self, names: Collection[str], ids: Collection[bytes] = ()) -> None:
        """Read these topics anew. Raises NotKnownError."""
        if names or ids:
            image = await self._image_with(names, ids)
            self._newer.update(dict.fromkeys(names, trio.current_time()))
            self._take(image)

    async def missing(self, names: Sequence[str]) -> list[str]:
        """Return those of these topics that the cluster does not have now. While it does not tell,
        what was read before decides, so that clients go on.
        """
        rows: list[MetadataResponseTopic] = []
        for first in range(0, len(names), NAMES_AT_ONCE):  # so that many names do not look like silence
            if trio.current_time() >= self._silent_until:
                rows += await self._rows_in_a_moment(names[first : first + NAMES_AT_ONCE])
        there = {row.name for row in rows if exists(row)}
        absent = {row.name for row in rows if not exists(row) and row.error_code in ABSENT}
        return [name for name in names if name in absent or not (name in there or name in self.image.topics)]

    async def _rows_in_a_moment(self, names: Sequence[str]) -> Sequence[MetadataResponseTopic]:
        """Return what the cluster tells at once of some topics; nothing if it is silent."""
        with trio.move_on_after(MOMENT_SECONDS), suppress(NotKnownError):
            return (await self._metadata([MetadataRequestTopic(name=name) for name in names])).topics
        self._silent_until = trio.current_time() + SILENCE_SECONDS
        return ()

    async def look_until(
        self, names: Collection[str], reached: Callable[[Image], bool], *, tries: int, seconds: float
    ) -> Image:
        """Read these topics until the cluster shows what a request has changed, and return the
        image with them, without taking it over. Brokers learn of a change a moment after the
        controller has answered. Raises NotKnownError.
        """
        for _ in range(tries - 1):
            image = await self._image_with(names, ())
            if reached(image):
                return image
            await trio.sleep(seconds)
        return await self._image_with(names, ())

    async def configs_of(self, kind: ResourceType, name: str, source: ConfigSource | None) -> dict[str, str]:
        """Return those configs of a broker or its loggers that have this source, or all. An empty
        name stands for the default of all brokers. Raises NotKnownError.
        """
        with _in_time():
            (result,) = await self._describe([_resource(kind, name)], broker_id=_broker_id(name))
        _check(result.error_code, f"the configs of broker {name}")
        return own_configs(result, source)

    async def acls_matching(self, wanted: DeleteAclsFilter) -> dict[ResourcePattern, list[AccessControlEntry]]:
        """Return the ACLs that a filter matches now, by their patterns. Raises NotKnownError."""
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type_filter,
            resource_name_filter=wanted.resource_name_filter,
            pattern_type_filter=wanted.pattern_type_filter,
            principal_filter=wanted.principal_filter,
            host_filter=wanted.host_filter,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        with _in_time():
            answer = await self._ask(request, ApiKey.DESCRIBE_ACLS, DescribeAclsResponse)
        if answer.error_code == ErrorCode.SECURITY_DISABLED:
            return {}
        _check(answer.error_code, "ACLs")
        try:
            bindings = described(answer)
        except (AdminError, ValueError) as error:
            raise NotKnownError(f"the cluster tells of an ACL that is not known here: {error}") from None
        found: dict[ResourcePattern, list[AccessControlEntry]] = {}
        for each in bindings:
            found.setdefault(each.pattern, []).append(each.entry)
        return found

    def created_ms(self, name: str) -> int | None:
        """Return when a topic was created, if it was created through this gateway since it started:
        Kafka does not tell.
        """
        return None if self.recorder is None else self.recorder.created.get(name)

    def completed(self, image: Image, elements: Sequence[CompletedElement]) -> None:
        """Take over what requests have changed, and record it."""
        named = (each.topic for each in elements if each.topic is not None)
        self._newer.update(dict.fromkeys(named, trio.current_time()))
        if self.recorder is not None:
            self.recorder.completed(self.image, image, elements)
        self.image = image
        self.on_change()

    def in_doubt(self, elements: Sequence[CompletedElement]) -> None:
        """Record elements of which nobody knows whether they took effect. What is read later shows
        it.
        """
        if self.recorder is not None:
            for element in elements:
                self.recorder.resolved(None, element)

    def _take(self, image: Image) -> None:
        """Take over what was read, and record what others have changed."""
        if image is self.image:
            return
        if self.recorder is not None:
            self.recorder.observed(image)
        self.image = image
        self.on_change()

    async def _image_with(self, names: Collection[str], ids: Collection[bytes]) -> Image:
        with _in_time():
            return await self._read_topics(names, ids)

    async def _read_topics(self, names: Collection[str], ids: Collection[bytes]) -> Image:
        asked = [MetadataRequestTopic(name=name) for name in names]
        asked += [MetadataRequestTopic(topic_id=each, name=None) for each in ids]
        metadata = await self._metadata(asked)
        for row in metadata.topics:
            if not exists(row) and row.error_code not in ABSENT:
                _check(row.error_code, f"the topic {row.name or ''}")
        topics = await self._topics([row for row in metadata.topics if exists(row)])
        gone = [name for name in names if name not in topics and name in self.image.topics]
        changed = [each for name, each in topics.items() if self.image.topics.get(name) is not each]
        image = self.image.with_topics(changed, gone) if changed or gone else self.image
        brokers = brokers_of(metadata.brokers)
        same = {each.broker_id: each for each in brokers} == dict(image.brokers)
        return image if same else image.with_brokers(brokers)

    # ------------------------------------------------------------------ asking

    async def _metadata(self, topics: list[MetadataRequestTopic] | None) -> MetadataResponse:
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        metadata = await self._ask(request, ApiKey.METADATA, MetadataResponse)
        self._network.learn(metadata)
        return metadata

    async def _topics(self, rows: Sequence[MetadataResponseTopic]) -> dict[str, Topic]:
        """Return the topics of these rows, with their configs and reassignments."""
        topics: dict[str, Topic] = {}
        moves = await self._moves() if rows else NO_MOVES
        time_slice = TimeSlice()
        for first in range(0, len(rows), CONFIGS_AT_ONCE):
            some = {row.name or "": row for row in rows[first : first + CONFIGS_AT_ONCE]}
            for result in await self._describe([_topic_resource(name) for name in some]):
                await time_slice.pause()
                name = result.resource_name
                if result.error_code in ABSENT or name not in some:
                    continue  # deleted since
                _check(result.error_code, f"the configs of the topic {name}")
                configs = own_configs(result, ConfigSource.TOPIC_CONFIG)
                try:
                    topics[name] = topic_of(some[name], configs, moves.get(name, {}), self.image.topics.get(name))
                except ValueError as error:
                    raise NotKnownError(str(error)) from None
        return topics

    async def _moves(self) -> Moves:
        """Return the reassignments that are under way; none if the gateway may not see them."""
        if not self._tells_moves:
            return NO_MOVES
        request = ListPartitionReassignmentsRequest(topics=None)
        answer = await self._ask(request, ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsResponse)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._network.forget()
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._tells_moves = False
            log.warning(
                "the gateway may not see reassignments (Describe of the cluster): cancelled ones are not judged"
            )
            return NO_MOVES
        _check(answer.error_code, "reassignments")
        return moves_of(answer)

    async def _defaults(self) -> ClusterDefaults:
        """Return the defaults by the configs of the controller, or else of any broker."""
        if not self._tells_defaults:
            return self.defaults
        broker_id = await self._spokesman()
        if broker_id is None:
            return self.defaults
        resource = _resource(ResourceType.BROKER, str(broker_id))
        (result,) = await self._describe([resource], broker_id=broker_id, include_synonyms=True)
        if result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._tells_defaults = False
            text = "the gateway may not see the configs of brokers (DescribeConfigs of the cluster): defaults are taken to be Kafka's own"
            log.warning(text)
            return self.defaults
        _check(result.error_code, f"the configs of broker {broker_id}")
        return defaults_of(self._config, result)

    async def _spokesman(self) -> int | None:
        """Return the id of the controller's broker, or else of any."""
        view = await self._network.look()
        return view.controller_id if view.controller_id in view.brokers else min(view.brokers, default=None)

    async def _describe(
        self,
        resources: list[DescribeConfigsResource],
        *,
        broker_id: int | None = None,
        include_synonyms: bool = False,
    ) -> list[DescribeConfigsResult]:
        request = DescribeConfigsRequest(resources=resources, include_synonyms=include_synonyms)
        answer = await self._ask(request, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsResponse, broker_id=broker_id)
        if len(answer.results) != len(resources):
            raise NotKnownError(f"the cluster described {len(answer.results)} of {len(resources)} resources")
        return answer.results

    async def _ask(self, message: WireStruct, key: ApiKey, kind: type[T], *, broker_id: int | None = None) -> T:
        """Ask a broker, or else the controller, who knows of changes first, or else any. Raises
        NotKnownError.
        """
        try:
            link = await (self._network.controller() if broker_id is None else self._network.broker(broker_id))
            try:
                answer = await (self._network.ask_any(message, key) if link is None else link.ask(message, key))
            except PeerUnavailable:
                self._network.forget()
                if broker_id is not None:
                    raise
                answer = await self._network.ask_any(message, key)
        except (AdminError, ClusterUnreachable, PeerUnavailable) as error:
            raise NotKnownError("the cluster cannot be asked", str(error)) from None
        assert isinstance(answer, kind)
        return answer


def _broker_id(name: str) -> int | None:
    """Return the id of the broker to ask about its configs; None for the default of all. Raises
    NotKnownError.
    """
    if not name:
        return None
    if (broker_id := java_int(name)) is None:
        raise NotKnownError(f"{name} is no broker's id")
    return broker_id


def _check(code: int, thing: str) -> None:
    """Raise NotKnownError if the cluster answered an error about a thing."""
    if code:
        raise NotKnownError(f"the cluster answers {AdminError(code).name} about {thing}")


def _resource(kind: ResourceType, name: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)


def _topic_resource(name: str) -> DescribeConfigsResource:
    return _resource(ResourceType.TOPIC, name)


@contextmanager
def _in_time() -> Iterator[None]:
    """Raise NotKnownError if the cluster does not answer in time."""
    with trio.move_on_after(PATIENCE_SECONDS) as patience:
        yield
    if patience.cancelled_caught:
        raise NotKnownError(f"the cluster does not answer within {PATIENCE_SECONDS:g} seconds")
