"""What a request makes of the configs of a topic or broker; pure.

Rule: what goes on to the cluster is what was judged, also if the configs that were read are old.
"""

from collections.abc import Iterable

import msgspec

from ...admin.configs.alterations import Configs, Resource
from ...policies.configs.canonical import type_of
from ...policies.configs.values import KeyType
from ...process.settings.keys import Key, UpdateMode, key_named
from ...process.settings.topic_configs import TOPIC_KEYS
from ...protocol.config_resources import ConfigOperation
from ...protocol.messages.incremental_alter_configs import IncrementalAlterableConfig, IncrementalAlterConfigsResource


def stated_form(resource: Resource, after: Configs) -> IncrementalAlterConfigsResource | None:
    """Return an element with the resulting values in place of what it appends and subtracts, or
    None if it does neither.
    """
    if not isinstance(resource, IncrementalAlterConfigsResource) or not any(map(_edits, resource.configs)):
        return None
    configs = [
        msgspec.structs.replace(each, config_operation=int(ConfigOperation.SET), value=after[each.name])
        if _edits(each)
        else each
        for each in resource.configs
    ]
    return msgspec.structs.replace(resource, configs=configs)


def _edits(config: IncrementalAlterableConfig) -> bool:
    return config.config_operation in {ConfigOperation.APPEND, ConfigOperation.SUBTRACT}


def has_changed(before: Configs, after: Configs, now: Configs, keys: Iterable[str]) -> bool:
    """Whether configs have left the values that these keys had before: they are as they were to be
    after a change, or others have changed them since.
    """
    return all(now.get(key) == after.get(key) or now.get(key) != before.get(key) for key in keys)


def topic_key(name: str) -> Key | None:
    return TOPIC_KEYS[name].key if name in TOPIC_KEYS else _newer_key(name)


def broker_key(name: str) -> Key | None:
    return key_named(name) or _newer_key(name)


def _newer_key(name: str) -> Key | None:
    """Return a key that Kafka 3.9 does not have, as far as it is known."""
    kind = type_of(name)
    return None if kind is KeyType.UNKNOWN else Key(name, kind, None, None, UpdateMode.CLUSTER_WIDE, "")
