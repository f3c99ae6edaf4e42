"""The gateway's picture of the cluster: an image, read from the cluster and kept by what passes.

Rule: what is judged is never older than it has to be, and the image never goes back in time
(`Knowledge`). The topics that a request names are read when the request is judged; all others as
often as `metadata.max.age.ms` says. A topic that a request is just changing belongs to that
request, and no reading of the whole touches it meanwhile.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import msgspec
import trio

from ...admin.changes import Element
from ...admin.recording.recorder import AuditRecorder
from ...admin.recording.records import differs
from ...client.network import Network
from ...cluster.entities import NO_TOPIC_ID, Topic
from ...cluster.image import Image
from ...process.settings.node_config import ConfigSource, NodeConfig
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.config_resources import ResourceType
from ...protocol.messages.delete_acls import DeleteAclsFilter
from ...protocol.messages.metadata import MetadataRequestTopic, MetadataResponseBroker, MetadataResponseTopic
from .cluster_reader import ABSENT, ClusterReader, NotKnownError, check
from .reading import ClusterDefaults, brokers_of, exists

MOMENT_SECONDS = 1.0
"""How long a request that may create topics waits to hear which of them are missing."""
SILENCE_SECONDS = 5.0
"""How long the cluster is not asked for missing topics once it did not tell them in time."""
NAMES_AT_ONCE = 1_000
"""How many topics a question names."""
READINGS = 3
"""How often topics are read that are not as they were known, until two readings show the same: one
has several questions, between which a topic may have been deleted and created again.
"""
BELIEVED_SECONDS = 60.0
"""How long a completed change holds that no reading shows: others may have undone it."""
SETTLING_SECONDS = 10.0
"""How long a broker may be behind that was not asked before."""
MOST_GONE = 10_000
"""How many ids of topics that are gone are remembered."""

Found = Mapping[str, Topic | None]
"""What a reading shows of topics, by name; None for one that is not there."""


class Mirror:
    """The cluster's topics, brokers and defaults, as the gateway knows them."""

    def __init__(self, network: Network, config: NodeConfig, *, is_busy: Callable[[str], bool]) -> None:
        """Prepare a mirror that asks through `network`; `config` has the values of those keys that
        the cluster does not tell. `is_busy` says whether a request is about a topic now.
        """
        self.image = Image()
        self.cluster_id = ""
        self.defaults = ClusterDefaults(config)
        self.recorder: AuditRecorder | None = None
        """Records what the mirror learns, where there is an audit log."""
        self._listeners: list[Callable[[], None]] = []
        self.failure: str | None = None
        """Why the cluster could not be read the last time; None if it could."""
        self._reader = ClusterReader(network, config, switched=self._switched)
        self._knowledge = Knowledge()
        self._is_busy = is_busy
        self._read_at: float | None = None
        self._newer: dict[str, float] = {}
        """When topics were read or changed by themselves, in seconds by trio's clock: a reading of
        the whole that began before knows less of them.
        """
        self._silent_until = -math.inf
        """trio's time until which the cluster is not asked for missing topics."""

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def record(self, recorder: AuditRecorder) -> None:
        """Record the image, and from now on whatever changes it."""
        self.recorder = recorder
        recorder.reloaded(self.image)

    @property
    def age_seconds(self) -> float | None:
        """How long ago the whole cluster was read; None if it never was."""
        return None if self._read_at is None else trio.current_time() - self._read_at

    def _switched(self) -> None:
        self._knowledge.switched(trio.current_time())

    # ------------------------------------------------------------------ reading

    async def read(self) -> None:
        """Read everything. Topics that requests are about when it has been read stay as they are.
        Raises NotKnownError.
        """
        began = trio.current_time()
        try:
            metadata = await self._reader.metadata(None)
            rows = [row for row in metadata.topics if exists(row)]
            topics: Found = await self._reader.topics(rows, self.image.topics)
            self.defaults = await self._reader.defaults(self.defaults)
            if self._read_at is not None:  # what is known already is left for certain reasons only
                different = [name for name in {*topics, *self.image.topics} if self._differs(name, topics.get(name))]
                again = await self._found(different)
                topics = {
                    **{name: topic for name, topic in topics.items() if name not in again},
                    **{name: topic for name, topic in again.items() if not differs(topic, topics.get(name))},
                }
        except NotKnownError as error:
            self.failure = str(error)
            raise
        self.failure, self._read_at = None, began
        self.cluster_id = metadata.cluster_id or self.cluster_id
        self._newer = {name: at for name, at in self._newer.items() if at >= began}
        told = {name: topic for name, topic in topics.items() if name not in self._newer and not self._is_busy(name)}
        self._learn(told, metadata.brokers, controller_id=metadata.controller_id)

    async def look(self, names: Collection[str], ids: Collection[bytes] = ()) -> None:
        """Read these topics anew. Those that are given by their ids are left to requests that are
        about them now. Raises NotKnownError.
        """
        if not (names or ids):
            return
        with self._reader.in_time():
            found, brokers = await self._read_topics(names, ids)
            if any(self._differs(name, topic) for name, topic in found.items()):
                found, brokers = await self._settled(found)
        told = {name: topic for name, topic in found.items() if name in names or not self._is_busy(name)}
        self._newer.update(dict.fromkeys(told, trio.current_time()))
        self._learn(told, brokers)

    async def _settled(self, found: Found) -> tuple[dict[str, Topic | None], Sequence[MetadataResponseBroker]]:
        """Return what two readings of topics show, the first of which is given."""
        again, brokers = await self._read_topics(found, ())
        for _ in range(READINGS - 2):
            if not any(differs(found[name], topic) for name, topic in again.items()):
                break
            found = again
            again, brokers = await self._read_topics(found, ())
        return again, brokers

    def _differs(self, name: str, found: Topic | None) -> bool:
        return differs(self.image.topics.get(name), self._knowledge.alive(found))

    async def missing(self, names: Sequence[str]) -> list[str]:
        """Return those of these topics that the cluster does not have now. While it does not tell,
        what was read before decides, so that clients go on.
        """
        rows: list[MetadataResponseTopic] = []
        for first in range(0, len(names), NAMES_AT_ONCE):  # so that many names do not look like silence
            if trio.current_time() >= self._silent_until:
                rows += await self._rows_in_a_moment(names[first : first + NAMES_AT_ONCE])
        there = {row.name for row in rows if exists(row)}
        absent = {row.name for row in rows if not exists(row) and row.error_code in ABSENT}
        return [name for name in names if name in absent or not (name in there or name in self.image.topics)]

    async def _rows_in_a_moment(self, names: Sequence[str]) -> Sequence[MetadataResponseTopic]:
        """Return what the cluster tells at once of some topics; nothing if it is silent."""
        with trio.move_on_after(MOMENT_SECONDS), suppress(NotKnownError):
            return (await self._reader.metadata([MetadataRequestTopic(name=name) for name in names])).topics
        self._silent_until = trio.current_time() + SILENCE_SECONDS
        return ()

    async def look_until(
        self, names: Collection[str], reached: Callable[[Image], bool], pauses: Sequence[float]
    ) -> Image:
        """Read these topics until the cluster shows what a request has changed, and return the
        image with them, without taking it over. Brokers learn of a change a moment after the
        controller has answered: between the readings are `pauses` in seconds. Raises NotKnownError.
        """
        for pause in pauses:
            with self._reader.in_time():
                found, _ = await self._read_topics(names, ())
            if reached(self._image_with(found)):
                break
            await trio.sleep(pause)
        else:
            with self._reader.in_time():
                found, _ = await self._read_topics(names, ())
        with self._reader.in_time():
            again, _ = await self._settled(found)
        image = self._image_with(again)
        return image if reached(image) else self._image_with(found)  # others may have changed it since

    def _image_with(self, found: Found) -> Image:
        return _with(self.image, {name: self._knowledge.alive(topic) for name, topic in found.items()})

    async def configs_of(self, kind: ResourceType, name: str, source: ConfigSource | None) -> dict[str, str]:
        """Return those configs of a broker or its loggers that have this source, or all. An empty
        name stands for the default of all brokers. Raises NotKnownError.
        """
        return await self._reader.configs_of(kind, name, source)

    async def acls_matching(self, wanted: DeleteAclsFilter) -> dict[ResourcePattern, list[AccessControlEntry]]:
        """Return the ACLs that a filter matches now, by their patterns. Raises NotKnownError."""
        return await self._reader.acls_matching(wanted)

    def created_ms(self, name: str) -> int | None:
        """Return when a topic was created, if it was created through this gateway since it started:
        Kafka does not tell.
        """
        return None if self.recorder is None else self.recorder.created.get(name)

    # ------------------------------------------------------------------ changing

    def gone(self, topic: Topic) -> None:
        """Note that the cluster has deleted a topic, whatever it shows."""
        self._knowledge.gone(topic)

    def completed(
        self,
        image: Image,
        elements: Sequence[Element],
        unshown: Mapping[str, Callable[[Image], bool]] | None = None,
    ) -> None:
        """Take over what requests have changed, and record it. What is `unshown` holds until a
        reading shows it, as the function by its topic's name says.
        """
        now = trio.current_time()
        named = (each.topic for each in elements if each.topic is not None)
        self._newer.update(dict.fromkeys(named, now))
        for name, reached in (unshown or {}).items():
            self._await(name, reached, now)
        if unshown:
            self._reader.leave()
        if self.recorder is not None:
            self.recorder.completed(self.image, image, elements)
        self._publish(image)

    def _await(self, name: str, reached: Callable[[Image], bool], now: float) -> None:
        self._knowledge.completed(name, lambda topic: reached(_with(self.image, {name: topic})), now)

    def in_doubt(self, elements: Sequence[Element]) -> None:
        """Record elements of which nobody knows whether they took effect. What is read later shows
        it.
        """
        if self.recorder is not None:
            for element in elements:
                self.recorder.resolved(None, element)

    def _learn(
        self, found: Found, brokers: Sequence[MetadataResponseBroker], *, controller_id: int | None = None
    ) -> None:
        """Take over what is believed of a reading, and record what others have changed."""
        now, known = trio.current_time(), self.image.topics
        believed = {name: self._knowledge.believed(name, known.get(name), topic, now) for name, topic in found.items()}
        for name, topic in believed.items():
            before = known.get(name)
            if before is not None and (topic is None or topic.topic_id != before.topic_id):
                self._knowledge.gone(before)
        image = _with(self.image, believed)
        rows = brokers_of(brokers)
        if {each.broker_id: each for each in rows} != dict(image.brokers):
            image = image.with_brokers(rows)
        if controller_id is not None and controller_id != image.controller_id:
            image = msgspec.structs.replace(image, controller_id=controller_id)
        if image is self.image:
            return
        if self.recorder is not None:
            self.recorder.observed(image)
        self._publish(image)

    def _publish(self, image: Image) -> None:
        self.image = image
        for listener in self._listeners:
            listener()

    # ------------------------------------------------------------------ asking

    async def _found(self, names: Sequence[str]) -> dict[str, Topic | None]:
        """Return what the cluster shows of many topics. Raises NotKnownError."""
        found: dict[str, Topic | None] = {}
        for first in range(0, len(names), NAMES_AT_ONCE):
            found |= (await self._read_topics(names[first : first + NAMES_AT_ONCE], ()))[0]
        return found

    async def _read_topics(
        self, names: Collection[str], ids: Collection[bytes]
    ) -> tuple[dict[str, Topic | None], Sequence[MetadataResponseBroker]]:
        """Return what the cluster shows of some topics, and its brokers. Raises NotKnownError."""
        asked = [MetadataRequestTopic(name=name) for name in names]
        asked += [MetadataRequestTopic(topic_id=each, name=None) for each in ids]
        metadata = await self._reader.metadata(asked)
        for row in metadata.topics:
            if not exists(row) and row.error_code not in ABSENT:
                check(row.error_code, f"the topic {row.name or ''}")
        topics = await self._reader.topics([row for row in metadata.topics if exists(row)], self.image.topics)
        return {**dict.fromkeys(names), **topics}, metadata.brokers


