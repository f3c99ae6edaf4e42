"""Reads the cluster for the gateway: topics, reassignments, defaults, configs and ACLs.

Rule: as long as it answers, one broker is asked. On KRaft every broker follows the controller at
its own pace and calls any broker the controller, so that the answers of several would go back and
forth in time; what one broker shows only ever goes forward.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import trio

from ...client.acls import bindings_of
from ...client.configuration import Address
from ...client.errors import AdminError, ClusterUnreachable
from ...client.network import BrokerLink, Network
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...network.peer import PeerUnavailable
from ...policies.configs.canonical import learn_keys
from ...policies.configs.values import java_int
from ...process.settings.node_config import ConfigSource, NodeConfig
from ...process.time_slices import TimeSlice
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.api_keys import ApiKey
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import RETRIABLE, ErrorCode
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
from ...protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from ...protocol.schema import WireStruct
from .reading import NO_MOVES, ClusterDefaults, Moves, defaults_of, moves_of, own_configs, told_keys, topic_of

log = logging.getLogger("minicontroller.gateway")

PATIENCE_SECONDS = 10.0
"""How long the cluster may take to tell what a judgement needs."""
CONFIGS_AT_ONCE = 100
"""How many topics a question for configs names: each has about forty."""
ABSENT = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
MOST_BROKERS_ASKED = 3
"""How many brokers one question is put to, one after the other, until one answers."""

T = TypeVar("T")


class NotKnownError(Exception):
    """The cluster does not tell what a judgement needs. The message says what and why."""

    def __init__(self, reason: str, detail: str = "", *, will_pass: bool = False) -> None:
        """`reason` is told to clients, too; `detail` may have addresses of the cluster and keys of
        the gateway, and is for its log. `will_pass` if the same question may be answered soon.
        """
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self._will_pass = will_pass

    def refusal(self, retried_as: ErrorCode) -> Refusal:
        """Return the refusal of a request that cannot be judged: by the error for which clients try
        it again if that helps, and by one that they show at once if not.
        """
        code = retried_as if self._will_pass else ErrorCode.POLICY_VIOLATION
        return Refusal(code, f"The gateway cannot judge the request now: {self.reason}.")


class ClusterReader:
    """Asks the cluster for what the gateway has to know of it."""

    def __init__(self, network: Network, config: NodeConfig, *, switched: Callable[[], None]) -> None:
        """`config` has the values of keys that the cluster does not tell; `switched` is called when
        another broker than before is asked from now on.
        """
        self._network = network
        self._config = config
        self._switched = switched
        self._source: BrokerLink | None = None
        self._left: Address | None = None
        """The address of the broker that was asked before, which is asked last."""
        self._tells_moves = True
        self._tells_defaults = True

    async def metadata(self, topics: list[MetadataRequestTopic] | None) -> MetadataResponse:
        """Return what the cluster tells of topics, or of all, and of its brokers. Raises
        NotKnownError.
        """
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        metadata = await self._ask(request, ApiKey.METADATA, MetadataResponse)
        self._network.learn(metadata)
        return metadata

    async def topics(self, rows: Sequence[MetadataResponseTopic], known: Mapping[str, Topic]) -> dict[str, Topic]:
        """Return the topics of these rows, with their configs and reassignments; those that are
        `known` and have not changed are the same objects. Raises NotKnownError.
        """
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
                check(result.error_code, f"the configs of the topic {name}")
                configs = own_configs(result, ConfigSource.TOPIC_CONFIG)
                try:
                    topics[name] = topic_of(some[name], configs, moves.get(name, {}), known.get(name))
                except ValueError as error:
                    raise NotKnownError(str(error)) from None
        return topics

    async def configs_of(self, kind: ResourceType, name: str, source: ConfigSource | None) -> dict[str, str]:
        """Return those configs of a broker or its loggers that have this source, or all. An empty
        name stands for the default of all brokers. Raises NotKnownError.
        """
        with self.in_time():
            (result,) = await self._describe([_resource(kind, name)], broker_id=_broker_id(name))
        check(result.error_code, f"the configs of broker {name}")
        return own_configs(result, source)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Raise NotKnownError if the cluster does not answer in time. Another broker is asked from
        then on.
        """
        with trio.move_on_after(PATIENCE_SECONDS) as patience:
            yield
        if patience.cancelled_caught:
            self.leave()
            raise NotKnownError(f"the cluster does not answer within {PATIENCE_SECONDS:g} seconds", will_pass=True)

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
        with self.in_time():
            answer = await self._ask(request, ApiKey.DESCRIBE_ACLS, DescribeAclsResponse)
        if answer.error_code == ErrorCode.SECURITY_DISABLED:
            return {}
        check(answer.error_code, "ACLs")
        try:
            bindings = bindings_of(answer)
        except (AdminError, ValueError) as error:
            raise NotKnownError(f"the gateway cannot read an ACL of the cluster: {error}") from None
        found: dict[ResourcePattern, list[AccessControlEntry]] = {}
        for each in bindings:
            found.setdefault(each.pattern, []).append(each.entry)
        return found

    async def _moves(self) -> Moves:
        """Return the reassignments that are under way; none if the gateway may not see them."""
        if not self._tells_moves:
            return NO_MOVES
        request = ListPartitionReassignmentsRequest(topics=None)
        answer = await self._ask(request, ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsResponse)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:  # with ZooKeeper the controller knows first
            self.leave()
            answer = await self._ask(request, ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsResponse)
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._tells_moves = False
            log.warning(
                "the gateway sees no reassignments, because it lacks Describe of the cluster: it does not judge cancellations"
            )
            return NO_MOVES
        check(answer.error_code, "reassignments")
        return moves_of(answer)

    async def defaults(self, known: ClusterDefaults) -> ClusterDefaults:
        """Return the defaults by the configs of the controller, or else of any broker; those that
        are known if the gateway may not see them. Raises NotKnownError.
        """
        if not self._tells_defaults:
            return known
        broker_id = await self._spokesman()
        if broker_id is None:
            return known
        resource = _resource(ResourceType.BROKER, str(broker_id))
        (result,) = await self._describe([resource], broker_id=broker_id, include_synonyms=True)
        if result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._tells_defaults = False
            text = "the gateway does not see the configs of brokers, because it lacks DescribeConfigs of the cluster: it assumes Kafka's defaults"
            log.warning(text)
            return known
        check(result.error_code, f"the configs of broker {broker_id}")
        return defaults_of(self._config, result)

    async def _spokesman(self) -> int | None:
        """Return the id of the controller's broker, or else of any. Raises NotKnownError."""
        try:
            view = await self._network.look()
        except (AdminError, ClusterUnreachable) as error:
            raise _unanswered(error) from None
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
        learn_keys(told_keys(answer.results))
        return answer.results

    async def _ask(self, message: WireStruct, key: ApiKey, kind: type[T], *, broker_id: int | None = None) -> T:
        """Ask a broker, or else the one that is asked for everything. Raises NotKnownError."""
        try:
            if broker_id is None:
                answer = await self._ask_source(message, key)
            else:
                answer = await (await self._network.broker(broker_id)).ask(message, key)
        except (AdminError, ClusterUnreachable, PeerUnavailable) as error:
            if broker_id is not None:
                self._network.forget()
            raise _unanswered(error) from None
        assert isinstance(answer, kind)
        return answer

    async def _ask_source(self, message: WireStruct, key: ApiKey) -> WireStruct:
        for _ in range(MOST_BROKERS_ASKED - 1):
            link = await self._chosen()
            try:
                return await link.ask(message, key)
            except PeerUnavailable:
                self.leave()
        return await (await self._chosen()).ask(message, key)

    async def _chosen(self) -> BrokerLink:
        """Return the broker that is asked for everything: at first the controller, who knows of
        changes before the others where it is one of them. Raises ClusterUnreachable, AdminError.
        """
        if self._source is None:
            view = await self._network.look()
            brokers = sorted(view.brokers.values(), key=lambda each: each.node_id != view.controller_id)
            addresses = [Address(each.host, each.port) for each in brokers]
            if not addresses:
                raise ClusterUnreachable("no broker is registered")
            self._source = self._network.link(min(addresses, key=lambda each: each == self._left))
        return self._source

    def leave(self) -> None:
        """Ask another broker from now on."""
        if self._source is not None:
            self._left, self._source = self._source.address, None
            self._switched()
        self._network.forget()


def _broker_id(name: str) -> int | None:
    """Return the id of the broker to ask about its configs; None for the default of all. Raises
    NotKnownError.
    """
    if not name:
        return None
    if (broker_id := java_int(name)) is None:
        raise NotKnownError(f"{name} is no broker's id")
    return broker_id


def check(code: int, thing: str) -> None:
    """Raise NotKnownError if the cluster answered an error about a thing."""
    if code:
        raise NotKnownError(f"the cluster answers {AdminError(code).name} about {thing}", will_pass=_will_pass(code))


def _will_pass(code: int) -> bool:
    return code in RETRIABLE or code == ErrorCode.BROKER_NOT_AVAILABLE


def _unanswered(error: Exception) -> NotKnownError:
    will_pass = not isinstance(error, AdminError) or _will_pass(error.code)
    return NotKnownError("asking the cluster failed", str(error), will_pass=will_pass)


def _resource(kind: ResourceType, name: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)


def _topic_resource(name: str) -> DescribeConfigsResource:
    return _resource(ResourceType.TOPIC, name)
