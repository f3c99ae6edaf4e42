"""The active controller, from its election until another controller is elected.

Rule: it begins by loading everything from the store, and loads everything again whenever a write is
in doubt, so there is one way to learn the state of the cluster. Work that a predecessor left
unfinished (topics without leaders, deletions, elections) is finished by the code that handles these
events when they happen.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import trio

from ...admin.recording.recorder import AuditRecorder
from ...cluster.delta import NO_CHANGE
from ...cluster.entities import Topic
from ...cluster.entity_paths import is_followed, with_entities
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...process.observe.metrics import NodeMetrics
from ...process.settings.node_config import NodeConfig
from ...protocol.error_codes import ErrorCode
from ...store.base import Check, NodeMissing, SessionExpired, Store, StoreError, StoreUnavailable
from ...store.sessions import wait_connected
from . import notifications, partition_states
from .channel import LinkFactory
from .deletion import Deletions
from .duties import Duties, housekeeping
from .entity_reading import load_entities
from .identities import identify_all
from .jobs import ControllerMoved, InDoubt, StagedElement
from .loading import count_of_commits, ensure_paths, load, unmarked, with_shutdowns
from .local_nodes import LocalNodes
from .node_updates import NodeUpdates
from .partition_states import LeaderElector
from .preferred_leaders import SubmittedElections
from .producer_id_blocks import ProducerIdBlocks
from .propagation import Propagation
from .reassignment import Reassignments
from .recall import is_lacking, recall
from .registered_brokers import RegisteredBrokers
from .rereading import reread
from .store_watches import StoreWatches
from .stored_topics import Known
from .topic_watches import TopicWatches
from .writer import Writer

log = logging.getLogger("minicontroller.controller")

TOPIC_CONFIGS, BROKER_CONFIGS = f"{layout.TOPIC_CONFIGS}/", f"{layout.BROKER_CONFIGS}/"
STEP_DOWN_SECONDS = 1.0
"""The time in which a controller that steps down must commit and send the changes it has begun."""


class WonElection(NamedTuple):
    broker_id: int
    epoch: int
    fence: Check
    """The check of each commit that no other controller was elected since."""


class ActiveController:
    """The controller of one epoch. `image` is the state in the store, and `writer` the only way to
    change it.
    """

    def __init__(
        self,
        won: WonElection,
        store: Store,
        config: Callable[[], NodeConfig],
        local_nodes: LocalNodes,
        link: LinkFactory,
        *,
        recorder: AuditRecorder | None = None,
        metrics: NodeMetrics | None = None,
        counts_topics: bool = False,
        serve: "Callable[[ActiveController | None], None]" = lambda _controller: None,
        contradicted: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare the controller of the epoch that was won for `run`. `config` returns the
        configuration in force. With `counts_topics` the image counts its topics for policies.
        `serve` is called with this controller when it has loaded its state, and with None when it
        takes no more requests; `contradicted` when a broker says that it follows another one.
        """
        self.broker_id, self.epoch, self.fence = won
        self.store = store
        self.recorder = recorder
        self.local_nodes = local_nodes
        self._link = link
        self._serve = serve
        self._counts_topics = counts_topics
        self._metrics = NodeMetrics() if metrics is None else metrics
        self._created = None if recorder is None else recorder.created
        self._deletes_topics = config().boolean("delete.topic.enable")
        self._resigned, self._stepping_down = trio.Event(), trio.Event()
        self.writer = Writer(
            store,
            self.fence,
            Image(controller_id=self.broker_id, controller_epoch=self.epoch),
            self._committed,
            observer=recorder,
            room=config().integer("queued.max.requests"),
            reread=self._reread,
        )
        self.propagation = Propagation(
            is_here=local_nodes.is_here,
            inter_broker_listener=config().inter_broker_listener.name,
            controller_epoch=self.epoch,
            image=lambda: self.image,
            link=link,
            on_replicas_deleted=lambda *deleted: self.deletions.replicas_deleted(*deleted),  # noqa: PLW0108 - made below
            on_replicas_lost=lambda *lost: self.brokers.replicas_lost(*lost),  # noqa: PLW0108 - made below
            contradicted=contradicted,
        )
        self.updates = NodeUpdates(local_nodes, self.propagation)
        self.producer_ids = ProducerIdBlocks(store, self.writer)
        self.deletions = Deletions(store, self.writer, self.propagation, local_nodes)
        self._elector = LeaderElector(store, self.writer, self.epoch, config, stale=self.states_are_stale)
        self.brokers = RegisteredBrokers(self.writer, self._elector, self.updates, self.deletions)
        self.reassignments = Reassignments(
            store, self.writer, self.epoch, elect=self._elector.elect_for_topics, stale=self.states_are_stale
        )
        self._submitted_elections = SubmittedElections(store, self.writer, self.epoch)
        self.watches = self._store_watches()
        self._topic_watches = TopicWatches(
            store,
            lambda: self.image,
            topics_changed=self.watches.states_changed,
            configs_changed=self.watches.configs_changed,
        )
        self._duties = self._all_duties(config())

    def _store_watches(self) -> StoreWatches:
        return StoreWatches(
            self.store,
            self.writer,
            self._elector,
            brokers_changed=self.brokers.changed,
            directory_lost=lambda broker_id: self.propagation.tell_replicas(broker_id, self.image),
            submissions=(
                (self.reassignments.submitted_changed, self.reassignments.read_submitted),
                (self._submitted_elections.changed, self._submitted_elections.read),
            ),
            deletes_topics=self._deletes_topics,
            created=self._created,
        )

    def _all_duties(self, config: NodeConfig) -> Duties:
        return Duties(
            of_epoch=(self.deletions.run, self.reassignments.run, self.brokers.run),
            of_state=(
                self.watches.run,
                self._topic_watches.run,
                self._finish_predecessors_work,
                *housekeeping(config, self.writer, self.epoch),
            ),
        )

    @property
    def image(self) -> Image:
        return self.writer.image

    def expect_update(self, broker_id: int) -> int:
        """Return the number of the newest update, and have it sent to this node
        (`MetadataCache.expect_update`). Return -1 for a local node, which is updated by call.
        """
        return -1 if broker_id in self.local_nodes else self.propagation.expect_update(broker_id)

    def resign(self) -> None:
        """Stop at once, because another controller was or may have been elected."""
        self._resigned.set()

    def step_down(self) -> None:
        """Stop in good order: begin no other change, and commit and send those that were begun. The
        next controller does the rest.
        """
        self._stepping_down.set()

    async def run(self) -> None:
        """Be the active controller until another one is elected, or this one resigns or steps down.
        All of its tasks have ended when this method returns.
        """
        reason, end = "an error ended its epoch", "it stepped down"
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
            self._serve(None)
            self.writer.close(ControllerMoved())
            log.info("broker %d is no longer the controller of epoch %d: %s", self.broker_id, self.epoch, reason)

    async def _end_when_resigned(self, scope: trio.CancelScope) -> None:
        await self._resigned.wait()
        scope.cancel()

    async def _finish_and_resign(self) -> None:
        await self._stepping_down.wait()
        self._serve(None)  # requests that arrive now, here or by forwarding, wait for the next controller
        with trio.move_on_after(STEP_DOWN_SECONDS):
            await self.writer.finish()
            await self.propagation.wait_acknowledged(configs=True)
        self.resign()

    async def _serve_epoch(self, nursery: trio.Nursery) -> None:
        """Load the state and serve, and do so again whenever a write is in doubt. Raises
        ControllerMoved or SessionExpired when the epoch ends.
        """
        await nursery.start(self.propagation.run)
        self._duties.begin(nursery)
        while True:
            await wait_connected(self.store)
            try:
                await self._load()
            except StoreUnavailable:
                continue  # the connection broke again; the session's end arrives as SessionExpired
            try:
                await self._duties.beside(self.writer.run)
            except InDoubt as error:
                log.warning("it is unknown whether a commit took effect (%s): reading the state again", error.__cause__)
            finally:
                self._serve(None)

    async def _load(self) -> None:
        """Load the state from the store, send it to all nodes, and accept requests."""
        await ensure_paths(self.store)
        await notifications.begin(self.store, self.fence, self.watches.notifications.send)
        count = await count_of_commits(self.store)  # read first, because a late commit of an earlier epoch changes it
        image = await self._read_image()
        self.writer.reset(image, count)
        self.updates.restart(image)
        self._topic_watches.watch(image.topics)
        if not self._stepping_down.is_set():
            self._serve(self)
        log.info(
            "broker %d is the controller of epoch %d: topics %d, brokers %d",
            self.broker_id, self.epoch, len(image.topics), len(image.brokers),
        )  # fmt: skip

    async def _read_image(self) -> Image:
        """Read everything from the store, and set the watches on it."""
        watches, state = self.watches, await self._read_topics({})
        if recalled := await self._recall(state):
            state = await self._read_topics(recalled)
        state = state.with_brokers(with_shutdowns(state.brokers.values(), self.image.brokers))
        if not self._deletes_topics:
            state = state.with_topics(unmarked(state.topics.values()))
        watches.deletions.send()  # meaningless markers are removed
        self.reassignments.submitted_changed.send()
        self._submitted_elections.changed.send()
        watches.states_known()
        state = await watches.with_notified(with_entities(state, await load_entities(self.store)))
        image = msgspec.structs.replace(state, controller_id=self.broker_id, controller_epoch=self.epoch)
        return image.with_counts() if self._counts_topics else image

    async def _read_topics(self, recalled: Mapping[str, Topic]) -> Image:
        """Load brokers and topics. `recalled` are topics that other nodes remember."""
        watches = self.watches
        return await load(
            self.store,
            watches.brokers.send,
            watches.topics.send,
            watches.deletions.send,
            created=self._created,
            known=lambda name: self._known(name, recalled),
        )

    async def _recall(self, state: Image) -> Mapping[str, Topic]:
        """Ask the other nodes for topics that others have damaged and that this one, which may have
        started since, does not know. Return those that one knows.
        """
        lacking = [name for name, topic in state.topics.items() if is_lacking(topic) and self._known(name, {}) is None]
        if not lacking:
            return {}
        asking = msgspec.structs.replace(state, controller_id=self.broker_id, controller_epoch=self.epoch)
        limit = self.store.max_commit_bytes
        return await recall(frozenset(lacking), asking, self._link, max_topic_bytes=limit)

    def _known(self, name: str, recalled: Mapping[str, Topic]) -> Known | None:
        """Return what was known of a topic: by this controller, or before its epoch by this node or
        else by another.
        """
        topic = self.image.topics.get(name) or self.local_nodes.known_topic(name) or recalled.get(name)
        return None if topic is None else Known(topic, is_certain=False)

    async def _finish_predecessors_work(self) -> None:
        """Finish the work of a predecessor, and catch up on changes made while there was no
        controller.
        """
        with contextlib.suppress(ControllerMoved):  # the next controller does it
            await self.writer.write(identify_all, urgent=True)
            await self._elector.elect(self._elector.elect_everywhere)
            await self.writer.write(self.reassignments.resume, urgent=True)
            self.deletions.resume(self.image)

    def local_node_registered(self) -> None:
        """Update a local node by call from now on, because its registration is known."""
        self.updates.brokers_changed(self.image)

    def states_are_stale(self, topics: Iterable[str]) -> None:
        """Read the states of these topics again, because another process has written them."""
        self.watches.states_changed(topics)

    def notified(self, paths: Sequence[str]) -> None:
        """Read entities and the configs of topics again that notifications name, because they were
        changed, perhaps by this controller.
        """
        topics = {path.removeprefix(TOPIC_CONFIGS) for path in paths if path.startswith(TOPIC_CONFIGS)}
        if any(path.startswith(BROKER_CONFIGS) for path in paths):  # they may allow unclean elections
            topics.update(topic.name for topic in self.image.topics.values() if not topic.is_complete)
        self.watches.configs_changed(topics)
        self.watches.entities_changed(path for path in paths if is_followed(path))

    def _committed(self, before: Image, after: Image, elements: Sequence[StagedElement]) -> None:
        self._metrics.commits += 1
        self._metrics.committed_elements += len(elements)
        names = dict.fromkeys(element.topic for element in elements if element.topic is not None)
        self._metrics.unclean_elections += partition_states.count_unclean_elections(before, after, names)
        for topic in self.updates.committed(before, after, elements):
            self.deletions.start(topic)
        self.reassignments.topics_changed(after, names)
        self._topic_watches.watch(name for name in names if name not in before.topics and name in after.topics)

    async def _reread(self, image: Image, error: StoreError) -> Sequence[StagedElement]:
        """Return what other processes have written where a commit of this controller met a
        conflict. Partitions that they have added may need a leader.
        """
        # If they have removed parent znodes, these are created again, before anything is read: what
        # others write between the reading and the next commit is another conflict.
        news = [StagedElement(NO_CHANGE)] if isinstance(error, NodeMissing) and await ensure_paths(self.store) else []
        path = error.path or ""
        news += await reread(self.store, image, path, self._created, deletes_topics=self._deletes_topics)
        self.states_are_stale(element.topic for element in news if element.topic is not None)
        return news


class LocalController:
    """Where handlers find the active controller, while it serves on their node."""

    def __init__(self) -> None:
        self.active: ActiveController | None = None
        """None while another node is the controller, or nobody."""

    def serve(self, controller: ActiveController | None) -> None:
        self.active = controller

    def is_active(self) -> bool:
        return self.active is not None

    def serving(self) -> ActiveController:
        """Return the controller. Raises NOT_CONTROLLER if it does not serve here."""
        if self.active is None:
            raise Refusal(ErrorCode.NOT_CONTROLLER, reason="This node is not the controller.")
        return self.active
