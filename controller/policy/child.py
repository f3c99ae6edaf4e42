"""The process in which a policy in Python lives: `python -m
minicontroller.controller.policy.child`, started by `process.py`.

Rule: nothing that the policy does may let a request pass. It answers one question at a time; what
it cannot be asked any more, because the node is gone or talks nonsense, ends the process at once.
It has no descriptor of the node but its end of the pair of sockets, and ends with the node however
that ends. What it prints or logs goes to stderr, which the node reads.
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
from ...policies.judging import Judge, call_policy, describe_policy, encodable
from ...policies.load_errors import PolicyLoadError
from ...policies.loading import build_policy
from ...policies.verdict import PolicyOutcome
from ...protocol.errors import ProtocolError
from ...protocol.frame import FrameBuffer
from ..observe.accidents import log_accidents
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
"""For what the policy keeps; beyond it Python raises MemoryError (where the system knows this
limit: Linux does).
"""
MAX_TEXT = 100_000
"""Characters of a trace."""
MAX_SAID = 10_000
"""Characters of a record of the log."""
PR_SET_PDEATHSIG = 1
READ_BYTES = 1 << 16
FEW_TOPICS = 16
"""So many are asked for one by one; whoever looks at more in one judgement is told of all."""

decode_state = msgspec.msgpack.Decoder(TopicState).decode
decoders: Mapping[str, msgspec.msgpack.Decoder[JudgedRequest]] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in KINDS.items()
}


class NodeLink:
    """The policy process's end of the pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._frames = FrameBuffer(MAX_TO_POLICY)
        self._owner = os.getpid()

    def send(self, message: Message) -> None:
        if os.getpid() != self._owner:
            leave()  # the policy has forked, and this is the copy
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
    """End this process at once, without an answer and without calling what the policy has
    registered.
    """
    os._exit(1)


class KnownTopics:
    """What the node has told of topics, kept for as long as it says that they are the same."""

    def __init__(self) -> None:
        self._states: dict[str, TopicState] = {}
        self._names: dict[tuple[bool, bool], set[str]] = {}
        """By whether they are internal, and marked for deletion."""

    def clear(self) -> None:
        self._states.clear()
        self._names.clear()

    def learn(self, told: ChangedTopics) -> None:
        for name in told.gone:
            self._drop(name)
        for name, raw in told.changed:
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
    """A `ClusterState` for one judgement, which asks the node for what it does not know."""

    def __init__(self, link: NodeLink, topics: KnownTopics, cluster_size: int) -> None:
        self._link = link
        self._topics = topics
        self._size = cluster_size
        self._turn = threading.Lock()
        self._fresh: set[str] = set()
        """The topics that were asked for in this judgement."""
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
            raise RuntimeError("The cluster can be looked at until the method returns, not afterwards.")
        self._link.send(ask)
        is_last = False
        while not is_last:
            told = self._link.receive()
            if not isinstance(told, ChangedTopics):
                leave()
            self._topics.learn(told)
            is_last = told.is_last


class ToTheNode(logging.Handler):
    """Writes what the policy logs for the node to log, behind a mark that nobody else knows."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = mark

    def emit(self, record: logging.LogRecord) -> None:
        try:
            told = json.dumps({"level": record.levelno, "logger": record.name, "text": self.format(record)[:MAX_SAID]})
            os.write(2, f"\n{self._mark}{told}\n".encode())  # what was printed before may have no end
        except Exception:  # noqa: BLE001 - as every handler does: whoever logs is not to suffer for it
            self.handleError(record)


def serve(link: NodeLink) -> None:
    """Load the policy, and answer questions until the node closes it."""
    load = link.receive()
    if not isinstance(load, Load):
        leave()
    policy = loaded(link, load)
    judge, topics = Judge(policy), KnownTopics()
    while isinstance(asked := link.receive(), PolicyQuestion):
        link.send(judged(link, judge, topics, asked))
    if not isinstance(asked, Close):
        leave()
    decision, message = call_policy(policy.close)
    link.send(PolicyAnswer(0, decision, _cut(message)))


def loaded(link: NodeLink, load: Load) -> TopicManagementPolicy:
    try:
        policy = build_policy(load.configs)
    except PolicyLoadError as error:
        link.send(LoadFailed(encodable(str(error))[:MAX_TEXT]))
        leave()
    if policy is None:
        leave()
    link.send(Loaded(describe_policy(policy)))
    return policy


def judged(link: NodeLink, judge: Judge, topics: KnownTopics, asked: PolicyQuestion) -> PolicyAnswer:
    if asked.forget:
        topics.clear()
    cluster = AskedCluster(link, topics, asked.cluster_size)
    try:
        request = decoders[asked.kind].decode(asked.request)
        state: ClusterState = cluster
        ask = judge.question(request, state)
        decision, message = (PolicyOutcome.ALLOWED, None) if ask is None else ask()
    except MemoryError:
        return PolicyAnswer(asked.number, PolicyOutcome.BROKEN, "it has no memory left")
    except Exception:  # noqa: BLE001 - whatever went wrong around the policy, it did not allow
        decision, message = PolicyOutcome.BROKEN, f"it could not be asked:\n{traceback.format_exc()}"
    cluster.is_over = True
    return PolicyAnswer(asked.number, decision, _cut(message))


def _cut(message: str | None) -> str | None:
    return None if message is None else encodable(message)[:MAX_TEXT]


# ------------------------------------------------------------------ the process


def dies_with(parent: int) -> None:
    """Let the system end this process with its parent, on Linux; the end of the sockets tells it
    too, if the policy lets us look.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        leave()


def harm_nobody() -> None:
    """Limit what the policy may use, and let the system kill it rather than the node when memory
    ends. What stops the node does not stop its policy, which is asked until the node has stopped.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - no more than a line
        file.write("1000")


def tell_all(trace: int, mark: str) -> None:
    """Send what is printed and logged to stderr, line by line, and on SIGUSR1 where the policy is
    to `trace`, whatever holds the interpreter.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    logging.basicConfig(handlers=[ToTheNode(mark)], level=logging.INFO, format="%(message)s")
    log_accidents()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, file=trace, all_threads=False)


def main() -> None:
    """Run the process of a policy. Its arguments are the descriptors of our end and of the trace,
    the node's process, and the mark of records.
    """
    end, trace, parent = map(int, sys.argv[1:4])
    mark = sys.argv.pop()
    dies_with(parent)
    harm_nobody()
    for descriptor in (end, trace):
        os.set_inheritable(descriptor, False)
    tell_all(trace, mark)
    serve(NodeLink(socket.socket(fileno=end)))
    sys.stdout.flush()
    os._exit(0)  # threads that the policy left behind do not keep us


if __name__ == "__main__":
    main()
