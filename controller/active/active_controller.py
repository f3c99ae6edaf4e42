"""The active controller, from its election until another controller is elected.

Rule: it begins by loading everything from the store, and loads everything again whenever a write is
in doubt, so there is one way to learn the state of the cluster. Work that a predecessor left
unfinished (topics without leaders, deletions, elections) is finished by the code that handles these
events when they happen.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
import trio

from ...admin.recording.recorder import AuditRecorder
from ...admin.recording.records import EventOrigin
from ...admin.recording.requests import AuditedRequest
from ...cluster.delta import NO_CHANGE
from ...cluster.entities import NO_TOPIC_ID, Broker, Topic
from ...cluster.entity_paths import with_entities
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...store.base import Check, SessionExpired, StoreUnavailable
from ...store.sessions import wait_connected
from . import notifications, partition_states
from .channel import LinkFactory
from .deletion import Deletions
from .duties import Duties
from .eligible_node import EligibleNode
from .entity_reading import load_entities
from .identities import identify
from .jobs import ControllerMoved, Draft, InDoubt, StagedElement
from .loading import count_of_commits, ensure_paths, load, unmarked, with_shutdowns
from .local_nodes import LocalNodes
from .node_updates import NodeUpdates
from .offset_expiry import OffsetExpiry
from .partition_states import LeaderElector
from .preferred_leaders import LeaderRebalance, SubmittedElections
from .producer_id_blocks import ProducerIdBlocks
from .propagation import Propagation
from .reassignment import Reassignments
from .rereading import reread
from .store_watches import StoreWatches
from .stored_topics import Known
from .token_expiry import TokenExpiry
from .topic_watches import TopicWatches
from .writer import Writer

T = TypeVar("T")
log = logging.getLogger("minicontroller.controller")

STEP_DOWN_SECONDS = 1.0
"""The time in which a controller that steps down must commit and send the changes it has begun."""


class ActiveController:
    """The controller of one epoch. `image` is the state in the store, and `write` the only way to
    change it.
    """

    def __init__(
        self,
        node: "EligibleNode[ActiveController]",
        epoch: int,
        fence: Check,
        link: LinkFactory,
        contradicted: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare a controller for `run`. Each of its commits checks `fence`. `contradicted` is
        called when a broker answers that it follows another controller.
        """
        self.node = node
        self.epoch = epoch
        self.fence = fence
        self._resigned = trio.Event()
        self._stepping_down = trio.Event()
        self.recorder = (
            None
            if node.audit is None
            else AuditRecorder(node.audit, EventOrigin(node.cluster_id, epoch, node.broker_id))
        )
        """Records decisions; None if the audit log is off."""
        self._created = None if self.recorder is None else self.recorder.created
        self.writer = Writer(
            node.store,
            fence,
            Image(controller_id=node.broker_id, controller_epoch=epoch),
            self._committed,
            observer=self.recorder,
            room=node.config.integer("queued.max.requests"),
            reread=self._reread,
        )
        self.producer_ids = ProducerIdBlocks(node.store, self.writer)
        self.local_nodes = LocalNodes(node.broker_id, node, node.local_nodes)
        self.propagation = Propagation(
            is_here=self.local_nodes.is_here,
            inter_broker_listener=node.config.inter_broker_listener.name,
            controller_epoch=epoch,
            image=lambda: self.image,
            link=link,
            on_replicas_deleted=self._replicas_deleted,
            on_replicas_lost=self._replicas_lost,
            contradicted=contradicted,
        )
        self._updates = NodeUpdates(self.local_nodes, self.propagation)
        self.deletions = Deletions(node.store, self.writer, self.propagation, self.local_nodes)
        self._elector = LeaderElector(node.store, epoch, self._allows_unclean_election)
        self.reassignments = Reassignments(
            node.store, self.writer, epoch, elect=self._elector.elect_for_topics, stale=self.states_are_stale
        )
        self._submitted_elections = SubmittedElections(node.store, self.writer, epoch)
        self._deletes_topics = node.config.boolean("delete.topic.enable")
        self._watches = StoreWatches(
            node.store,
            self.writer,
            self._elector,
            brokers_changed=self.brokers_changed,
            directory_lost=self._directory_lost,
            submissions=(
                (self.reassignments.submitted_changed, self.reassignments.read_submitted),
                (self._submitted_elections.changed, self._submitted_elections.read),
            ),
            deletes_topics=self._deletes_topics,
            created=self._created,
        )
        self._topic_watches = TopicWatches(
            node.store,
            lambda: self.image,
            topics_changed=self._watches.states_changed,
            configs_changed=lambda names: self._watches.configs_changed((layout.TOPICS_ENTITY, name) for name in names),
        )
        self._duties = Duties(
            of_epoch=(self.deletions.run, self.reassignments.run),
            of_state=(
                self._watches.run,
                self._topic_watches.run,
                self._finish_predecessors_work,
                TokenExpiry(node.config, self.writer).run,
                OffsetExpiry(node.config, self.writer).run,
                LeaderRebalance(node.config, self.writer, epoch).run,
            ),
        )

    @property
    def image(self) -> Image:
        return self.writer.image

    async def write(
        self,
        plan: Callable[[Draft], Awaitable[T]],
        *,
        request: AuditedRequest | None = None,
        urgent: bool = False,
        in_any_case: bool = False,
    ) -> T:
        """Write as `Writer.write` does. Raises ControllerMoved if another controller is elected
        before the change is committed.
        """
        return await self.writer.write(plan, request=request, urgent=urgent, in_any_case=in_any_case)

    async def wait_propagated(self, broker_id: int | None, *, configs: bool) -> bool:
        """Wait until this broker, or every registered one (None), has all changes made so far
        (K4-6). With `configs`, wait also until it has read changed configs. Return False if the
        controller stopped before.
        """
        return await self.propagation.wait_acknowledged(broker_id, configs=configs)

    def reaches(self, broker_id: int) -> bool:
        """Return whether this broker answered the last request to it. It is true as long as none
        was sent.
        """
        return self.propagation.reaches(broker_id)

    def expect_update(self, broker_id: int) -> int:
        """Return the number of the newest update, and have it sent to this node
        (`MetadataCache.expect_update`). Return -1 for a local node, which is updated by call.
        """
        return -1 if broker_id in self.node.local_nodes else self.propagation.expect_update(broker_id)

    def resign(self) -> None:
        """Stop at once, because another controller was or may have been elected."""
        self._resigned.set()

    def step_down(self) -> None:
        """Stop in good order: begin no other change, and commit and send those that were begun. The
        next controller does the rest.
        """
        self._stepping_down.set()

    # ------------------------------------------------------------------ life cycle

    async def run(self) -> None:
        """Be the active controller until another one is elected, or this one resigns or steps down.
        All of its tasks have ended when this method returns.
        """
        reason, end = "an error ended its epoch", "it stepped down"
        unsubscribe = self.node.security.on_notified(self._watches.entities_changed)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_when_resigned, nursery.cancel_scope)
                nursery.start_soon(self._finish_and_resign)
                try:
                    await self._serve_epoch(nursery)
                except (ControllerMoved, SessionExpired) as error:
                    end = "its session ended" if isinstance(error, SessionExpired) else "another controller was elected"
                nursery.cancel_scope.cancel()
            reason = end
        except* trio.Cancelled:
            reason = "its node stopped at once"
            raise
        finally:
            unsubscribe()
            self.node.controller = None
            self.writer.close(ControllerMoved())
            log.info("broker %d is no longer the controller of epoch %d: %s", self.node.broker_id, self.epoch, reason)

    async def _end_when_resigned(self, scope: trio.CancelScope) -> None:
        await self._resigned.wait()
        scope.cancel()

    async def _finish_and_resign(self) -> None:
        await self._stepping_down.wait()
        self.node.controller = None  # requests that arrive now, here or by forwarding, wait for the next controller
        with trio.move_on_after(STEP_DOWN_SECONDS):
            await self.writer.finish()
            await self.propagation.wait_acknowledged(configs=True)
        self.resign()

    async def _serve_epoch(self, nursery: trio.Nursery) -> None:
        """Load the state and serve, and do so again whenever a write is in doubt. Raises
        ControllerMoved or SessionExpired when the epoch ends.
        """
        self._nursery = nursery
        await nursery.start(self.propagation.run)
        self._duties.begin(nursery)
        while True:
            await wait_connected(self.node.store)
            try:
                await self._load()
            except StoreUnavailable:
                continue  # the connection broke again; the session's end arrives as SessionExpired
            try:
                await self._duties.beside(self.writer.run)
            except InDoubt as error:
                log.warning("it is unknown whether a commit took effect (%s): reading the state again", error.__cause__)
            finally:
                self.node.controller = None

    async def _load(self) -> None:
        """Load the state from the store, send it to all nodes, and accept requests."""
        watches, store = self._watches, self.node.store
        await ensure_paths(store)
        await notifications.begin(store, self.fence, watches.notifications.send)
        count = await count_of_commits(store)  # read first, because a late commit of an earlier epoch changes it
        state = await load(
            store,
            watches.brokers.send,
            watches.topics.send,
            watches.deletions.send,
            created=self._created,
            known=self._known,
        )
        state = state.with_brokers(with_shutdowns(state.brokers.values(), self.image.brokers))
        if not self._deletes_topics:
            state = state.with_topics(unmarked(state.topics.values()))
        watches.deletions.send()  # meaningless markers are removed
        self.reassignments.submitted_changed.send()
        self._submitted_elections.changed.send()
        watches.states_known()
        state = await watches.with_notified(with_entities(state, await load_entities(store)))
        image = msgspec.structs.replace(state, controller_id=self.node.broker_id, controller_epoch=self.epoch)
        if self.node.rule_files is not None:  # the rules may contain a quota, now or later
            image = image.with_counts()
        self.writer.reset(image, count)
        self._updates.restart(image)
        self._topic_watches.watch(image.topics)
        if not self._stepping_down.is_set():
            self.node.controller = self
        log.info(
            "broker %d is the controller of epoch %d: topics %d, brokers %d",
            self.node.broker_id, self.epoch, len(image.topics), len(image.brokers),
        )  # fmt: skip

    def _known(self, name: str) -> Known | None:
        """Return what this controller, or before its epoch this node, knew of a topic."""
        ours, theirs = self.image.topics.get(name), self.node.cache.image.topics.get(name)
        topic = ours or theirs
        return None if topic is None else Known(topic, is_certain=False)

    async def _finish_predecessors_work(self) -> None:
        """Finish the work of a predecessor, and catch up on changes made while there was no
        controller.
        """
        with contextlib.suppress(ControllerMoved):  # the next controller does it
            await self.write(self._identify_topics, urgent=True)
            await self._elect(self._elector.elect_everywhere)
            await self.write(self.reassignments.resume, urgent=True)
            self.deletions.resume(self.image)

    async def _identify_topics(self, draft: Draft) -> None:
        """Give ids to topics whose znode has none."""
        for topic in [each for each in draft.image.topics.values() if each.topic_id == NO_TOPIC_ID or each.lacks_id]:
            identify(draft, topic)

    # ------------------------------------------------------------------ brokers

    async def brokers_changed(self, brokers: Iterable[Broker]) -> None:
        """Take over the registrations, send them to all nodes, and elect leaders."""
        image = self.image
        before = image.brokers
        self.writer.adopt(image.with_brokers(with_shutdowns(brokers, before)))
        self._updates.brokers_changed(self.image)
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
            await self._elect(lambda draft: self._elector.elect_after_change_of(draft, changed, bounced))
            self._updates.liveness_changed(image, self.image, changed)
            self.deletions.resume(self.image)

    def local_node_registered(self) -> None:
        """Update a local node by call from now on, because its registration is known."""
        self._updates.local_node_registered(self.image)

    def begin_shutdown(self, broker_id: int) -> None:
        """Begin a controlled shutdown: the broker stays in the metadata, but cannot be elected."""
        broker = self.image.brokers[broker_id]
        brokers = {**self.image.brokers, broker_id: msgspec.structs.replace(broker, shutting_down=True)}
        self.writer.adopt(self.image.with_brokers(brokers.values()))

    def stop_followers(self, broker_id: int, partitions: Mapping[str, Iterable[int]]) -> None:
        """Have a broker stop its replicas of these partitions, by topic (controlled shutdown)."""
        self._updates.stop_followers(self.image, broker_id, partitions)

    def _directory_lost(self, broker_id: int) -> None:
        """Send LeaderAndIsr to a broker that has lost a log directory, to learn which replicas it
        has lost.
        """
        log.warning("broker %d has lost a log directory", broker_id)
        self.propagation.tell_replicas(broker_id, self.image)

    def _replicas_deleted(self, broker_id: int, topics: list[Topic]) -> None:
        self.deletions.replicas_deleted(broker_id, topics)

    def _replicas_lost(self, broker: Broker, lost: Mapping[bytes, Collection[int]]) -> None:
        """Treat replicas that a broker has lost as offline (Kafka:
        KafkaController.processLeaderAndIsrResponseReceived).
        """

        async def plan(draft: Draft) -> list[StagedElement]:
            return await self._elector.elect_for_topics(draft, partition_states.lose(draft, broker, lost))

        async def elect() -> None:
            with contextlib.suppress(ControllerMoved):  # the next controller learns of it, too
                await self._elect(plan)

        self._nursery.start_soon(elect)

    # ------------------------------------------------------------------ topics and configs

    async def _elect(self, plan: Callable[[Draft], Awaitable[list[StagedElement]]]) -> None:
        """Carry out elections. If the stored state of a topic has changed, read it again, and elect
        its leaders then.
        """
        elements = await self.write(plan, urgent=True)
        self.states_are_stale([each.topic for each in elements if each.topic is not None and each.refusal is not None])

    def states_are_stale(self, topics: Iterable[str]) -> None:
        """Read the states of these topics again, because another process has written them."""
        self._watches.states_changed(topics)

    def entity_changed(self, kind: str, name: str) -> None:
        """Read the configs of a topic or broker again, because they were changed, perhaps by this
        controller.
        """
        if kind in (layout.TOPICS_ENTITY, layout.BROKERS_ENTITY):
            self._watches.configs_changed([(kind, name)])
        if kind == layout.BROKERS_ENTITY:  # the new configs may allow unclean elections
            topics = (topic.name for topic in self.image.topics.values() if not topic.is_complete)
            self._watches.configs_changed((layout.TOPICS_ENTITY, topic) for topic in topics)

    def _allows_unclean_election(self, topic: Topic) -> bool:
        override = topic.configs.get("unclean.leader.election.enable")
        if override is not None:
            return override.strip().lower() == "true"
        return self.node.dynamic_configs.current.boolean("unclean.leader.election.enable")

    # ------------------------------------------------------------------ commits

    def _committed(self, before: Image, after: Image, elements: Sequence[StagedElement]) -> None:
        self.node.metrics.commits += 1
        self.node.metrics.committed_elements += len(elements)
        names = dict.fromkeys(element.topic for element in elements if element.topic is not None)
        self.node.metrics.unclean_elections += partition_states.count_unclean_elections(before, after, names)
        for topic in self._updates.topics_changed(before, after, names):
            self.deletions.start(topic)
        self.reassignments.topics_changed(after, names)
        self._topic_watches.watch(name for name in names if name not in before.topics and name in after.topics)
        if after.configs is not before.configs:
            self._updates.configs_changed(after)
        self._updates.entities_changed(after, elements)

    async def _reread(self, image: Image, path: str) -> Sequence[StagedElement]:
        """Return what other processes have written at a path where a commit of this controller met
        a conflict. Partitions that they have added may need a leader.
        """
        news = list(await reread(self.node.store, image, path, self._created, deletes_topics=self._deletes_topics))
        if await ensure_paths(self.node.store):  # another process has removed the parent znodes
            news.append(StagedElement(NO_CHANGE))
        self.states_are_stale(element.topic for element in news if element.topic is not None)
        return news