def _with(image: Image, found: Found) -> Image:
    changed = [topic for name, topic in found.items() if topic is not None and image.topics.get(name) is not topic]
    gone = [name for name, topic in found.items() if topic is None and name in image.topics]
    return image.with_topics(changed, gone) if changed or gone else image


class Unshown(msgspec.Struct, frozen=True):
    """A change that was completed and that no reading has shown yet."""

    is_shown: Callable[[Topic | None], bool]
    until: float
    """When a reading that does not show it is believed all the same."""


class Knowledge:
    """Decides what to believe of a reading; pure. Times are in seconds, by any clock.

    A reading never makes undone what is certain: the id of a topic that is gone never comes back,
    partitions never become fewer under one id, and what a request completed holds until a reading
    shows it. A broker that is asked instead of another may be behind, unless it shows more than was
    known.
    """

    def __init__(self) -> None:
        self._gone: dict[bytes, None] = {}
        self._unshown: dict[str, Unshown] = {}
        self._settled_at = -math.inf

    def switched(self, now: float) -> None:
        """Note that another broker is asked from now on."""
        self._settled_at = now + SETTLING_SECONDS

    def completed(self, name: str, is_shown: Callable[[Topic | None], bool], now: float) -> None:
        """Note a change of a topic that the last reading did not show."""
        self._unshown[name] = Unshown(is_shown, now + BELIEVED_SECONDS)

    def gone(self, topic: Topic) -> None:
        """Note that a topic was deleted, for good."""
        if topic.topic_id != NO_TOPIC_ID:
            self._gone[topic.topic_id] = None
            while len(self._gone) > MOST_GONE:
                del self._gone[next(iter(self._gone))]

    def alive(self, found: Topic | None) -> Topic | None:
        """Return what a reading shows of a topic, but for one that is gone."""
        return None if found is not None and found.topic_id in self._gone else found

    def believed(self, name: str, known: Topic | None, found: Topic | None, now: float) -> Topic | None:
        """Return what a topic is, by what was known and what a reading shows; None if there is
        none. It has to be known to be `gone` if it was there before.
        """
        found = self.alive(found)
        unshown = self._unshown.get(name)
        if unshown is not None:
            if now < unshown.until and not unshown.is_shown(found):
                return known
            del self._unshown[name]
            return found
        if known is None or found is known:
            return found
        return known if _is_older(found, known) or (now < self._settled_at and not _is_newer(found, known)) else found


def _is_older(found: Topic | None, known: Topic) -> bool:
    return found is not None and _is_same(found, known) and len(found.partitions) < len(known.partitions)


def _is_newer(found: Topic | None, known: Topic) -> bool:
    return found is not None and _is_same(found, known) and len(found.partitions) > len(known.partitions)


def _is_same(one: Topic, other: Topic) -> bool:
    return one.topic_id == other.topic_id != NO_TOPIC_ID
