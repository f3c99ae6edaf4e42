"""Prepares the judgement of a request: waits for its turn, and reads what it names.

Rule: what a request is about is read when its turn has come, so that it is judged by what those
before it left. What the cluster does not show is looked for again for a moment, because brokers
learn of a change later than the controller.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import trio

from ...admin.changes import Change
from ...cluster.entities import NO_TOPIC_ID
from ...cluster.errors import Refusal
from ...cluster.topic_names import is_valid_topic_name
from ...policies.configs.values import java_int
from ...process.settings.node_config import ConfigSource
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from .cluster_reader import NotKnownError
from .judged import Judged, NotSeen, Part, Resolution
from .mirror import Mirror
from .turns import Turns

PATIENCE_SECONDS = 30.0
"""How long a request waits for others about the same topics."""
LOOKS, SECONDS_BETWEEN_LOOKS = 10, 0.05
"""How often, and after how long, a topic is looked for that the cluster does not show."""
CONTROLLED_KINDS = {"broker": ResourceType.BROKER, "logger": ResourceType.BROKER_LOGGER}


class Preparation:
    """What comes before the judgement of requests."""

    def __init__(self, mirror: Mirror, turns: Turns, judges_api: Callable[[str], bool], *, enforces: bool) -> None:
        """`judges_api` says whether the policy judges an API without a state. A gateway that
        enforces looks again for topics that are not shown, and has only what was judged go on.
        """
        self._mirror = mirror
        self._turns = turns
        self._judges_api = judges_api
        self._enforces = enforces
        self._looks = LOOKS if enforces else 1

    async def prepare(self, judged: Judged) -> None:
        """Wait for the turn of a request, and read what it names. Raises NotKnownError, or Refusal
        if the turn does not come.
        """
        if judged.form.resolve is not None and self._judges_api(judged.asked.policy_api):
            self._resolved(judged, await judged.form.resolve(judged.request, self._mirror))
        await self._name_topics(judged.parts)
        topics = {each.change.resource for each in judged.parts if _is_of_topic(each)}
        seen: set[str] = set()
        if not judged.form.creates:
            await self._look_for(topics)  # before its turn, so that nobody waits for what is not there
            seen = topics.intersection(self._mirror.image.topics)
        self._turns.end(judged.turn)
        judged.turn = self._turns.stand(each.line for each in judged.parts)
        with trio.move_on_after(PATIENCE_SECONDS) as patience:
            await self._turns.wait(judged.turn)
        if patience.cancelled_caught:  # a client could bring that about, so that it is no failure
            text = "The cluster has not answered an earlier request for the same resource in time."
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, text)
        await self._mirror.look(topics)
        await self._look_for(seen)
        for each in judged.parts:
            if each.change.kind in CONTROLLED_KINDS and not judged.form.is_whole and not self.is_no_thing(each):
                each.before = await self._before(each.change)

    def _resolved(self, judged: Judged, found: Resolution | None) -> None:
        """Judge what a request means that does not name it. Raises Refusal."""
        if found is not None and found.excess is not None and not self._enforces:
            raise Refusal(ErrorCode.INVALID_REQUEST, found.excess)  # the client's own request goes on unjudged
        if found is not None and found.parts:  # or else its own words are judged, as far as there are any
            judged.parts = found.parts
        judged.resolution = found if self._enforces else None

    @staticmethod
    def is_no_thing(each: Part) -> bool:
        """Whether nothing can have the name that a part gives."""
        kind, name = each.change.kind, each.change.resource
        if kind in CONTROLLED_KINDS:
            return java_int(name) is None and not (kind == "broker" and not name)
        return kind == "topic" and each.topic_id == NO_TOPIC_ID and not is_valid_topic_name(name)

    async def _look_for(self, names: set[str]) -> None:
        """Look again for topics that are not shown. Raises NotKnownError."""
        for look in range(self._looks):
            missing = [name for name in names if name not in self._mirror.image.topics and is_valid_topic_name(name)]
            if not missing:
                return
            if look:
                await trio.sleep(SECONDS_BETWEEN_LOOKS)
            await self._mirror.look(missing)

    async def _before(self, requested: Change) -> Mapping[str, str] | NotKnownError | Refusal:
        """Return the configs of a broker or the levels of its loggers, or why they are unknown."""
        number = java_int(requested.resource)
        if number is not None and number not in self._mirror.image.brokers:
            return NotSeen(ErrorCode.INVALID_REQUEST, f"The broker {number} is not known.")
        source = (
            ConfigSource.DYNAMIC_BROKER_CONFIG if requested.resource else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        )
        kind = CONTROLLED_KINDS[requested.kind]
        try:
            return await self._mirror.configs_of(
                kind, requested.resource, None if kind is ResourceType.BROKER_LOGGER else source
            )
        except NotKnownError as error:
            return error

    async def _name_topics(self, parts: Sequence[Part]) -> None:
        """Find the names of topics that are given by their ids. Raises NotKnownError."""
        by_id = [each for each in parts if each.topic_id != NO_TOPIC_ID]
        for look in range(self._looks):
            unknown = [each.topic_id for each in by_id if self._named(each) is None]
            if not unknown:
                break
            if look:
                await trio.sleep(SECONDS_BETWEEN_LOOKS)
            await self._mirror.look((), unknown)
        for each in by_id:
            named = self._named(each) or ""
            each.outcome.change = msgspec.structs.replace(each.outcome.change, resource=named)

    def _named(self, each: Part) -> str | None:
        topic = self._mirror.image.topic_by_id(each.topic_id)
        return None if topic is None else topic.name


def _is_of_topic(each: Part) -> bool:
    return each.change.kind == "topic" and bool(each.change.resource) and bool(each.places)
