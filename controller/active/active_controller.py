"""The elected controller: from winning `/controller` to losing it.

Rule: it begins by reading everything, and whenever it is in doubt it begins again. So there is one
way to learn the state of the cluster, whether a predecessor died, a connection broke or the cluster
is new; and what a predecessor left unfinished (topics without states, deletions, leaders that died)
is finished by the same steps that handle the event when it happens.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio

from ..audit.recorder import AuditRecorder
from ..audit.records import Origin
from ..audit.requests import AuditedRequest
from ..metadata.entities import NO_TOPIC_ID, Broker, Topic
from ..metadata.image import Image
from ..store.base import Check, SessionExpired, Store, StoreUnavailable
from ..store.sessions import wait_connected
from ..znodes import layout
from . import notifications, partition_states
from .channel import LinkFactory
from .deletion import Deletions
from .jobs import ControllerMoved, Draft, Element, InDoubt, observation
from .loading import ensure_paths, load
from .local_nodes import LocalNodes
from .propagation import Propagation
from .rereading import reread
from .store_watches import StoreWatches, identify
from .writer import Writer

if TYPE_CHECKING:
    from ..handlers.node import Node

T = TypeVar("T")
log = logging.getLogger("minicontroller.controller")

STEP_DOWN_SECONDS = 1.0
"""For what was begun to be safe and told; a node that does not answer holds a successor up no
longer.
"""


class ActiveController:
    """The controller of one epoch. `image` is what the store holds; `write` is the only way to
    change it.
    """

    def __init__(
        self, node: "Node", epoch: int, fence: Check, link: LinkFactory, doubt: Callable[[], None] = lambda: None
    ) -> None:
        """Prepare a controller; `doubt` is called when somebody says that another one rules, which
        only the store can tell.
        """
        self.node = node
        self.epoch = epoch
        self.fence = fence
        self._resign = trio.Event()
        self._step_down = trio.Event()
        self.deletions = Deletions(self)
        self.local_nodes = LocalNodes(node)
        self._propagation = Propagation(
            is_here=self.local_nodes.is_here,
            inter_broker_listener=node.config.inter_broker_listener.name,
            controller_epoch=epoch,
            image=lambda: self.image,
            link=link,
            on_replicas_deleted=self.deletions.replicas_deleted,
            on_replicas_lost=self._replicas_lost,
            contradicted=doubt,
        )
        self.recorder = (
            None if node.audit is None else AuditRecorder(node.audit, Origin(node.cluster_id, epoch, node.broker_id))
        )
        """Where decisions are recorded; None if the audit log is off."""
        image = Image(controller_id=node.broker_id, controller_epoch=epoch)
        self.writer = Writer(
            node.store,
            fence,
            image,
            self._committed,
            observer=self.recorder,
            room=node.config.integer("queued.max.requests"),
            reread=self._reread,
        )
        self._watches = StoreWatches(self)

    @property
    def image(self) -> Image:
        return self.writer.image

    @property
    def propagation(self) -> Propagation:
        return self._propagation

    async def write(
        self,
        plan: Callable[[Draft], Awaitable[T]],
        *,
        request: AuditedRequest | None = None,
        urgent: bool = False,
        in_any_case: bool = False,
    ) -> T:
        """Write as `Writer.write` does. Raises ControllerMoved if another controller is elected
        before the change is safe.
        """
        return await self.writer.write(plan, request=request, urgent=urgent, in_any_case=in_any_case)

    async def wait_propagated(self, broker_id: int | None, *, configs: bool) -> bool:
        """Wait until this node, or every registered one (None), and this controller's own shows the
        changes so far (K4-6), among them `configs`. False if the reign ended before.
        """
        return await self._propagation.wait_acknowledged(broker_id, configs=configs)

    def reaches(self, broker_id: int) -> bool:
        """Whether this node is told of changes as they come, as far as anybody knows."""
        return self._propagation.reaches(broker_id)

    def expect_update(self, broker_id: int) -> int:
        """Return the number of the newest update, and have it sent to this node
        (`MetadataCache.expect_update`). -1 for a node of this process, which is updated by call.
        """
        return -1 if broker_id in self.node.local_nodes else self._propagation.expect_update(broker_id)

    def resign(self) -> None:
        """Stop at once: another controller rules, or may."""
        self._resign.set()

    def step_down(self) -> None:
        """Stop in good order: begin nothing more, finish what was begun, tell it, and leave the
        rest to the next controller.
        """
        self._step_down.set()

    # ------------------------------------------------------------------ its life

    async def run(self) -> None:
        """Rule until the place is lost; when this returns nothing of it runs any more."""
        reason, end = "an accident ended its reign", "it stepped down"
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_when_resigned, nursery.cancel_scope)
                nursery.start_soon(self._finish_and_resign)
                try:
                    await self._rule(nursery)
                except (ControllerMoved, SessionExpired) as error:
                    end = "its session ended" if isinstance(error, SessionExpired) else "another one was elected"
                nursery.cancel_scope.cancel()
            reason = end
        except* trio.Cancelled:
            reason = "its node was ended at once"
            raise
        finally:
            self.node.controller = None
            self.writer.close(ControllerMoved())
            log.info("broker %d is no longer the controller of epoch %d: %s", self.node.broker_id, self.epoch, reason)

    async def _end_when_resigned(self, scope: trio.CancelScope) -> None:
        await self._resign.wait()
        scope.cancel()

    async def _finish_and_resign(self) -> None:
        await self._step_down.wait()
        self.node.controller = None  # requests that come now, here or by forwarding, wait for the next one
        with trio.move_on_after(STEP_DOWN_SECONDS):
            await self.writer.finish()
            await self._propagation.wait_acknowledged(configs=True)
        self.resign()

    async def _rule(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        await nursery.start(self._propagation.run)
        nursery.start_soon(self.deletions.run)
        while True:
            await wait_connected(self.node.store)
            try:
                await self._begin()
            except StoreUnavailable:
                continue  # the connection broke again; the session's end arrives as SessionExpired
            try:
                await self._serve()
            except InDoubt as error:
                log.warning("what was written is in doubt (%s): reading the state anew", error.__cause__)
            finally:
                self.node.controller = None

    async def _serve(self) -> None:
        """Serve until the writer ends, and raise what ended it."""
        end: Exception | None = None
        async with trio.open_nursery() as reign:
            reign.start_soon(self._watches.run)
            reign.start_soon(self._settle_everything)
            try:
                await self.writer.run()
            except (InDoubt, ControllerMoved, SessionExpired) as error:
                end = error  # raised outside of the nursery, so that it is not wrapped in a group
            reign.cancel_scope.cancel()
        assert end is not None
        raise end

    async def _begin(self) -> None:
        """Read the state, tell everyone, and start to serve."""
        watches, store = self._watches, self.node.store
        await ensure_paths(store)
        await notifications.begin(store, self.fence, watches.notifications.send)
        count = await _count_of_commits(store)  # before the rest: what is late of an earlier life changes it
        created = None if self.recorder is None else self.recorder.created
        state = await load(store, watches.brokers.send, watches.topics.send, watches.deletions.send, created)
        state = state.with_brokers(self._with_shutdowns(state.brokers.values()))
        if not self.node.config.boolean("delete.topic.enable"):
            state = state.with_topics(_unmarked(state.topics.values()))
        watches.deletions.send()  # marks that mean nothing are removed
        watches.states_known()
        image = msgspec.structs.replace(state, controller_id=self.node.broker_id, controller_epoch=self.epoch)
        if self.node.rule_files is not None:  # a quota may be among them, now or when they change
            image = image.with_counts()
        self.writer.reset(image, count)
        self.local_nodes.tell_everything(image)
        self.local_nodes.tell_configs(image)
        self._propagation.restart(image)
        if not self._step_down.is_set():
            self.node.controller = self
        log.info(
            "broker %d is the controller of epoch %d: %d topics, %d brokers",
            self.node.broker_id, self.epoch, len(image.topics), len(image.brokers),
        )  # fmt: skip

    async def _settle_everything(self) -> None:
        """Settle what a predecessor, or a time without a controller, left undone."""
        with contextlib.suppress(ControllerMoved):  # then it is the next one's to settle
            await self.write(self._identify_topics, urgent=True)
            await self._elect(
                lambda draft: partition_states.settle(draft, self.node.store, self.epoch, self.unclean_leader_election)
            )
            self.deletions.resume(self.image)

    async def _identify_topics(self, draft: Draft) -> None:
        """Give ids to topics from before Kafka 2.8."""
        for topic in [each for each in draft.image.topics.values() if each.topic_id == NO_TOPIC_ID]:
            if not topic.marked_for_deletion:
                identify(draft, topic)

    # ------------------------------------------------------------------ what happens to the cluster

    async def brokers_changed(self, brokers: Iterable[Broker]) -> None:
        """Take over the registrations: tell everyone, and elect where it matters."""
        image = self.image
        before = image.brokers
        self.writer.adopt(image.with_brokers(self._with_shutdowns(brokers)))
        self.local_nodes.tell_brokers(self.image)
        self._propagation.brokers_changed(self.image)
        now = self.image.brokers
        changed = {
            broker_id
            for broker_id in {*before, *now}
            if broker_id not in now or broker_id not in before or before[broker_id].epoch != now[broker_id].epoch
        }
        for broker_id in sorted(changed):
            log.info("broker %d %s", broker_id, "registered" if broker_id in now else "is gone")
        if changed:
            bounced = frozenset(broker_id for broker_id in changed if broker_id in before and broker_id in now)
            await self._elect(
                lambda draft: partition_states.settle(
                    draft, self.node.store, self.epoch, self.unclean_leader_election, brokers=changed, bounced=bounced
                )
            )
            self._tell_liveness(image, changed)
            self.deletions.resume(self.image)

    def local_node_registered(self) -> None:
        """Tell a registered node of this process by call from now on."""
        self.local_nodes.tell_brokers(self.image)
        self.local_nodes.tell_configs(self.image)
        self._propagation.brokers_changed(self.image)

    def _with_shutdowns(self, brokers: Iterable[Broker]) -> list[Broker]:
        """Return brokers that were just read with their controlled shutdowns, which only this
        controller knows.
        """
        known = self.image.brokers
        return [
            msgspec.structs.replace(broker, shutting_down=True)
            if (before := known.get(broker.broker_id)) and before.shutting_down and before.epoch == broker.epoch
            else broker
            for broker in brokers
        ]

    async def _reread(self, image: Image, path: str) -> Sequence[Element]:
        """Take over what others wrote where a commit of ours met it; a partition that they added
        may want a leader.
        """
        created = None if self.recorder is None else self.recorder.created
        news = list(await reread(self.node.store, image, path, created))
        if await ensure_paths(self.node.store):  # others have removed what everything lies below
            news.append(observation(lambda image: image))
        self.states_are_stale(element.topic for element in news if element.topic is not None)
        return news

    async def _elect(self, plan: Callable[[Draft], Awaitable[list[Element]]]) -> None:
        """Carry elections out. Where a state is not what it was taken for, judge what it is."""
        elements = await self.write(plan, urgent=True)
        self.states_are_stale([each.topic for each in elements if each.topic is not None and each.refusal is not None])

    def states_are_stale(self, topics: Iterable[str]) -> None:
        """Read, tell and judge anew topics whose states others than this controller
        have written.
        """
        self._watches.states_changed(topics)

    def ask_for_lost_replicas(self, broker_id: int) -> None:
        """Ask a broker that has lost a directory, by LeaderAndIsr, which of its replicas are gone
        with it.
        """
        log.warning("broker %d has lost a log directory", broker_id)
        self._propagation.tell_replicas(broker_id, self.image)

    def _replicas_lost(self, broker: Broker, lost: Mapping[bytes, Collection[int]]) -> None:
        """Take replicas that a broker has lost for offline, as if it were dead (Kafka:
        KafkaController.processLeaderAndIsrResponseReceived).
        """

        async def plan(draft: Draft) -> list[Element]:
            topics = partition_states.lose(draft, broker, lost)
            store, unclean = self.node.store, self.unclean_leader_election
            return await partition_states.settle_topics(draft, store, self.epoch, unclean, topics)

        async def elect() -> None:
            with contextlib.suppress(ControllerMoved):  # the next one is told, too
                await self._elect(plan)

        self._nursery.start_soon(elect)

    def entity_changed(self, kind: str, name: str) -> None:
        """Note that somebody, perhaps this controller, changed the configs of a topic, or what all
        topics inherit.
        """
        if kind in (layout.TOPICS_ENTITY, layout.BROKERS_ENTITY):
            self._watches.configs_changed([(kind, name)])
        if kind == layout.BROKERS_ENTITY:  # it may allow unclean elections
            topics = (topic.name for topic in self.image.topics.values() if not topic.is_complete)
            self._watches.configs_changed((layout.TOPICS_ENTITY, topic) for topic in topics)

    def begin_shutdown(self, broker_id: int) -> None:
        """Begin a broker's controlled shutdown: it stays in the metadata, but cannot be elected any
        more.
        """
        broker = self.image.brokers[broker_id]
        brokers = {**self.image.brokers, broker_id: msgspec.structs.replace(broker, shutting_down=True)}
        self.writer.adopt(self.image.with_brokers(brokers.values()))

    def unclean_leader_election(self, topic: Topic) -> bool:
        override = topic.configs.get("unclean.leader.election.enable")
        if override is not None:
            return override.strip().lower() == "true"
        return self.node.dynamic_configs.current.boolean("unclean.leader.election.enable")

    # ------------------------------------------------------------------ telling

    def _committed(self, before: Image, after: Image, elements: Sequence[Element]) -> None:
        self.node.metrics.commits += 1
        self.node.metrics.committed_elements += len(elements)
        self._tell(before, dict.fromkeys(element.topic for element in elements if element.topic is not None))
        if after.configs is not before.configs:
            self.local_nodes.tell_configs(after)

    def _tell(self, before: Image, names: Iterable[str]) -> None:
        changed, forgotten, removed = [], [], []
        for name in names:
            topic, old = self.image.topics.get(name), before.topics.get(name)
            if topic is old:
                continue
            if topic is None or topic.marked_for_deletion:
                is_known = old is not None and old.marked_for_deletion
                if topic is not None and not (old is not None and is_known and old.topic_id == topic.topic_id):
                    forgotten.append(topic)
                    self._propagation.topic_forgotten(topic)
                elif topic is None and old is not None and not is_known:  # others have removed it
                    removed.append(name)
                    self._propagation.topic_forgotten(old)
                continue
            if old is not None and len(old.partitions) > len(topic.partitions):  # others have replaced it
                self._propagation.topic_forgotten(old)
                old = None
            changed.append(topic)
            self._propagation.topic_changed(old, topic)
        self.local_nodes.tell(self.image, changed, [*removed, *(topic.name for topic in forgotten)])
        for topic in forgotten:
            self.deletions.start(topic)

    def _tell_liveness(self, before: Image, brokers: Collection[int]) -> None:
        """Tell that replicas are offline or online with their brokers, also where that changed no
        state.
        """
        told = []
        for name, topic in self.image.topics.items():
            old = before.topics.get(name)
            if old is None or topic.marked_for_deletion:
                continue
            same = [
                index
                for index, (partition, known) in enumerate(zip(topic.partitions, old.partitions, strict=False))
                if partition is known and partition.has_state and any(each in brokers for each in partition.replicas)
            ]
            if same:
                told.append(topic)
                self._propagation.liveness_changed(topic, same)
        self.local_nodes.tell(self.image, told, ())

    def stop_followers(self, broker_id: int, partitions: Mapping[str, Iterable[int]]) -> None:
        """Stop a broker's followers of these partitions (controlled shutdown)."""
        for name, indexes in partitions.items():
            topic = self.image.topics.get(name)
            for index in indexes if topic is not None else ():
                assert topic is not None
                self._propagation.stop_replica(topic, index, broker_id)


async def _count_of_commits(store: Store) -> int:
    await store.sync()
    entry = await store.get(layout.COMMITS)
    return 0 if entry is None else entry.stat.version


def _unmarked(topics: Iterable[Topic]) -> list[Topic]:
    return [msgspec.structs.replace(topic, marked_for_deletion=False) for topic in topics if topic.marked_for_deletion]
