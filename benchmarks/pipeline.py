"""What the pipeline costs beside its peers, in one run: `python -m benchmarks.pipeline`, or `make
bench-pipeline`.

Rule: every figure is of a command as a user calls it, start of Java and Spark included, on as many
cores as are told; the peers get the same events on the same machine: one Python process that
replays the same policy without Spark, and DuckDB that answers the report's questions from the same
tables. What the back-test and its peer find must be the same, or nothing is told.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from .history import Base, record_base, write_history

POLICIES: Final = Path(__file__).parent / "policies"
CANDIDATE: Final = POLICIES / "stricter.toml"
SIZES: Final = (1_000_000, 10_000_000)
CLUSTERS, DAYS = 3, 90.0
SAMPLE_SECONDS: Final = 0.5
RESULTS: Final = Path(__file__).parent / "results"


class Run(NamedTuple):
    """One command."""

    seconds: float
    worker_bytes: int
    """The most that any Python worker of Spark held (its resident set); 0 where there was none."""
    output: str


class _Watch(threading.Thread):
    """The largest Python worker among the descendants of a process."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.largest = 0

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for pid in descendants(self._pid):
                self.largest = max(self.largest, worker_bytes(pid))

    def end(self) -> None:
        self._ended.set()
        self.join()


def descendants(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task").glob("*/children")
        numbers = [int(number) for file in children for number in file.read_text().split()]
    except OSError:
        return
    for number in numbers:
        yield number
        yield from descendants(number)


def worker_bytes(pid: int) -> int:
    """Resident set of a worker of PySpark's; 0 for anything else."""
    try:
        if (
            b"pyspark" not in Path(f"/proc/{pid}/cmdline").read_bytes()
            or b"java" in Path(f"/proc/{pid}/comm").read_bytes()
        ):
            return 0
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # it has ended
        return 0


def run(*arguments: str) -> Run:
    """Raises CalledProcessError with what it said."""
    began = time.perf_counter()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watch = _Watch(process.pid)
        watch.start()
        output, errors = process.communicate()
        watch.end()
    if process.returncode:
        print(errors, file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, arguments, output, errors)
    return Run(time.perf_counter() - began, watch.largest, output)


def pipeline(command: str, *arguments: str, master: str) -> Run:
    return run(sys.executable, "-m", "minicontroller", "pipeline", command, *arguments, "--master", master)


DUCKDB: Final = """
import sys, duckdb
events = f"read_parquet('{sys.argv[1]}/events/**/*.parquet', hive_partitioning = true)"
for question in (
    f"SELECT principal, rule, count(*) FROM {events} WHERE decision = 'violated' GROUP BY ALL ORDER BY ALL",
    f"SELECT principal, api, count(*) FROM {events} WHERE kind = 'decision' GROUP BY ALL ORDER BY ALL",
    f"SELECT day, received_node <> decided_node, quantile_cont(latency_us, [0.5, 0.9, 0.99]) FROM {events} WHERE kind = 'decision' GROUP BY ALL ORDER BY ALL",
    f"SELECT day, cluster_id, count(*), sum(partitions_after - coalesce(partitions_before, 0)) FROM {events} WHERE effect = 'applied' GROUP BY ALL ORDER BY ALL",
    f"SELECT cluster_id, epoch, min(time), max(time), count(*) FROM {events} GROUP BY ALL ORDER BY ALL",
    f"SELECT software, count(*) FROM {events} GROUP BY ALL ORDER BY ALL",
):
    duckdb.sql(question).fetchall()
"""
"""The report's questions, for one process with all cores."""


def measure(base: Base, events: int, folder: Path, master: str) -> dict[str, Any]:
    audit, tables = folder / f"audit-{events}", folder / f"tables-{events}"
    for written in write_history(base, audit, events=events, clusters=CLUSTERS, days=DAYS):
        print(f"\r{written} events written", end="", file=sys.stderr, flush=True)
    count = written
    print(file=sys.stderr)
    ingest = pipeline("ingest", "--audit", str(audit), "--tables", str(tables), master=master)
    say(f"{count} events: ingest {ingest.seconds:.1f} s, {count / ingest.seconds:,.0f} events/s")
    peer = json.loads(
        run(sys.executable, "-m", "benchmarks.single_process", str(audit), str(CANDIDATE)).output.splitlines()[-1]
    )
    say(f"one process replays in {peer['seconds']:.1f} s, {peer['questions'] / peer['seconds']:,.0f} questions/s")
    page = folder / f"backtest-{events}.html"
    backtest = pipeline("backtest", str(CANDIDATE), "--tables", str(tables), "--out", str(page), master=master)
    _compare(peer, json.loads(page.with_suffix(".json").read_text()))
    say(
        f"back-test {backtest.seconds:.1f} s, {peer['seconds'] / backtest.seconds:.2f} times the single process, workers up to {backtest.worker_bytes >> 20} MiB"
    )
    report = pipeline("report", "--tables", str(tables), "--out", str(folder / f"report-{events}.html"), master=master)
    duckdb = run(sys.executable, "-c", DUCKDB, str(tables))
    say(f"report {report.seconds:.1f} s; DuckDB answers its questions in {duckdb.seconds:.1f} s")
    shutil.rmtree(audit)
    return {
        "events": count,
        "questions": peer["questions"],
        "ingest_seconds": ingest.seconds,
        "single_process_seconds": peer["seconds"],
        "backtest_seconds": backtest.seconds,
        "backtest_worker_bytes": backtest.worker_bytes,
        "report_seconds": report.seconds,
        "duckdb_seconds": duckdb.seconds,
    }


def _compare(peer: dict[str, Any], backtest: dict[str, Any]) -> None:
    """Raises SystemExit where they found something else."""
    differences = backtest["totals"]["differences"]
    found = backtest["history"]["asked"], differences["newly-denied"], differences["newly-allowed"]
    wanted = peer["questions"], peer["newly_denied"], peer["newly_allowed"]
    if found != wanted:
        sys.exit(f"Asked, newly denied, newly allowed: the back-test says {found}, the single process {wanted}.")


def say(line: str) -> None:
    print(line, flush=True)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """For benchmarks/README.md."""
    lines = [
        "| events | ingest | back-test | one process | ratio | questions/s of one process | largest worker | report | DuckDB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = row["single_process_seconds"] / row["backtest_seconds"]
        lines.append(
            f"| {row['events']:,} | {row['ingest_seconds']:.0f} s, {row['events'] / row['ingest_seconds']:,.0f}/s "
            f"| {row['backtest_seconds']:.0f} s | {row['single_process_seconds']:.0f} s | {ratio:.2f} "
            f"| {row['questions'] / row['single_process_seconds']:,.0f} | {row['backtest_worker_bytes'] >> 20} MiB "
            f"| {row['report_seconds']:.0f} s | {row['duckdb_seconds']:.0f} s |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--events", type=int, action="append", help=f"A length; repeatable.  [default: {SIZES}]")
    parser.add_argument(
        "--folder", type=Path, default=RESULTS / "pipeline", help="Where histories and tables lie meanwhile."
    )
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    base = record_base(options.folder / "base")
    rows = []
    for events in options.events or SIZES:
        rows.append(measure(base, events, options.folder, options.master))
        (options.folder / "result.json").write_text(json.dumps(rows, indent=2))
    print(table(rows))


if __name__ == "__main__":
    main()
