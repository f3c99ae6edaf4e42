"""Loads the state of the cluster from the store, in a few rounds of pipelined reads however many
topics there are.

Rule: a znode that cannot be read is logged and left out; it never stops the controller.
"""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from immutables import Map

from ...cluster.entities import NO_CONFIGS, NO_ENTITY_CONFIGS, UNREADABLE, Broker, EntityConfigs, Topic
from ...cluster.image import Image
from ...cluster.topic_names import is_valid_topic_name
from ...cluster.znodes import groups, layout, registrations, tokens
from ...cluster.znodes.acls import ACL_PATHS
from ...cluster.znodes.configs import decode_config
from ...cluster.znodes.content import MalformedZnodeError
from ...process.settings.topic_configs import faults_of
from ...store.base import HIDDEN, Entry, Store, Watch
from .stored_topics import Known, read_assignment, with_own_ids

log = logging.getLogger("minicontroller.controller")

PATHS = (*layout.PERSISTENT_PATHS, *ACL_PATHS, *tokens.PATHS, *groups.PATHS, layout.COMMITS)

NO_BROKERS: Mapping[int, Broker] = {}
NO_NAMES: Mapping[bytes, str] = {}
KnownTopics = Callable[[str], Known | None]


async def ensure_paths(store: Store) -> bool:
    """Create the missing ones among the persistent znodes of a Kafka cluster and of this program.
    Return whether one was missing.
    """
    entries = await store.get_many(PATHS)
    missing = [path for path, entry in zip(PATHS, entries, strict=True) if entry is None]
    for path in missing:
        await store.ensure(path)
    return bool(missing)


async def load(
    store: Store,
    on_brokers: Watch,
    on_topics: Watch,
    on_deletions: Watch,
    *,
    created: dict[str, int] | None = None,
    known: KnownTopics = lambda _name: None,
) -> Image:
    """Load brokers and topics into an image, and set these watches on the lists that it is read
    from. `created` and `known` are those of `load_topics`. Raises StoreError.
    """
    await store.sync()
    brokers = await load_brokers(store, on_brokers)
    names = await topic_names(store, on_topics)
    marked = frozenset(await store.children(layout.DELETE_TOPICS, on_deletions))
    topics = await load_topics(store, names, marked, created, known)
    return Image().with_brokers(brokers).with_topics(topics)


async def load_brokers(
    store: Store, watch: Watch | None = None, known: Mapping[int, Broker] = NO_BROKERS
) -> list[Broker]:
    """Load the registered brokers, and set the watch on their list and on each registration. A
    registration that cannot be read is logged; the broker stays as it was known, or is left out.
    """
    ids = list(_broker_ids(await store.children(layout.BROKER_IDS, watch)))
    entries = await store.get_many([layout.broker_path(broker_id) for broker_id in ids], watch)
    brokers = []
    for broker_id, entry in zip(ids, entries, strict=True):
        if entry is None:
            continue
        try:
            brokers.append(registrations.decode_broker(broker_id, entry.data, entry.stat.czxid))
        except MalformedZnodeError as error:
            log.warning("the registration of broker %d is ignored: %s", broker_id, error)
            if broker_id in known and (entry is HIDDEN or known[broker_id].epoch == entry.stat.czxid):
                brokers.append(known[broker_id])
    return brokers


def _broker_ids(names: Iterable[str]) -> Iterator[int]:
    for name in names:
        try:
            yield registrations.decode_broker_id(name)
        except MalformedZnodeError as error:
            log.warning("an entry below /brokers/ids is ignored: %s", error)


async def topic_names(store: Store, watch: Watch | None = None) -> list[str]:
    """Return the names of all topics, without znodes whose name is not a legal topic name."""
    return [name for name in await store.children(layout.TOPICS, watch) if is_valid_topic_name(name)]


async def load_topics(
    store: Store,
    names: Sequence[str],
    marked: Collection[str],
    created: dict[str, int] | None = None,
    known: KnownTopics = lambda _name: None,
    *,
    named: Mapping[bytes, str] = NO_NAMES,
) -> list[Topic]:
    """Load these topics with their configs and the states of their partitions. `known` returns what
    was known of a topic before, and `named` has the names of topics by their ids.

    `marked` names the topics with a deletion marker. The times of creation, which an image does not
    hold, are put into `created` by name, in milliseconds since 1970.
    """
    entries = await store.get_many([layout.topic_path(name) for name in names])
    found = [(name, entry) for name, entry in zip(names, entries, strict=True) if entry is not None]
    assignments = [read_assignment(name, entry, known(name)) for name, entry in found]
    if created is not None:
        created.update((name, entry.stat.ctime_ms) for name, entry in found)
    configs = await store.get_many([layout.topic_config_path(each.name) for each in assignments])
    paths = [layout.partition_state_path(each.name, i) for each in assignments for i in range(each.partition_count)]
    states = iter(await store.get_many(paths))
    loaded = []
    for assignment, config in zip(assignments, configs, strict=True):
        topic = assignment.with_states(list(itertools.islice(states, assignment.partition_count)))
        its = entity_configs(f"topic {topic.name}", config)
        tell_of_faults(topic.name, its.configs)
        loaded.append(
            msgspec.structs.replace(
                topic, configs=its.configs, config_version=its.version, marked_for_deletion=topic.name in marked
            )
        )
    return await _with_partitions_znodes(store, with_own_ids(loaded, named))


async def _with_partitions_znodes(store: Store, topics: Sequence[Topic]) -> list[Topic]:
    """Look for the `partitions` znodes of topics that have no partition state yet."""
    unled = [layout.partitions_path(topic.name) for topic in topics if not topic.has_partitions_znode]
    entries = dict(zip(unled, await store.get_many(unled), strict=True))
    return [
        msgspec.structs.replace(topic, has_partitions_znode=True)
        if entries.get(layout.partitions_path(topic.name)) is not None
        else topic
        for topic in topics
    ]


def tell_of_faults(topic: str, configs: Mapping[str, str]) -> None:
    """Log the configs of a topic that another program has stored and that no topic can have."""
    for fault in faults_of(configs):
        log.warning("topic %s has a stored config that is not in force: %.300s", topic, fault)


def entity_configs(whose: str, entry: Entry | None) -> EntityConfigs:
    """Read the configs of an entity from its znode. Unreadable configs are logged, ignored, and
    never overwritten.
    """
    if entry is None:
        return NO_ENTITY_CONFIGS
    try:
        found = decode_config(entry.data)
    except MalformedZnodeError as error:
        log.warning("the configs of %s are ignored: %s", whose, error)
        return EntityConfigs(NO_CONFIGS, UNREADABLE)
    return EntityConfigs(Map(found) if found else NO_CONFIGS, entry.stat.version)


async def count_of_commits(store: Store) -> int:
    """Return the number of commits of all controllers so far."""
    await store.sync()
    entry = await store.get(layout.COMMITS)
    return 0 if entry is None else entry.stat.version


def unmarked(topics: Iterable[Topic]) -> list[Topic]:
    """Return the topics that are marked for deletion, without their marks."""
    return [msgspec.structs.replace(topic, marked_for_deletion=False) for topic in topics if topic.marked_for_deletion]


def with_shutdowns(brokers: Iterable[Broker], known: Mapping[int, Broker]) -> list[Broker]:
    """Return newly read brokers with their controlled shutdowns, which only the active controller
    knows.
    """
    return [
        msgspec.structs.replace(broker, shutting_down=True)
        if (before := known.get(broker.broker_id)) and before.shutting_down and before.epoch == broker.epoch
        else broker
        for broker in brokers
    ]
