"""Follows changes in the store for the active controller: brokers that register or leave, and
znodes that other processes write.

Rule: a watch says only that a list changed; reading and comparing finds the change. Watches fire
for the controller's own writes too, so a list that it writes itself is read again only after a
pause.
"""

import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from ...cluster.delta import NO_CHANGE, EntitiesChanged, TopicBecomes, TopicConfigured, TopicMarked, TopicRemoved
from ...cluster.entities import NO_TOPIC_ID, Broker, Topic
from ...cluster.entity_paths import changed_paths, closure, entity_of, with_changes
from ...cluster.image import Image
from ...cluster.topic_names import is_valid_topic_name
from ...cluster.znodes import layout
from ...store.base import Delete, NodeMissing, SessionExpired, Store, StoreUnavailable
from ...store.sessions import wait_connected
from ...store.signal import Signal
from . import notifications
from .entity_reading import read_entities
from .identities import identify
from .jobs import ControllerMoved, Draft, StagedElement
from .loading import (
    ensure_paths,
    entity_configs,
    load_brokers,
    load_topics,
    tell_of_faults,
    topic_names,
)
from .partition_states import LeaderElector
from .rereading import reread_topics
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

REREAD_SECONDS = 1.0
"""The pause between two readings of a list that this controller writes itself. It delays the
changes of other processes by this time at most.
"""

REREAD_STATES_SECONDS = 0.05
"""The pause between two readings of partition states that other processes keep writing."""
MAX_PAUSE_SECONDS = 5.0
"""The longest pause before partition states that the store refuses are written again."""


