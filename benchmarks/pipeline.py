"""What the pipeline costs, in one run: `python -m benchmarks.pipeline`, or `make bench-pipeline`.

Rule: every figure is of a command as a user calls it, on as many cores as are told, with the wall
time and the processor time of all its processes, start of Java and Spark included; what it takes
after Spark's session is there stands beside it. A command runs on cold files, which the page cache
has forgotten, or on warm ones, which were read just before. The peer of a back-test, one Python
process without Spark, gets the same events, and must find the same. A tenth of the events is
measured first, and the last lines tell how time and a worker's memory grow.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from .history import Base, record_base, write_history
from .processes import Run, run

POLICIES: Final = Path(__file__).parent / "policies"
RULES: Final = str(POLICIES / "stricter.toml")
CLASS: Final = f"{POLICIES / 'stricter.py'}:Stricter"
EVENTS: Final = 1_000_000
CLUSTERS, DAYS = 3, 90.0
INCREMENTS: Final = 3
LINES: Final = 100
"""Of each cluster in an increment."""
RESULTS: Final = Path(__file__).parent / "results"
READ_BYTES: Final = 1 << 20
COLUMNS: Final = ("events", "command", "files", "wall s", "after session s", "processor s", "events/s", "single process", "worker MiB")  # fmt: skip
MIB: Final = 1 << 20


class Figure(NamedTuple):
    """A line of the table."""

    events: int
    command: str
    files: str
    seconds: float
    after_session: float | None
    processor_seconds: float
    worker_bytes: int
    single_process: float | None = None
    """How many times as long one process takes."""

    def told(self) -> tuple[str, ...]:
        after, ratio = self.after_session, self.single_process
        return (
            f"{self.events:,}",
            self.command,
            self.files,
            f"{self.seconds:.1f}",
            "" if after is None else f"{after:.1f}",
            f"{self.processor_seconds:.1f}",
            f"{self.events / self.seconds:,.0f}",
            "" if ratio is None else f"x {ratio:.2f}",
            f"{self.worker_bytes / MIB:.0f}" if self.worker_bytes else "",
        )


class Bench:
    """The measurements of one history."""

    def __init__(self, base: Base, folder: Path, master: str, events: int) -> None:
        self.audit, self.tables, self._folder = folder / "audit", folder / "tables", folder
        self._master = master
        self.figures: list[Figure] = []
        for written in write_history(base, self.audit, events=events, clusters=CLUSTERS, days=DAYS):
            print(f"\r{written:,} events written", end="", file=sys.stderr, flush=True)
            self.events = written
        print(file=sys.stderr)

    def measure(self) -> None:
        kept = self._hold_back()
        for state in (cold, warm):
            shutil.rmtree(self.tables, ignore_errors=True)
            self._pipeline("ingest", state, self.audit, *self._ingest(), events=self.events - len(kept) * LINES)
        self._increments(kept)
        for state in (cold, warm):
            self._pipeline("report", state, self.tables, "report", "--out", str(self._folder / "report.html"))
        self._backtests("back-test of rules", RULES, (cold, warm))
        self._backtests("back-test of a class", CLASS, (warm,))

    def _ingest(self) -> tuple[str, ...]:
        return "ingest", "--audit", str(self.audit)

    def _hold_back(self) -> list[tuple[Path, bytes]]:
        """Cut the newest lines of each cluster off, and return them by file and increment. A last
        file with too few of them goes, so that the lines are the newest ones.
        """
        kept: dict[str, list[tuple[Path, bytes]]] = {}
        for file in sorted(self.audit.iterdir(), reverse=True):
            cluster = file.name.rpartition("-cluster-")[2].partition("-")[0]
            if cluster in kept:
                continue
            lines = file.read_bytes().splitlines(keepends=True)
            rest = len(lines) - INCREMENTS * LINES
            if rest <= 0:
                file.unlink()
                self.events -= len(lines)
                continue
            file.write_bytes(b"".join(lines[:rest]))
            kept[cluster] = [(file, b"".join(lines[at : at + LINES])) for at in range(rest, len(lines), LINES)]
        return [each for cut in kept.values() for each in cut]

    def _increments(self, kept: Sequence[tuple[Path, bytes]]) -> None:
        """A few hundred events of all clusters behind the others: the median of several times."""
        runs = []
        for number in range(INCREMENTS):
            for file, lines in kept[number::INCREMENTS]:
                with file.open("ab") as stream:
                    stream.write(lines)
            runs.append(self._command(*self._ingest()))
        seconds, after, processor = (
            statistics.median(each)
            for each in zip(*[(each.seconds, after, each.processor_seconds) for each, after in runs], strict=True)
        )
        largest = max(each.worker_bytes for each, _ in runs)
        events = len(kept) // INCREMENTS * LINES
        self._tell(Figure(events, f"increment behind {self.events:,}", "warm", seconds, after, processor, largest))

    def _backtests(self, name: str, policy: str, states: Sequence[Callable[[Path], str]]) -> None:
        warm(self.audit)
        single = run(sys.executable, "-m", "benchmarks.single_process", str(self.audit), policy)
        peer = json.loads(single.output.splitlines()[-1])
        one = name.replace("back-test", "single process")
        self._tell(Figure(self.events, one, "warm", peer["seconds"], None, single.processor_seconds, 0))
        page = self._folder / "backtest.html"
        for state in states:
            command = "backtest", policy, "--out", str(page)
            self._pipeline(name, state, self.tables, *command, single=peer["seconds"])
            _compare(peer, json.loads(page.with_suffix(".json").read_text()))

    def _pipeline(
        self,
        name: str,
        state: Callable[[Path], str],
        files: Path,
        *command: str,
        events: int | None = None,
        single: float | None = None,
    ) -> None:
        told = state(files)
        each, after = self._command(*command)
        ratio = None if single is None else single / each.seconds
        count = self.events if events is None else events
        self._tell(Figure(count, name, told, each.seconds, after, each.processor_seconds, each.worker_bytes, ratio))

    def _command(self, *command: str) -> tuple[Run, float]:
        """Run a command of the pipeline, and return what it costs and its seconds after the
        session.
        """
        with tempfile.NamedTemporaryFile() as times:
            module = sys.executable, "-m", "benchmarks.one_command", times.name, self._master
            each = run(*module, *command, "--tables", str(self.tables))
            began, ended = map(float, Path(times.name).read_text().split())
        return each, ended - began

    def _tell(self, figure: Figure) -> None:
        self.figures.append(figure)
        print(" | ".join(figure.told()), flush=True)


def warm(folder: Path) -> str:
    """Read all files of a folder, so that the page cache has what it can hold."""
    for file in _files(folder):
        with file.open("rb", buffering=0) as stream:
            while stream.read(READ_BYTES):
                pass
    return "warm"


def cold(folder: Path) -> str:
    """Have the page cache forget all files of a folder."""
    os.sync()  # what is not yet on the disk would stay
    for file in _files(folder):
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return "cold"


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file())


def _compare(peer: dict[str, Any], backtest: dict[str, Any]) -> None:
    """Raises SystemExit where they found something else."""
    differences = backtest["totals"]["differences"]
    found = backtest["history"]["asked"], differences["newly-denied"], differences["newly-allowed"]
    wanted = peer["questions"], peer["newly_denied"], peer["newly_allowed"]
    if found != wanted:
        sys.exit(f"Asked, newly denied, newly allowed: the back-test says {found}, the single process {wanted}.")


def table(figures: Sequence[Figure]) -> str:
    rows = [COLUMNS, *(figure.told() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def growth(short: Sequence[Figure], long: Sequence[Figure]) -> Iterator[str]:
    """Tell of each command what so many times the events cost it."""
    for before, after in zip(short, long, strict=True):
        times = after.events / before.events
        if before.after_session is None or after.after_session is None or times == 1:
            continue
        line = f"{after.command}, {after.files}: {times:.1f} times the events take {after.after_session / before.after_session:.1f} times the time after the session"
        memory = (
            f", a worker {after.worker_bytes / before.worker_bytes:.2f} times the memory" if before.worker_bytes else ""
        )
        yield f"{line}{memory}."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="The length of the history.  [default: %(default)s]")
    parser.add_argument("--base", type=Path, help="Audit files of an earlier recording, or where to keep this one's.")
    parser.add_argument(
        "--folder", type=Path, default=RESULTS / "pipeline", help="Where histories and tables lie meanwhile."
    )
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    recorded = options.base or options.folder / "base"
    base = Base(recorded) if any(recorded.glob("*.ndjson")) else record_base(recorded)
    measured: list[list[Figure]] = []
    for events in (options.events // 10, options.events):
        bench = Bench(base, options.folder / str(events), options.master, events)
        bench.measure()
        shutil.rmtree(options.folder / str(events))
        measured.append(bench.figures)
    print(f"\n{table([*measured[0], *measured[1]])}\n\n" + "\n".join(growth(*measured)))
    print(f"Load of the machine at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
