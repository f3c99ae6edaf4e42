"""The policy process, in which a policy in Python runs: `python -m
minicontroller.admin.policy.child`, started by `link.py`.

Rule: nothing that the policy does may let a request pass. The process judges one request at a time,
and ends at once if the node is gone or sends something unexpected. It has no file descriptor of the
node but its end of the pair of sockets, and ends when the node ends, in whatever way. What it
prints and logs goes to stderr, which the node reads.
"""

import ctypes
import faulthandler
import json
import logging
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

import msgspec

from ...policies.interface import ClusterState, JudgedRequest, TopicManagementPolicy, TopicState
from ...policies.judging import PolicyJudge, call_policy, describe_policy, encodable
from ...policies.load_errors import PolicyLoadError
from ...policies.loading import build_policy
from ...policies.verdict import PolicyOutcome
from ...process.observe.unexpected_errors import log_unexpected_errors
from ...protocol.errors import ProtocolError
from ...protocol.frame import FrameBuffer
from .messages import (
    KINDS,
    MAX_TO_POLICY,
    AskTopic,
    AskTopics,
    ChangedTopics,
    Close,
    Load,
    Loaded,
    LoadFailed,
    Message,
    PolicyAnswer,
    PolicyQuestion,
    ToPolicy,
    framed,
    to_policy,
)

MAX_MEMORY_BYTES = 2 << 30
"""The memory that the process may use for data. Beyond it Python raises MemoryError, on systems
that know this limit, such as Linux.
"""
MAX_TEXT = 100_000
"""The longest message of a verdict, which may be a traceback, in characters."""
MAX_SAID = 10_000
"""The longest log record, in characters."""
PR_SET_PDEATHSIG = 1
READ_BYTES = 1 << 16
FEW_TOPICS = 16
"""How many topics are asked for one by one in one judgement; after that all topics are
asked for.
"""

decode_state = msgspec.msgpack.Decoder(TopicState).decode
decoders: Mapping[str, msgspec.msgpack.Decoder[JudgedRequest]] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in KINDS.items()
}


class LinkToNode:
    """The policy process's end of the link to its node."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._frames = FrameBuffer(MAX_TO_POLICY)
        self._owner = os.getpid()

    def send(self, message: Message) -> None:
        if os.getpid() != self._owner:
            leave()  # the policy forked, and this is the child
        try:
            self._end.sendall(framed(message))
        except OSError:
            leave()

    def receive(self) -> ToPolicy:
        try:
            while (frame := self._frames.next_frame()) is None:
                data = self._end.recv(READ_BYTES)
                if not data:
                    leave()
                self._frames.feed(data)
            return to_policy.decode(frame)
        except (OSError, ProtocolError, msgspec.MsgspecError):
            leave()


def leave() -> NoReturn:
    """End this process at once, without an answer and without the policy's exit handlers."""
    os._exit(1)


class KnownTopics:
    """The states of topics that the node sent, until it sends newer ones."""

    def __init__(self) -> None:
        self._states: dict[str, TopicState] = {}
        self._names: dict[tuple[bool, bool], set[str]] = {}
        """The names of topics, by whether these are internal and marked for deletion."""

    def clear(self) -> None:
        self._states.clear()
        self._names.clear()

    def learn(self, topics: ChangedTopics) -> None:
        for name in topics.gone:
            self._drop(name)
        for name, raw in topics.changed:
            self._drop(name)
            state = self._states[name] = decode_state(raw)
            self._names.setdefault((state.internal, state.marked_for_deletion), set()).add(name)

    def _drop(self, name: str) -> None:
        before = self._states.pop(name, None)
        if before is not None:
            self._names[before.internal, before.marked_for_deletion].discard(name)

    def state(self, name: str) -> TopicState | None:
        return self._states.get(name)

    def names(self, *, internal: bool, marked: bool) -> frozenset[str]:
        kinds = (
            names
            for (is_internal, is_marked), names in self._names.items()
            if is_internal <= internal and is_marked <= marked
        )
        return frozenset().union(*kinds)


