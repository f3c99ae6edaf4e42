"""A policy in Python, in a process of its own (`child.py`), which is asked over a pair of sockets
and killed if it takes too long.

Rule: the event loop never waits for foreign code. A process that does not answer within
policy.timeout.ms, ends by itself or sends an unexpected message is killed and started anew. The
request that it was asked about is refused, and what the class remembered is lost; the log says so.
Requests that arrive while the process starts wait for it, at most for the time limit since the
start began, and are refused after that until the policy is loaded.

While it judges, the process asks the node for the topics that it wants to see. Each state of a
topic is sent once and kept there. What changed is found by comparing topics as objects, which
successive images share.
"""

import logging
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from secrets import randbits

import msgspec
import trio

from ...policies.interface import JudgedRequest
from ...policies.judging import PolicyDescription, PolicyReply
from ...policies.load_errors import PolicyLoadError
from ...policies.loading import without_secrets
from ...policies.states import VersionedCluster
from ...policies.verdict import PolicyOutcome
from ...process.time_slices import TimeSlice
from .link import LinkLostError, PolicyLink
from .messages import (
    AskTopic,
    AskTopics,
    ChangedTopics,
    Close,
    FromPolicy,
    Load,
    Loaded,
    LoadFailed,
    PolicyAnswer,
    PolicyQuestion,
    as_raw,
)

START_SECONDS = 60.0
"""How long a policy may take to be imported and configured."""
BACKOFF_SECONDS = 1.0
"""The pause before the next start of a policy that could not be loaded."""
NUMBER_BITS = 63
PART_BYTES = 1 << 18
"""About how many bytes of topic states are sent in one frame."""

logger = logging.getLogger("minicontroller.policy")


class _NotYetError(Exception):
    """The policy was loaded anew and must not judge yet, because its files are changing."""


