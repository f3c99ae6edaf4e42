"""The rule files of a node, read when it starts and again whenever one of them changes.

Rule: all or nothing. New rules come in force together and from one request to the next; where any file has a mistake, those that are
in force stay, and the log tells what to mend. A change is what `stat` shows (another file, size or time): looking costs next to nothing.
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from ..policies.faults import PolicyLoadError
from ..policies.rules import RuleFileError, read
from .policy_runner import PolicyRunner

logger = logging.getLogger("minicontroller.policy")

Stamp = tuple[int, int, int, int] | str
"""Device, inode, size and time of a file, or why it cannot be seen."""


class RuleFiles:
    """Keeps the rules of a runner as its files say."""

    def __init__(self, paths: Sequence[Path], runner: PolicyRunner, *, interval_ms: int) -> None:
        self._paths = paths
        self._runner = runner
        self._interval_seconds = interval_ms / 1000
        self._stamps: list[Stamp] = []
        self.loads = 0
        """How often what they said came in force, the start included."""
        self.failures = 0
        """How often they had changed and had a mistake."""
        self.loaded_at = 0.0
        """When they were last read without one, in seconds since 1970."""
        self.mistake: str | None = None
        """What is wrong with the files as they are; None if they are in force."""

    def load(self) -> None:
        """At the start. Raises PolicyLoadError."""
        self._stamps = stamps(self._paths)
        try:
            self._runner.use(read(self._paths))
        except RuleFileError as error:
            raise PolicyLoadError(f"The rules cannot be used:\n{error}") from None
        self.loads, self.loaded_at = 1, time.time()

    async def run(self) -> None:
        """Look again and again, for ever."""
        if self._interval_seconds == 0:
            return
        while True:
            await trio.sleep(self._interval_seconds)
            await self.look()

    async def look(self) -> None:
        """Load the files anew if one has changed. Off the event loop: the files may lie on a network."""
        seen = await trio.to_thread.run_sync(stamps, self._paths)
        if seen == self._stamps:
            return
        self._stamps = seen  # from before they are read: what changes meanwhile is seen the next time
        try:
            rules = await trio.to_thread.run_sync(read, self._paths)
        except RuleFileError as error:
            self.failures += 1
            self.mistake = str(error)
            logger.error("The rules have changed but cannot be used; those in force stay:\n%s", error)  # noqa: TRY400 - its text says all
            return
        self.mistake, self.loaded_at = None, time.time()
        if self._runner.rules is None or rules.hash != self._runner.rules.hash:
            self.loads += 1
            self._runner.use(rules)
            logger.info("%d rules of %s are in force (%s)", len(rules.rules), rules.name, rules.hash[:12])


def stamps(paths: Sequence[Path]) -> list[Stamp]:
    return [_stamp(path) for path in paths]


def _stamp(path: Path) -> Stamp:
    try:
        seen = path.stat()
    except OSError as error:
        return str(error)
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns
