"""Configs of topics and brokers: described, and changed one by one (KIP-339)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ..protocol.config_resources import ConfigOperation, ResourceType
from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import Results, each_of, result_of

T = TypeVar("T")
R = TypeVar("R", bound=WireStruct)

SOURCES = ("unknown", "topic", "broker", "cluster default", "static", "default", "broker logger")
"""The sources of a config's value in words; the index is Kafka's ConfigSource."""
SET_HERE = {ResourceType.TOPIC: ("topic",), ResourceType.BROKER: ("broker", "cluster default")}
"""The sources of values that were set on the resource itself, and can be unset there."""
_TYPES = frozenset(ResourceType)


class Resource(msgspec.Struct, frozen=True):
    """A topic or a broker, which have configs; a broker without a name is the default of all."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "Resource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int) -> "Resource":
        return cls(ResourceType.BROKER, str(broker_id))

    @classmethod
    def all_brokers(cls) -> "Resource":
        return cls(ResourceType.BROKER, "")

    @property
    def broker_id(self) -> int | None:
        """The id of the node that alone can answer for this resource; None if any can."""
        return int(self.name) if self.type is ResourceType.BROKER and self.name else None

    def __str__(self) -> str:
        if self.type is ResourceType.TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "the cluster's default"


class ConfigEntry(msgspec.Struct, frozen=True):
    """A config as a broker describes it; `value` is None if it is secret or not set."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool


class AlterConfigOp(msgspec.Struct, frozen=True):
    """One change of a config; DELETE has no value."""

    operation: ConfigOperation
    name: str
    value: str | None = None


class ConfigCalls(Calls):
    async def describe_configs(
        self, resources: Sequence[Resource], keys: Sequence[str] | None = None
    ) -> Results[Resource, tuple[ConfigEntry, ...]]:
        """Describe the configs of topics and brokers: those that `keys` names, or all of them."""
        from ..protocol.messages import describe_configs as messages

        def request(part: Sequence[Resource], _version: int) -> WireStruct:
            named = None if keys is None else list(keys)
            return messages.DescribeConfigsRequest(
                resources=[
                    messages.DescribeConfigsResource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=named
                    )
                    for each in part
                ]
            )

        def entry(row: messages.DescribeConfigsResourceResult) -> ConfigEntry:
            source = SOURCES[row.config_source] if 0 <= row.config_source < len(SOURCES) else SOURCES[0]
            return ConfigEntry(row.name, row.value, source, row.read_only, row.is_sensitive)

        def read(answer: messages.DescribeConfigsResponse) -> Results[Resource, tuple[ConfigEntry, ...]]:
            return {
                Resource(ResourceType(row.resource_type), row.resource_name): result_of(
                    row.error_code,
                    row.error_message,
                    tuple(entry(config) for config in sorted(row.configs, key=lambda config: config.name)),
                )
                for row in answer.results
                if row.resource_type in _TYPES
            }

        return await self._by_node(resources, messages.DescribeConfigsResponse, request, read)

    async def alter_configs(
        self, changes: Mapping[Resource, Sequence[AlterConfigOp]], *, validate_only: bool = False
    ) -> Results[Resource, None]:
        """Change configs; those that are not named stay as they are (KIP-339)."""
        from ..protocol.messages import incremental_alter_configs as messages

        def row(resource: Resource) -> messages.IncrementalAlterConfigsResource:
            return messages.IncrementalAlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    messages.IncrementalAlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                    for change in changes[resource]
                ],
            )

        def request(part: Sequence[Resource], _version: int) -> WireStruct:
            return messages.IncrementalAlterConfigsRequest(
                resources=[row(each) for each in part], validate_only=validate_only
            )

        def read(answer: messages.IncrementalAlterConfigsResponse) -> Results[Resource, None]:
            return {
                Resource(ResourceType(row.resource_type), row.resource_name): result_of(
                    row.error_code, row.error_message, None
                )
                for row in answer.responses
                if row.resource_type in _TYPES
            }

        return await self._by_node(list(changes), messages.IncrementalAlterConfigsResponse, request, read)

    async def _by_node(
        self,
        resources: Sequence[Resource],
        response: type[R],
        request: Callable[[Sequence[Resource], int], WireStruct],
        read: Callable[[R], Results[Resource, T]],
    ) -> Results[Resource, T]:
        """Send a request about resources: to each broker about its own configs, and to the
        controller about all others in one batch.
        """
        parts: dict[int | None, list[Resource]] = {}
        for resource in dict.fromkeys(resources):
            parts.setdefault(resource.broker_id, []).append(resource)
        results: Results[Resource, T] = {}
        for broker_id, part in parts.items():
            results |= await self._batches.write(part, response, request, read, broker_id)
        return each_of(resources, results)
