"""Policies for the tests of their process: what they do is told by the topic that they are asked
about.
"""

import ctypes
import gc
import hashlib
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from minicontroller.admin.policy.messages import PolicyAnswer, framed
from minicontroller.policies import (
    AdminRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.policies.verdict import PolicyOutcome

FOR_EVER = 1_000_000


def hold_the_interpreter() -> None:
    re.match(r"(a+)+$", "a" * 40 + "b")


def run_without_end() -> None:
    while True:
        pass


def catch_every_signal() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    while True:
        time.sleep(FOR_EVER)


def answer_ahead() -> None:
    """To this question and to those to come."""
    (end,) = (each for each in gc.get_objects() if isinstance(each, socket.socket))
    for number in range(1, 100):
        end.send(framed(PolicyAnswer(number, PolicyOutcome.ALLOWED, None)))


def flood_stderr() -> None:
    while True:
        sys.stderr.write("flood\n" * 100)


def flood_the_log() -> None:
    while True:
        logging.getLogger("acme").warning("flood")


def be_unspeakable() -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            time.sleep(FOR_EVER)
            return ""

    raise UnspeakableError


def carry_a_lock() -> None:
    class LockedError(Exception):
        """Nothing that could be sent."""

        def __init__(self) -> None:
            super().__init__(threading.Lock())

    raise LockedError


def close_everything() -> None:
    os.closerange(0, 1000)


def talk_nonsense() -> None:
    for end in (each for each in gc.get_objects() if isinstance(each, socket.socket)):
        end.sendall(b"\0\0\0\3\xc1\xc1\xc1")


def talk_too_much() -> None:
    for end in (each for each in gc.get_objects() if isinstance(each, socket.socket)):
        end.sendall(b"\x7f\0\0\0" + bytes(1 << 22))


def fork_and_leave() -> None:
    """The copy keeps all that this process has."""
    if os.fork() == 0:
        time.sleep(FOR_EVER)
    os._exit(0)


def take_all_memory() -> None:
    kept = []
    while True:
        kept.append(bytes(1 << 28))  # untouched: the test takes no memory from others


def die_of_a_pointer() -> None:
    ctypes.string_at(0)


def raise_out_of_the_ordinary() -> None:
    class OrdinaryError(BaseException):
        """None of Exception's."""

    raise OrdinaryError


KILLED: tuple[Callable[[], None], ...] = (
    hold_the_interpreter, run_without_end, catch_every_signal, flood_stderr, flood_the_log, be_unspeakable,
)  # fmt: skip
"""The deeds that take too long."""
ENDED: tuple[Callable[[], None], ...] = (
    lambda: os._exit(0), lambda: os.kill(os.getpid(), signal.SIGKILL), die_of_a_pointer, close_everything, talk_nonsense, talk_too_much,
    fork_and_leave,
)  # fmt: skip
"""The deeds that cost the process."""
REFUSED: tuple[Callable[[], None], ...] = (
    lambda: sys.exit(0), raise_out_of_the_ordinary, carry_a_lock, take_all_memory,
)  # fmt: skip
"""The deeds that a process survives."""
DEEDS: Mapping[str, Callable[[], None]] = {
    f"{kind}-{number}": deed
    for kind, deeds in (("killed", KILLED), ("ended", ENDED), ("refused", REFUSED))
    for number, deed in enumerate(deeds)
}


class Hostile(TopicManagementPolicy):
    """Does what a topic is called; counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self.asked += 1
        if request.topic == "count":
            raise PolicyViolation(str(self.asked))
        if request.topic == "fork":
            os.fork()  # both come back
            return
        if request.topic == "descriptors":
            raise PolicyViolation(" ".join(sorted(map(descriptor, Path("/proc/self/fd").iterdir()))))
        if request.topic == "environment":
            raise PolicyViolation(" ".join(os.environ))
        if request.topic.startswith("print"):
            print(request.topic)  # noqa: T201 - policies print
            logging.getLogger("minicontroller.audit").warning("said by its log")
        if request.topic == "answer-ahead":
            answer_ahead()
        if request.topic == "log":
            for number in range(300):
                logging.getLogger(f"acme.{number}").warning("x" * 50_000)
        if request.topic == "ask":
            while True:
                cluster.topic_state("orders")
        if request.topic == "leave-later":
            threading.Timer(0.01, os._exit, [0]).start()
        if request.topic in DEEDS:
            DEEDS[request.topic]()

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        print("I am asked about", request.topic)  # noqa: T201
        print("é\ud800" + "x" * 200_000, end="")  # noqa: T201
        logging.getLogger("acme.rules").warning("of %s\nand more", cluster.cluster_size)
        logging.getLogger("acme.rules").debug("nobody hears")


def descriptor(path: Path) -> str:
    try:
        return str(path.readlink()).partition(":")[0]
    except OSError:
        return "gone"


class Looking(TopicManagementPolicy):
    """Refuses with all that it sees, as far as the topic's name says that it shall look."""

    def _look(self, request: PolicyRequest | AdminRequest, cluster: ClusterState) -> None:
        seen: list[object] = [
            type(request).__name__,
            *(plain(getattr(request, name)) for name in request.__struct_fields__),
        ]
        seen.append(cluster.cluster_size)
        how = request.client_id or ""
        if "one" in how:
            seen.append(plain(cluster.topic_state(getattr(request, "topic", "t1"))))
        if "some" in how:
            seen.extend(plain(cluster.topic_state(f"t{number}")) for number in range(40))
        if "names" in how:
            seen.append(sorted(cluster.topics()))
        if "all" in how:
            names = sorted(cluster.topics(include_internal=True, include_marked_for_deletion=True))
            seen.extend((name, plain(cluster.topic_state(name))) for name in names)
        raise PolicyViolation(hashlib.sha256(repr(seen).encode()).hexdigest())

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_admin(self, request: AdminRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)


def plain(value: object) -> object:
    """Return a value as lists, so that it compares equal whatever mapping or sequence shows it."""
    if isinstance(value, Mapping):
        return sorted((key, plain(each)) for key, each in value.items())
    if hasattr(value, "__struct_fields__"):
        return [(name, plain(getattr(value, name))) for name in value.__struct_fields__]
    return list(map(plain, value)) if isinstance(value, list | tuple) else value


class Keeping(TopicManagementPolicy):
    """Looks at the cluster of another judgement."""

    def __init__(self) -> None:
        self.kept: ClusterState | None = None

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        if self.kept is not None:
            self.kept.topic_state(request.topic)
        self.kept = cluster


class Closing(TopicManagementPolicy):
    """Closes as `topic.management.policy.config.close` says, and writes down when."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self.configs = dict(configs)
        if any("password" in key for key in configs):
            raise ValueError(sorted(configs))

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        """Allow, so that there is a process to ask."""

    def close(self) -> None:
        how = self.configs["topic.management.policy.config.close"]
        with Path(self.configs["topic.management.policy.config.file"]).open("a") as file:
            file.write("closed\n")
        threading.Thread(target=time.sleep, args=[FOR_EVER]).start()
        if how == "raise":
            sys.exit("no")
        if how == "hang":
            hold_the_interpreter()
