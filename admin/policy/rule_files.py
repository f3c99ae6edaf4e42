"""The rule files of a node, which are read when it starts and whenever one of them changes.

Rule: all or nothing. New rules take effect together, between two requests. If a file has a mistake,
the rules that are in force stay until it is mended, and the log says what is wrong. Files without
rules are a mistake, too, unless they say that they mean it.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import trio

from ...clock import now
from ...policies.judging import Rules
from ...policies.load_errors import PolicyLoadError
from ...policies.rules.mistakes import MAX_BYTES, RuleFileError
from ...process.settings.watched_files import Contents, WatchedFiles
from .runner import PolicyRunner

logger = logging.getLogger("minicontroller.policy")


class RuleFiles:
    """Keeps the rules of a `PolicyRunner` as the rule files have them."""

    def __init__(self, paths: Sequence[Path], runner: PolicyRunner, *, interval_ms: int) -> None:
        self._files = WatchedFiles(paths, max_bytes=MAX_BYTES)
        self._runner = runner
        self._interval_seconds = interval_ms / 1000
        self.loads = 0
        """How often rules took effect, the start included."""
        self.failures = 0
        """How often changed files had a mistake."""
        self.loaded_at = 0.0
        """When the files were last read without a mistake, in seconds since 1970."""
        self.mistake: str | None = None
        """The mistake in the files as they are; None if their rules are in force."""

    def load(self) -> None:
        """Load the rules at the start. Raises PolicyLoadError."""
        self._put_in_force(_loaded(self._files))
        self.loaded_at = now()

    async def run(self) -> None:
        """Follow the files for ever, or return at once if the interval is zero."""
        if self._interval_seconds > 0:
            await self._files.follow(self._interval_seconds, self._use)

    async def look(self) -> None:
        """Look at the files once. Changed rules take effect if the files were the same at the last
        look.
        """
        if (contents := await self._files.look()) is not None:
            await self._use(contents)

    async def _use(self, contents: Contents) -> None:
        try:
            rules = await trio.to_thread.run_sync(_rules, contents)
        except RuleFileError as error:
            self.failures += 1
            self.mistake = str(error)
            logger.error("The rules have changed but cannot be used; those in force stay:\n%s", error)  # noqa: TRY400 - its text says all
            return
        self.mistake, self.loaded_at = None, now()
        if self._runner.rules is None or rules.hash != self._runner.rules.hash:
            self._put_in_force(rules)

    def _put_in_force(self, rules: Rules) -> None:
        self.loads += 1
        self._runner.use(rules)
        for warning in rules.warnings:
            logger.warning("%s", warning)
        logger.info("rules in force: %d of %s (hash %s)", len(rules.rule_actions), rules.name, rules.hash[:12])


def check_rule_files(paths: Sequence[Path]) -> None:
    """Raise PolicyLoadError if a node could not use these files."""
    _loaded(WatchedFiles(paths, max_bytes=MAX_BYTES))


def _loaded(files: WatchedFiles) -> Rules:
    try:
        return _rules(files.read())
    except RuleFileError as error:
        raise PolicyLoadError(f"The rules cannot be used:\n{error}") from None


def _rules(contents: Contents) -> Rules:
    from ...policies.rules.ruleset import rules_of  # with the engines for CEL and regular expressions: 20 MiB

    return rules_of((each.path, each.fault if each.data is None else each.data) for each in contents)