class PolicyProcess:
    """A policy in a process of its own, for the life of a node. It judges one request at a time;
    other callers wait.
    """

    def __init__(self, configs: Mapping[str, str], *, timeout_ms: int, secrets: Collection[str] = ()) -> None:
        """Prepare a policy; `start` loads it. `configs` is the node's configuration as written, and
        `secrets` are the keys in it that the policy must not see.
        """
        self._load = Load(dict(without_secrets(configs, secrets)))
        self._timeout_ms = timeout_ms
        self._limit = timeout_ms / 1000
        self._turn = trio.Lock()
        self._child: _Child | None = None
        self._not_before = float("-inf")
        self._is_closed = False
        self.described = PolicyDescription("")
        self._seen = self.described
        """The description of the policy that was loaded last."""
        self.restarts = 0
        """How often the process was started anew."""

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.link.pid

    async def start(self) -> None:
        """Load the policy. Raises PolicyLoadError."""
        try:
            self.described = await self._loaded_at_the_start()
        finally:
            if not self.described.name:
                self.kill()
        logger.info("policy in force: %s (hash %s)", self.described.name, self.described.hash[:12])

    async def _loaded_at_the_start(self) -> PolicyDescription:
        try:
            child = self._child = _Child(self._load)
            with trio.move_on_after(START_SECONDS):
                with trio.move_on_after(self._limit):
                    return await child.wait_loaded()
                logger.warning("The policy is still being loaded; the node waits for it, at most %g s.", START_SECONDS)
                return await child.wait_loaded()
            where = await child.link.where()
            raise PolicyLoadError(f"The policy takes more than {START_SECONDS:g} s to load. It is executing:\n{where}")
        except (LinkLostError, OSError) as error:
            raise PolicyLoadError(f"The policy cannot be loaded: {error}") from None

    async def ask(self, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
        """Ask the policy. Raises nothing of the policy's. If the caller is cancelled while the
        policy judges, its process is started anew, so that its answer reaches nobody else.
        """
        async with self._turn:
            if self._is_closed:
                return PolicyOutcome.BROKEN, "it was asked after it was closed"
            child = await self._ready()
            if isinstance(child, str):
                return PolicyOutcome.BROKEN, f"it was not asked: {child}"
            return await self._answered(child, partial(child.ask, request, cluster))

    async def close(self) -> PolicyReply:
        """Call the policy's `close`, within its time limit, and end its process."""
        async with self._turn:
            self._is_closed = True
            child = self._child
            said: PolicyReply = PolicyOutcome.ALLOWED, None
            if child is not None and child.is_loaded and not child.link.has_ended:
                said = await self._answered(child, child.close)
            self.kill()
            return said

    def kill(self) -> None:
        """End the process at once and for good."""
        self._is_closed = True
        if self._child is not None:
            self._child.link.kill()
            self._child = None

    async def _answered(self, child: "_Child", ask: Callable[[], Awaitable[PolicyReply]]) -> PolicyReply:
        try:
            with trio.move_on_after(self._limit):
                return await ask()
            fault = await self._too_late(child)
        except LinkLostError as error:
            fault = f"it did not answer, because {error}"
        except Exception:  # noqa: BLE001 - whatever went wrong between us and the policy, it did not allow
            fault = f"asking it failed:\n{traceback.format_exc()}"
        except BaseException:
            await self._start_anew(child)  # the caller is cancelled: nobody else may get its answer
            raise
        await self._start_anew(child)
        return PolicyOutcome.BROKEN, fault

    async def _too_late(self, child: "_Child") -> str:
        return (
            f"it takes more than policy.timeout.ms ({self._timeout_ms}). It is executing:\n{await child.link.where()}"
        )

    async def _start_anew(self, child: "_Child") -> None:
        await child.link.end()
        self._child = None
        if not self._is_closed:
            logger.error(
                "Restarting the process of the policy %s: what its object had stored is lost.", self.described.name
            )
            self.restarts += 1
            self._start()

    def _start(self) -> None:
        try:
            self._child = _Child(self._load)
        except OSError as error:
            self._not_before = trio.current_time() + BACKOFF_SECONDS
            logger.error("The process of the policy cannot be started: %s", error)  # noqa: TRY400 - its text says all

    async def _ready(self) -> "_Child | str":
        if self._child is not None and self._child.link.has_ended and self._child.is_loaded:
            await self._start_anew(self._child)
        if self._child is None and trio.current_time() >= self._not_before:
            self._start()
        child = self._child
        if child is None:
            return "its process could not be started, which is tried again in a moment"
        return child if child.is_loaded else await self._loaded(child)

    async def _loaded(self, child: "_Child") -> "_Child | str":
        try:
            with trio.move_on_at(child.since + self._limit):
                self._is_now(await child.wait_loaded())
                return child
        except (LinkLostError, PolicyLoadError) as error:
            fault = f"it cannot be loaded: {error}"
        except _NotYetError as error:
            fault = str(error)
        else:
            if trio.current_time() < child.since + START_SECONDS:
                return "its process is still being started"
            fault = f"it takes more than {START_SECONDS:g} s to load"
        await child.link.end()
        self._child = None
        self._not_before = trio.current_time() + BACKOFF_SECONDS
        return fault

    def _is_now(self, described: PolicyDescription) -> None:
        """Judge by the policy that was loaded anew. Raises _NotYetError if its files changed and
        may still be changing.
        """
        if described != self.described:
            missing = sorted(self.described.kinds - described.kinds)
            if missing:
                raise _NotYetError(
                    f"its files have changed, and it no longer judges {', '.join(missing)}: restart the node to use it"
                )
            before, self._seen = self._seen, described
            if described != before:
                raise _NotYetError("its files have changed; it is used once two checks in a row find the same files")
            logger.warning("The policy %s has been replaced, because its files have changed.", described.name)
        self.described = described


class _Child:
    """A policy process, and the topics that it was sent."""

    def __init__(self, load: Load) -> None:
        """Start the process. Raises OSError."""
        self.link = PolicyLink()
        self.since = trio.current_time()
        self.is_loaded = False
        self._load: Load | None = load
        self._number = 0
        """The number of the last question. It is random, so that a policy cannot send an answer
        before the question.
        """
        self._sent: dict[str, object] = {}
        """The topics that it was sent, each as the object that it was then."""

    async def wait_loaded(self) -> PolicyDescription:
        """Wait until the policy is loaded. May be cancelled and called again. Raises LinkLostError
        and PolicyLoadError.
        """
        if self._load is not None:
            load, self._load = self._load, None
            await self.link.send(load)
        said = await self.link.receive()
        if isinstance(said, LoadFailed):
            raise PolicyLoadError(said.reason)
        if not isinstance(said, Loaded):
            raise _unexpected(said)
        self.is_loaded = True
        return said.described

    async def ask(self, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
        """Ask the policy in this process. Raises LinkLostError."""
        forget = len(self._sent) > 2 * len(cluster.versions) + 1000  # deleted topics are not forgotten one by one
        if forget:
            self._sent.clear()
        self._number = randbits(NUMBER_BITS)
        await self.link.send(
            PolicyQuestion(self._number, type(request).__name__, as_raw(request), cluster.cluster_size, forget)
        )
        time_slice = TimeSlice()
        while not isinstance(said := await self.link.receive(), PolicyAnswer):
            await time_slice.pause()  # it may ask for ever
            if isinstance(said, AskTopic):
                await self.link.send(self._topic(said.name, cluster))
            elif isinstance(said, AskTopics):
                await self._send_topics(cluster)
            else:
                raise _unexpected(said)
        if said.number != self._number:
            raise _unexpected(said)
        return said.decision, said.message

    async def close(self) -> PolicyReply:
        """Call the policy's `close`. Raises LinkLostError."""
        await self.link.send(Close())
        said = await self.link.receive()
        if not isinstance(said, PolicyAnswer):
            raise _unexpected(said)
        return said.decision, said.message

    def _topic(self, name: str, cluster: VersionedCluster) -> ChangedTopics:
        version = cluster.versions.get(name)
        if version is None:
            return ChangedTopics([], [name] if self._sent.pop(name, None) is not None else [])
        if self._sent.get(name) is version:
            return ChangedTopics([], [])
        self._sent[name] = version
        return ChangedTopics([(name, _state(name, cluster))], [])

    async def _send_topics(self, cluster: VersionedCluster) -> None:
        """Send, in parts, the topics that changed since the process was sent them last."""
        versions, sent, time_slice = cluster.versions, self._sent, TimeSlice()
        changed: list[tuple[str, msgspec.Raw]] = []
        size = 0
        for name, version in versions.items():
            if sent.get(name) is not version:
                sent[name] = version
                state = _state(name, cluster)
                changed.append((name, state))
                size += len(state)
                if size > PART_BYTES:
                    await self.link.send(ChangedTopics(changed, [], is_last=False))
                    changed, size = [], 0
                    await time_slice.pause()
        gone = [name for name in sent if name not in versions] if len(sent) > len(versions) else []
        for name in gone:
            del sent[name]
        await self.link.send(ChangedTopics(changed, gone))


def _state(name: str, cluster: VersionedCluster) -> msgspec.Raw:
    state = cluster.topic_state(name)
    assert state is not None
    return as_raw(state)


def _unexpected(said: FromPolicy) -> LinkLostError:
    return LinkLostError(f"its process sent an unexpected {type(said).__name__}")
