"""Applies AlterConfigs and IncrementalAlterConfigs to the overrides of a topic or a broker.

Rule: the functions are pure, return new mappings, and work in Kafka's order. First the request is
checked (`check_request`, before authorization), then the operations are applied, and then the whole
result is validated.

What APPEND and SUBTRACT make of a list is Kafka 3.9's, to the blank. Elements are compared as they
are written; APPEND adds what the value does not have, as often as it is named, and SUBTRACT takes
away one occurrence for each time that an element is named. Kafka 4 drops empty elements of the
value and adds an element once: its results have other blanks, empty elements and repetitions, and
the same meaning.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from immutables import Map

from ...cluster.delta import TopicConfigured
from ...cluster.entities import EntityConfigs, Topic, refuse_unreadable
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...policies.configs.values import KeyType
from ...process.settings.keys import Key, key_named
from ...process.settings.node_config import NodeConfig
from ...process.settings.topic_configs import TOPIC_KEYS, validate_topic_configs
from ...protocol.config_resources import ConfigOperation
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_configs import AlterableConfig, AlterConfigsResource
from ...protocol.messages.incremental_alter_configs import IncrementalAlterableConfig, IncrementalAlterConfigsResource
from .broker_changes import MAX_CONFIGS, validate_broker_configs

Configs = Mapping[str, str]
Resource = AlterConfigsResource | IncrementalAlterConfigsResource
OPERATIONS = frozenset(map(int, ConfigOperation))


def check_request(resource: Resource) -> None:
    """Raise Refusal(INVALID_REQUEST) if the request names a key of the resource twice, or gives no
    value where the operation needs one.
    """
    names = [config.name for config in resource.configs]
    if len(names) > MAX_CONFIGS:
        text = f"{len(names)} configs of one resource are named, {MAX_CONFIGS} are allowed."
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    if len(set(names)) != len(names):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = ", ".join(config.name for config in resource.configs if config.value is None and not _deletes(config))
    if missing:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {missing}")


def _deletes(config: AlterableConfig | IncrementalAlterableConfig) -> bool:
    return isinstance(config, IncrementalAlterableConfig) and config.config_operation == ConfigOperation.DELETE


def altered_topic(topic: str, before: Configs, resource: Resource, node: NodeConfig) -> dict[str, str]:
    """Return the overrides of a topic after a request. Raises Refusal."""
    after = altered(before, resource, _topic_key)
    validate_topic_configs(after, node, altered_topic=topic)
    return after


def altered_broker(before: Configs, resource: Resource, node: NodeConfig) -> dict[str, str]:
    """Return the overrides in `/config/brokers/<id>`, or in `<default>` for a resource without a
    name, after a request. Raises Refusal.
    """
    after = altered(before, resource, key_named)
    validate_broker_configs(after, node, per_broker=resource.resource_name != "")
    return after


def check_operations(resource: Resource) -> None:
    """Check what each operation on a topic asks for, as Kafka does before it looks whether there is
    such a topic. Raises Refusal.
    """
    altered({}, resource, _topic_key)


def check_known_operations(resource: Resource) -> None:
    """Raise Refusal(INVALID_REQUEST) for an operation that there is not."""
    for config in resource.configs:
        if isinstance(config, IncrementalAlterableConfig) and config.config_operation not in OPERATIONS:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {config.config_operation}")


def planned_topic(image: Image, resource: Resource, node: NodeConfig) -> tuple[Topic, TopicConfigured]:
    """Return a topic, and what a request makes of its configs. Raises Refusal."""
    name = resource.resource_name
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    topic = image.topic(name)
    if topic is None or topic.marked_for_deletion:
        check_operations(resource)
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    refuse_unreadable(layout.topic_config_path(name), topic.config_version)
    configs = Map(altered_topic(name, topic.configs, resource, node))
    return topic, TopicConfigured(name, topic.topic_id, configs=EntityConfigs(configs, topic.config_version + 1))


def altered(before: Configs, resource: Resource, key_of: Callable[[str], Key | None]) -> dict[str, str]:
    """Return overrides after AlterConfigs, which removes those that it does not name, or after
    IncrementalAlterConfigs, before the result is validated. Raises Refusal.
    """
    check_request(resource)
    if isinstance(resource, AlterConfigsResource):
        return {config.name: config.value for config in resource.configs if config.value is not None}
    after = dict(before)
    for config in resource.configs:
        match config.config_operation:
            case ConfigOperation.SET:
                after[config.name] = config.value or ""
            case ConfigOperation.DELETE:
                after.pop(config.name, None)
            case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
                after[config.name] = _edited_list(after, config, key_of(config.name))
            case _:
                # Kafka answers -1 for a topic and INVALID_REQUEST for a broker. The request is
                # at fault in both cases.
                raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {config.config_operation}")
    return after


def _edited_list(overrides: Configs, config: IncrementalAlterableConfig, key: Key | None) -> str:
    """Append to a list, or subtract from it. A list without an override starts from Kafka's
    default, not from the default in the node's file.
    """
    verb = ConfigOperation(config.config_operation).name.lower()
    if key is None:
        # Kafka answers -1. Here an unknown key is refused with the error code of SET.
        text = f"Config value {verb} is not allowed for unknown config key: {config.name}"
        raise Refusal(ErrorCode.INVALID_CONFIG, text)
    if key.type is not KeyType.LIST:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {config.name}")
    value, operand = overrides.get(config.name, key.default) or "", config.value or ""
    return (_appended if config.config_operation == ConfigOperation.APPEND else _subtracted)(value, operand)


def _topic_key(name: str) -> Key | None:
    return TOPIC_KEYS[name].key if name in TOPIC_KEYS else None


def _appended(value: str, operand: str) -> str:
    elements = _elements(value)
    present = frozenset(elements)
    return ",".join(elements + [each for each in _operand_elements(operand) if each not in present])


def _subtracted(value: str, operand: str) -> str:
    return ",".join(_without(_elements(value), _operand_elements(operand)))


def _operand_elements(operand: str) -> list[str]:
    return _elements(operand) if operand else [""]


def _elements(text: str) -> list[str]:
    """Split a text as Java does, without the empty elements at its end."""
    elements = text.split(",")
    while elements and not elements[-1]:
        elements.pop()
    return elements


def _without(elements: list[str], named: list[str]) -> Iterator[str]:
    left = Counter(named)
    for each in elements:
        if left[each]:
            left[each] -= 1
        else:
            yield each
