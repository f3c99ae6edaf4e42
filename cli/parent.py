"""Ends this process when the one that started it does, however that ends.

Rule: the sign is a pipe on stdin that closes, or the death of the parent. Between the two there may
be programs that only start others, such as a shell or make, and outlive whoever called them:
the parent is the nearest ancestor that is none of these, and the death of any of them counts. A
parent may have ended before this process looks for it, which then belongs to the first process of
the system, or to another that adopts orphans.
"""

import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import click

_STARTERS = (
    "ash bash busybox chronic dash direnv env fish gmake hatch just ksh make mise nice ninja nohup npm npx pdm pipenv "
    "poetry rye script setsid sh stdbuf strace sudo su task time timeout tox uv uvx xargs zsh"
)
STARTERS = frozenset(_STARTERS.split())
"""Programs that start others and wait for them."""
STDIN = 0
FIRST_PROCESS = 1
ORPHAN = (
    "The process that started this one has ended already, so --with-parent ends it too. Where the first process of the "
    "system starts it, such as systemd, leave out --with-parent."
)
MOST_ANCESTORS = 50
PAUSE_SECONDS = 0.5
"""How often ancestors are looked at where the system cannot say when they end."""
GRACE_SECONDS = 10.0
"""After how long this process ends without having stopped in order."""


class Ancestor(NamedTuple):
    pid: int
    parent: int
    """The pid of its own parent."""
    name: str


def end_with_parent(started_by: int) -> None:
    """End this process as SIGTERM does, once its parent has ended. `started_by` is the parent's pid
    as early as it was known. Raises ClickException if it has ended already.
    """
    watched = _watched()
    if _is_orphan(watched, started_by):
        raise click.ClickException(ORPHAN)
    if watched:  # the end of the first process ends all others
        Thread(target=_end_after, args=(watched,), name="parent", daemon=True).start()
    if _is_lifeline():
        Thread(target=_read_lifeline, name="stdin", daemon=True).start()


def _watched() -> list[Ancestor]:
    """Return the parent, with the starters below it."""
    found: list[Ancestor] = []
    pid = os.getppid()
    while pid > FIRST_PROCESS and len(found) < MOST_ANCESTORS:
        ancestor = _ancestor(pid)
        if ancestor is None:
            break
        found.append(ancestor)
        if ancestor.name not in STARTERS:
            break
        pid = ancestor.parent
    return found


def _is_orphan(watched: Sequence[Ancestor], started_by: int) -> bool:
    """Return whether the parent ended before it was looked for.

    Only its own parent is judged, because a script that started it may well be an orphan, as after
    a logout. A process begins in the session of its parent, so a parent in another one has adopted
    it. If it leads a session of its own, only the first process of the system is taken for such a
    parent, and not if somebody holds the other end of stdin. A parent outside of the container has
    the pid 0.
    """
    parent, session = os.getppid(), os.getsid(0)
    if parent != started_by or (parent > FIRST_PROCESS and not watched):
        return True
    if session == os.getpid():
        return parent == FIRST_PROCESS and not _is_lifeline()
    try:
        return parent != 0 and os.getsid(parent) != session
    except OSError:  # it has ended, or the system answers only within its session
        return True


def _ancestor(pid: int) -> Ancestor | None:
    """Return what the system knows of a process, or None if it has ended."""
    file = Path(f"/proc/{pid}/stat")
    if file.exists() or Path("/proc/self/stat").exists():
        try:
            before, _, after = file.read_text(errors="replace").rpartition(")")
        except OSError:
            return None
        state, parent = after.split()[:2]
        return None if state == "Z" else Ancestor(pid, int(parent), before.partition("(")[2])
    found = subprocess.run(  # noqa: S603 - a number is all that varies
        ["/bin/ps", "-o", "ppid=,comm=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(None, 1)
    return Ancestor(pid, int(found[0]), Path(found[1].strip().lstrip("-")).name) if len(found) == 2 else None


def _end_after(watched: Sequence[Ancestor]) -> None:
    try:
        _wait_for_one([each.pid for each in watched])
    except OSError:  # of a system without pidfd and kqueue, or one that forbids them
        while _watched() == watched:
            time.sleep(PAUSE_SECONDS)
    _end()


def _wait_for_one(pids: Sequence[int]) -> None:
    """Wait until one of these processes has ended. Raises OSError if the system cannot say so."""
    with suppress(ProcessLookupError):
        if sys.platform == "linux":
            poll = select.poll()
            for pid in pids:
                poll.register(os.pidfd_open(pid), select.POLLIN)
            poll.poll()
        else:  # macOS and the BSDs
            queue = select.kqueue()
            for pid in pids:
                ends = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
                queue.control([ends], 0)
            queue.control(None, 1)


def _is_lifeline() -> bool:
    """Return whether stdin is a pipe or a socket whose other end somebody holds."""
    try:
        mode = os.fstat(STDIN).st_mode
    except OSError:
        return False
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    poll = select.poll()
    poll.register(STDIN, select.POLLIN)
    return not any(event & select.POLLHUP for _, event in poll.poll(0))


def _read_lifeline() -> None:
    while os.read(STDIN, 1024):  # not by `sys.stdin`: its lock would be in the way when Python ends
        pass
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)
