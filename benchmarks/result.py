"""One run as it is kept: every value of every round, so that the medians can be judged later."""

import statistics
from pathlib import Path
from typing import Final

import msgspec

from .lines import Goal, Line
from .works import Figures

RESULTS: Final = Path(__file__).parent / "results"


class Outcome(msgspec.Struct):
    """The result of one line on one system: the values of each figure by round, or the reason why
    there are none.
    """

    figures: dict[str, list[float]] = {}
    failure: str | None = None

    def add(self, figures: Figures) -> None:
        for key, value in figures.items():
            self.figures.setdefault(key, []).append(value)

    def median(self, figure: str) -> float | None:
        values = self.figures.get(figure)
        return statistics.median(values) if values else None


class Report(msgspec.Struct):
    """Everything about one run."""

    started: str
    machine: str
    quick: bool
    rounds: int
    titles: dict[str, str] = {}  # by system
    left_out: dict[str, str] = {}  # system to the sentence that says why
    lines: dict[str, dict[str, Outcome]] = {}  # line to system to outcome

    def outcome(self, line: str, system: str) -> Outcome:
        """The one there is, or a new one."""
        return self.lines.setdefault(line, {}).setdefault(system, Outcome())

    def median(self, line: str, system: str, figure: str) -> float | None:
        outcome = self.lines.get(line, {}).get(system)
        return None if outcome is None else outcome.median(figure)

    def score(self, name: str, line: Line, goal: Goal) -> float | None:
        """How many times better than the peer; without a peer the figure itself. None if a side is
        missing.
        """
        own = self.median(name, goal.subject, goal.figure)
        if goal.peer is None or own is None:
            return own
        theirs = self.median(name, goal.peer, goal.peer_figure or goal.figure)
        if not theirs or not own:
            return None
        return theirs / own if line.figures[goal.figure].less else own / theirs

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.started.replace(':', '')}.json"

    def write(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        self.path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))


def newest() -> Path | None:
    """Names begin with the time, so the last one is the newest."""
    return max(RESULTS.glob("*.json"), default=None)


def read(path: Path) -> Report:
    return msgspec.json.decode(path.read_bytes(), type=Report)


def merged(reports: list[Report]) -> Report:
    """Later runs of a line replace earlier ones whole, so that a ratio is always of one run."""
    first, *others = reports
    for other in others:
        first.lines |= other.lines
        first.titles |= other.titles
        first.left_out = {
            name: why for name, why in (first.left_out | other.left_out).items() if name not in first.titles
        }
    return first