class AskedCluster:
    """A `ClusterState` for one judgement, which asks the node for topics that it does not know."""

    def __init__(self, link: LinkToNode, topics: KnownTopics, cluster_size: int) -> None:
        self._link = link
        self._topics = topics
        self._size = cluster_size
        self._turn = threading.Lock()
        self._fresh: set[str] = set()
        """The topics that were asked for in this judgement, and so are up to date."""
        self._is_complete = False
        self.is_over = False

    @property
    def cluster_size(self) -> int:
        return self._size

    def topic_state(self, topic: str) -> TopicState | None:
        with self._turn:
            if not self._is_complete and topic not in self._fresh:
                self._learn_of(topic)
            return self._topics.state(topic)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        with self._turn:
            self._learn_all()
            return self._topics.names(internal=bool(include_internal), marked=bool(include_marked_for_deletion))

    def _learn_of(self, topic: str) -> None:
        if len(self._fresh) >= FEW_TOPICS:
            self._learn_all()
            return
        self._learn(AskTopic(encodable(topic)))
        self._fresh.add(topic)

    def _learn_all(self) -> None:
        if not self._is_complete:
            self._learn(AskTopics())
            self._is_complete = True

    def _learn(self, ask: Message) -> None:
        if self.is_over:
            raise RuntimeError("The cluster can be read only until the method returns.")
        self._link.send(ask)
        is_last = False
        while not is_last:
            changed = self._link.receive()
            if not isinstance(changed, ChangedTopics):
                leave()
            self._topics.learn(changed)
            is_last = changed.is_last


class NodeLogHandler(logging.Handler):
    """Writes log records for the node to log, each behind a mark that nobody else knows."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = mark

    def emit(self, record: logging.LogRecord) -> None:
        try:
            entry = json.dumps({"level": record.levelno, "logger": record.name, "text": self.format(record)[:MAX_SAID]})
            os.write(2, f"\n{self._mark}{entry}\n".encode())  # a line that was printed before may have no end
        except Exception:  # noqa: BLE001 - as every handler does: a failure to log must not fail its caller
            self.handleError(record)


def serve(link: LinkToNode) -> None:
    """Load the policy, and answer questions until the node closes it."""
    load = link.receive()
    if not isinstance(load, Load):
        leave()
    policy = loaded(link, load)
    judge, topics = PolicyJudge(policy), KnownTopics()
    while isinstance(asked := link.receive(), PolicyQuestion):
        link.send(judged(link, judge, topics, asked))
    if not isinstance(asked, Close):
        leave()
    decision, message = call_policy(policy.close)
    link.send(PolicyAnswer(0, decision, _cut(message)))


def loaded(link: LinkToNode, load: Load) -> TopicManagementPolicy:
    try:
        policy = build_policy(load.configs)
    except PolicyLoadError as error:
        link.send(LoadFailed(encodable(str(error))[:MAX_TEXT]))
        leave()
    if policy is None:
        leave()
    link.send(Loaded(describe_policy(policy)))
    return policy


def judged(link: LinkToNode, judge: PolicyJudge, topics: KnownTopics, asked: PolicyQuestion) -> PolicyAnswer:
    if asked.forget:
        topics.clear()
    cluster = AskedCluster(link, topics, asked.cluster_size)
    try:
        request = decoders[asked.kind].decode(asked.request)
        state: ClusterState = cluster
        ask = judge.question(request, state)
        decision, message = (PolicyOutcome.ALLOWED, None) if ask is None else ask()
    except MemoryError:
        return PolicyAnswer(asked.number, PolicyOutcome.BROKEN, "its process ran out of memory")
    except Exception:  # noqa: BLE001 - whatever went wrong, the policy did not allow the request
        decision, message = PolicyOutcome.BROKEN, f"asking it failed:\n{traceback.format_exc()}"
    cluster.is_over = True
    return PolicyAnswer(asked.number, decision, _cut(message))


def _cut(message: str | None) -> str | None:
    return None if message is None else encodable(message)[:MAX_TEXT]


# ------------------------------------------------------------------ the process


def die_with(parent: int) -> None:
    """Have Linux kill this process when its parent ends. Without that it ends when it reads the end
    of the link.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        leave()


def limit_resources() -> None:
    """Limit the memory of the process, and have the system kill it rather than the node when memory
    runs out. Signals that stop the node are ignored, because the policy is needed until the node
    has stopped.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - no more than a line
        file.write("1000")


def set_up_output(trace: int, mark: str) -> None:
    """Write output and log records to stderr, line by line, and on SIGUSR1 a stack trace to the
    file descriptor `trace`, even if foreign code holds the interpreter lock.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    logging.basicConfig(handlers=[NodeLogHandler(mark)], level=logging.INFO, format="%(message)s")
    log_unexpected_errors()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, file=trace, all_threads=False)


def main() -> None:
    """Run a policy process. Its arguments are the file descriptors of the link and of the trace,
    the process id of the node, and the mark of log records.
    """
    end, trace, parent = map(int, sys.argv[1:4])
    mark = sys.argv.pop()
    die_with(parent)
    limit_resources()
    for descriptor in (end, trace):
        os.set_inheritable(descriptor, False)
    set_up_output(trace, mark)
    serve(LinkToNode(socket.socket(fileno=end)))
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads that the policy left behind


if __name__ == "__main__":
    main()
