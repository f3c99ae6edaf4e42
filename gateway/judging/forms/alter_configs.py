"""AlterConfigs and IncrementalAlterConfigs at the gateway, of topics, brokers, loggers and groups.

Rule: what goes on to the cluster is what was judged, also if the configs that were read are old.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
from immutables import Map

from ....admin import questions
from ....admin.changes import Change, kind_and_name
from ....admin.configs.alterations import OPERATIONS, Configs, Resource, altered
from ....admin.create_topics import BROKER_DEFAULT
from ....cluster.delta import TopicBecomes
from ....cluster.image import Image
from ....policies.configs.canonical import canonical, type_of
from ....policies.configs.newer_keys import DEAD_LETTERS
from ....policies.configs.values import KeyType
from ....policies.interface import CreateTopicRequest
from ....policies.rules.vocabulary import OPERATION_OF_KIND
from ....process.settings.keys import Key, UpdateMode, key_named
from ....process.settings.topic_configs import TOPIC_KEYS
from ....protocol.api_keys import ApiKey
from ....protocol.config_resources import ConfigOperation
from ....protocol.messages.create_topics import CreatableTopic
from ....protocol.messages.incremental_alter_configs import IncrementalAlterableConfig, IncrementalAlterConfigsResource
from ..judged import Effect, Part
from ..questions import QuestionContext
from .create_topics import creation
from .parted import PartedForm, dry_run, seen_topic


def _plan(context: QuestionContext, part: Part, resource: Resource, image: Image) -> None:
    kind = part.change.kind
    if kind == "topic":
        _plan_topic(context, part, resource, image)
    elif kind in OPERATION_OF_KIND:
        _plan_other(context, part, image)
    elif isinstance(part.before, Exception):
        raise part.before
    elif kind == "logger":
        _plan_levels(context, part.before, part)
    else:
        _plan_broker(context, part.before, part, resource)


def _plan_topic(context: QuestionContext, part: Part, resource: Resource, image: Image) -> None:
    with seen_topic(part, image) as topic:
        configs = Map(altered(topic.configs, resource, topic_key))
        after = msgspec.structs.replace(topic, configs=configs)
        request = questions.topic_configs(context.asked, part.change, topic.configs, after, context.defaults.differing)
        part.plan(request, TopicBecomes.of(after), stated_form=stated_form(resource, configs))


def _plan_broker(context: QuestionContext, before: Configs, part: Part, resource: Resource) -> None:
    """Plan a change of the configs of a broker, or of the default of all. Raises Refusal."""
    after = altered(before, resource, broker_key)

    def defaults(configs: Configs) -> Configs:
        known = context.defaults
        return known.altered(of_broker=configs) if part.change.resource else known.altered(of_all=configs)

    request = questions.broker_configs(context.asked, part.change, (before, after), (defaults(before), defaults(after)))
    part.plan(request, stated_form=stated_form(resource, after))


def _plan_levels(context: QuestionContext, before: Configs, part: Part) -> None:
    operations = part.change.operations or {}
    after = {**before, **{name: level for name, level in operations.items() if level is not None}}
    part.plan(
        questions.loggers(
            context.asked,
            part.change,
            {name: level for name, level in before.items() if name in operations},
            {name: level for name, level in after.items() if name in operations},
        )
    )


def _plan_other(context: QuestionContext, part: Part, image: Image) -> None:
    """Plan a change of the configs of a group or of client metrics. Brokers create the topic to
    which a share group is to send its dead letters (KIP-1191), when it is needed. A topic that was
    seen is asked about, too, because it may be gone before they need it. Raises Refusal.
    """
    change = part.change
    request = questions.administration(context.asked, change)
    part.plan(request, besides=_dead_letters(context, change, image))


def _dead_letters(context: QuestionContext, change: Change, image: Image) -> Sequence[CreateTopicRequest]:
    """Return the policy request about the topic of a group's dead letters, if it names one."""
    name = canonical(DEAD_LETTERS, (change.operations or {}).get(DEAD_LETTERS) or "")
    if change.kind != "group_config" or not name:
        return ()
    wanted = CreatableTopic(name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)
    request, _, _ = creation(context, wanted, image, automatic=True)
    return (request,)


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


def topic_key(name: str) -> Key | None:
    return TOPIC_KEYS[name].key if name in TOPIC_KEYS else _newer_key(name)


def broker_key(name: str) -> Key | None:
    return key_named(name) or _newer_key(name)


def _newer_key(name: str) -> Key | None:
    """Return a key that Kafka 3.9 does not have, as far as it is known."""
    kind = type_of(name)
    return None if kind is KeyType.UNKNOWN else Key(name, kind, None, None, UpdateMode.CLUSTER_WIDE, "")


def _identity(thing: Any) -> Hashable:
    return (thing.resource_type, *kind_and_name(thing.resource_type, thing.resource_name))


def _is_impossible(wanted: Resource) -> bool:
    """Whether a resource names an operation on a config that there is none of."""
    return any(getattr(each, "config_operation", ConfigOperation.SET) not in OPERATIONS for each in wanted.configs)


ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = (
    PartedForm(
        key=key,
        fields=("resources",),
        ask=_plan,
        impossible=_is_impossible,
        identity=_identity,
        row_identities=lambda row: (_identity(row),),
        effect=Effect.STATED,
        repeated="Each resource must appear at most once.",
        inquire=dry_run,
    )
    for key in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
)