class StoreWatches:
    """Follows the watches of the active controller: each has a signal, and a task that reads what
    changed.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        elector: LeaderElector,
        *,
        brokers_changed: Callable[[Iterable[Broker]], Awaitable[None]],
        directory_lost: Callable[[int], None],
        submissions: Iterable[tuple[Signal, Callable[[], Awaitable[None]]]],
        deletes_topics: bool,
        created: dict[str, int] | None,
    ) -> None:
        """Prepare to follow the watches. `brokers_changed` is awaited with all registered brokers,
        `directory_lost` called with the id of a broker that has lost a log directory. `submissions`
        are the znodes in which other programs ask for something: each is read when its signal is
        sent. `deletes_topics` is the config `delete.topic.enable`; `created` is filled as
        `load_topics` does.
        """
        self.brokers, self.topics, self.deletions, self.configs = Signal(), Signal(), Signal(), Signal()
        self._store = store
        self._writer = writer
        self._elector = elector
        self._brokers_changed = brokers_changed
        self._directory_lost = directory_lost
        self._submissions = submissions
        self._deletes_topics = deletes_topics
        self._created = created
        self.notifications, self.states = Signal(), Signal()
        self._changed_configs: set[str] = set()
        self._changed_states: set[str] = set()
        self._pauses: dict[str, float] = {}
        """The pause before the states of a topic are tried again, for topics whose states the store
        has refused.
        """
        self.entities = Signal()
        self._changed_entities: set[str] = set()

    def configs_changed(self, topics: Iterable[str]) -> None:
        """Have the configs of these topics read again."""
        self._changed_configs.update(topics)
        if self._changed_configs:
            self.configs.send()

    def entities_changed(self, paths: Iterable[str]) -> None:
        """Have these entities, which every node follows, read again."""
        self._changed_entities.update(paths)
        if self._changed_entities:
            self.entities.send()

    async def with_notified(self, image: Image) -> Image:
        """Return a loaded image with what notifications have named meanwhile, as it is now."""
        while self._changed_entities:
            paths, self._changed_entities = self._changed_entities, set()
            found = await read_entities(self._store, sorted(closure(paths)))
            image = with_changes(image, found)
        return image

    def states_changed(self, topics: Iterable[str]) -> None:
        """Have the states of these topics read again, because another process has written them."""
        self._changed_states.update(topics)
        if self._changed_states:
            self.states.send()

    def states_known(self) -> None:
        self._changed_states.clear()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow, self.brokers, self._read_brokers, 0.0)
            nursery.start_soon(self._follow, self.topics, self._read_topics, REREAD_SECONDS)
            nursery.start_soon(self._follow, self.deletions, self._read_deletions, REREAD_SECONDS)
            nursery.start_soon(self._follow, self.configs, self._read_configs, 0.0)
            nursery.start_soon(self._follow, self.entities, self._read_entities, 0.0)
            nursery.start_soon(self._follow, self.notifications, self._read_notifications, 0.0)
            nursery.start_soon(
                self._follow, self.states, functools.partial(self._read_states, nursery), REREAD_STATES_SECONDS
            )
            for signal, read_submission in self._submissions:
                nursery.start_soon(self._follow, signal, read_submission, REREAD_STATES_SECONDS)

    async def _follow(self, signal: Signal, read: Callable[[], Awaitable[None]], pause: float) -> None:
        while True:
            await signal.wait()
            try:
                await self._read_what_is_there(signal, read)
            except StoreUnavailable as error:
                log.debug("%s: reading again after the reconnection", error)
                signal.send()  # the watch was not set again
                await wait_connected(self._store)
            except (SessionExpired, ControllerMoved) as error:
                log.debug("the store's watches end with the epoch: %s", error)
                return
            await trio.sleep(pause)

    async def _read_what_is_there(self, signal: Signal, read: Callable[[], Awaitable[None]]) -> None:
        try:
            await read()
        except NodeMissing as error:
            log.warning("%s was removed from the store by another program and is created again", error.path)
            await ensure_paths(self._store)
            signal.send()

    async def _read_brokers(self) -> None:
        known = self._writer.image.brokers
        await self._brokers_changed(await load_brokers(self._store, self.brokers.send, known))

    async def _read_topics(self) -> None:
        names = await topic_names(self._store, self.topics.send)
        known, there = self._writer.image.topics, set(names)
        missing = [name for name, topic in known.items() if name not in there and not topic.marked_for_deletion]
        if missing or not all(name in known for name in names):
            await self._writer.write(lambda draft: self._adopt_topics(draft, names, missing))

    async def _adopt_topics(self, draft: Draft, names: list[str], missing: list[str]) -> None:
        """Take over topics that other processes have created without states, and drop those that
        they have removed.

        This is a job, so it sees no half-done changes of this controller. A topic counts as unknown
        only if neither the draft nor the committed image has it, because a topic whose deletion is
        planned and not yet sent is still in the store.
        """
        known = self._writer.image.topics
        unknown = [name for name in names if name not in draft.image.topics and name not in known]
        await self._drop(draft, [name for name in missing if self._is_unchanged(draft, name)])
        found = await load_topics(self._store, unknown, frozenset(), self._created, named=draft.image.topic_names)
        for topic in found:
            log.info("topic %s was created by another broker", topic.name)
            self._adopt(draft, topic)
        await self._elector.elect_for_topics(draft, [topic.name for topic in found])

    async def _drop(self, draft: Draft, names: list[str]) -> None:
        """Drop topics that other processes have removed without a deletion marker, so that clients
        no longer see them (Kafka: processTopicChange).
        """
        entries = await self._store.get_many([layout.topic_path(name) for name in names])
        for name, entry in zip(names, entries, strict=True):
            if entry is None:
                log.warning("topic %s was removed from ZooKeeper by another program", name)
                draft.stage(TopicRemoved(name, NO_TOPIC_ID))

    def _adopt(self, draft: Draft, topic: Topic) -> None:
        draft.stage(TopicBecomes.of(topic))
        identify(draft, topic)

    async def _read_deletions(self) -> None:
        marked = await self._store.children(layout.DELETE_TOPICS, self.deletions.send)
        names = [name for name in marked if is_valid_topic_name(name)]
        topics = self._writer.image.topics
        if any(name not in topics or not topics[name].marked_for_deletion for name in names):
            await self._writer.write(lambda draft: self._adopt_markers(draft, names))

    async def _adopt_markers(self, draft: Draft, names: list[str]) -> None:
        """Take over deletion markers that other processes have written for existing topics, and
        remove the other markers.
        """
        markers = await self._store.get_many([layout.delete_topic_path(name) for name in names])
        for name, marker in zip(names, markers, strict=True):
            topic = draft.image.topics.get(name)
            if marker is None or (topic is not None and topic.marked_for_deletion):
                continue
            if topic is not None and not self._is_unchanged(draft, name):
                continue  # the marker belongs to a topic of this name whose deletion is planned and not yet sent
            if topic is None or not self._deletes_topics:
                draft.stage(NO_CHANGE, [Delete(layout.delete_topic_path(name))])
            else:
                draft.stage(TopicMarked(name, topic.topic_id))

    async def _read_notifications(self) -> None:
        found = await notifications.read(self._store, self.notifications.send)
        for broker_id in found.lost_directories:
            self._directory_lost(broker_id)
        self.states_changed(found.changed_isrs)
        if found.paths:
            await self._writer.write(lambda draft: notifications.remove(draft, found.paths), urgent=True)

    async def _read_states(self, nursery: trio.Nursery) -> None:
        names, self._changed_states = self._changed_states, set()
        try:
            elements = await self._writer.write(lambda draft: self._adopt_states(draft, sorted(names)), urgent=True)
        except StoreUnavailable:
            self._changed_states |= names
            raise
        stale = {each.topic for each in elements if each.topic is not None and each.refusal is not None}
        for name in names - stale:
            self._pauses.pop(name, None)
        for name in stale:
            pause = self._pauses.get(name, REREAD_STATES_SECONDS)
            self._pauses[name] = min(2 * pause, MAX_PAUSE_SECONDS)
            nursery.start_soon(self._read_again, name, pause)
        self.states_changed(())

    async def _read_again(self, topic: str, pause: float) -> None:
        await trio.sleep(pause)
        self.states_changed([topic])

    async def _adopt_states(self, draft: Draft, names: list[str]) -> list[StagedElement]:
        """Take over what other processes have written to these topics, and elect leaders where that
        is needed. Topics with uncommitted changes of this controller are read again later.
        """
        quiet = [name for name in names if self._is_unchanged(draft, name)]
        self._changed_states.update(name for name in names if name not in quiet)
        for element in await reread_topics(
            self._store, draft.image, quiet, self._created, deletes_topics=self._deletes_topics
        ):
            draft.add(element)
        for name in names:
            if (topic := draft.image.topics.get(name)) is not None:
                identify(draft, topic)
        return await self._elector.elect_for_topics(draft, names)

    async def _read_entities(self) -> None:
        paths, self._changed_entities = self._changed_entities, set()
        try:
            again = await self._writer.write(lambda draft: self._adopt_entities(draft, sorted(closure(paths))))
        except StoreUnavailable:
            self._changed_entities |= paths
            raise
        if again:
            await trio.sleep(REREAD_STATES_SECONDS)
            self.entities_changed(again)

    async def _adopt_entities(self, draft: Draft, paths: Sequence[str]) -> list[str]:
        """Take over entities that others wrote, as they were read. Return those with uncommitted
        changes of this controller, which are read again later.
        """
        found = await read_entities(self._store, paths)
        again = [path for path in paths if entity_of(draft.image, path) is not entity_of(self._writer.image, path)]
        changed = [path for path in changed_paths(draft.image, found) if path not in again]
        if changed:
            draft.stage(EntitiesChanged({path: found[path] for path in changed}))
        return again

    def _is_unchanged(self, draft: Draft, name: str) -> bool:
        """Return whether the draft has no change of a topic that is not committed yet."""
        return draft.image.topics.get(name) == self._writer.image.topics.get(name)

    async def _read_configs(self) -> None:
        names, self._changed_configs = self._changed_configs, set()
        try:
            again = await self._writer.write(lambda draft: self._adopt_configs(draft, sorted(names)))
        except StoreUnavailable:
            self._changed_configs |= names
            raise
        if again:
            await trio.sleep(REREAD_STATES_SECONDS)
            self.configs_changed(again)

    async def _adopt_configs(self, draft: Draft, names: Sequence[str]) -> list[str]:
        """Take over configs that others wrote to these topics, and elect leaders where a change
        allows an unclean election. Return the topics with uncommitted changes of this controller,
        which are read again later.

        Configs are taken as they were read, whatever their version, because a znode that was
        deleted and created again begins at version 0.
        """
        quiet = [name for name in names if self._is_unchanged(draft, name)]
        topics = [name for name in quiet if name in draft.image.topics]
        entries = await self._store.get_many([layout.topic_config_path(name) for name in topics])
        for name, entry in zip(topics, entries, strict=True):
            topic, configs = draft.image.topics[name], entity_configs(f"topic {name}", entry)
            if not topic.has_configs(configs.configs, configs.version):
                tell_of_faults(name, configs.configs)
                draft.stage(TopicConfigured(name, topic.topic_id, configs=configs))
        await self._elector.elect_for_topics(draft, topics)
        return [name for name in names if name not in quiet]
