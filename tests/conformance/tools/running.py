"""Runs calls of Kafka's tools, all in one process of Java, and keeps them as text.

A recorded call is its line after `$ `, what was written, each line after `| `, and the exit code
after `= `.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.tools.call import CLASSES, Call
from tests.conformance.tools.normal import Normaliser
from tests.support.java import java
from tests.support.kafka import KAFKA_VERSION, kafka_libs

PROGRAM = Path(__file__).parents[2] / "java" / "kafka-tools" / "KafkaTools.java"
RECORDINGS = Path(__file__).parent / "recordings"
LIMIT_SECONDS = 400


@dataclass(frozen=True)
class Outcome:
    line: str
    text: str
    code: int

    def __str__(self) -> str:
        written = [f"| {line}".rstrip() for line in self.text.splitlines()]
        return "\n".join([f"$ {self.line}", *written, f"= {self.code}", ""])


def run(
    calls: Sequence[Call],
    files: Mapping[str, str],
    addresses: Mapping[int, str],
    folder: Path,
    *,
    pause_seconds: float = 0.0,
    version: str = KAFKA_VERSION,
    classes: Mapping[str, str] = CLASSES,
) -> list[Outcome]:
    """Make the calls to node 1 of a cluster, with a pause after each; the tools are those of a
    version of Kafka, whose classes have these names.
    """
    for name, content in files.items():
        (folder / name).write_text(content)
    asked = [
        {
            "tool": classes[call.tool],
            "arguments": call.arguments(addresses[1], str(folder)),
            "until": call.until or None,
            "learns": call.learns or None,
            "typed": call.typed,
            "pause_ms": round(pause_seconds * 1000),
        }
        for call in calls
    ]
    (folder / "calls.json").write_text(json.dumps(asked))
    log4j = f"-Dlog4j.configuration=file:{PROGRAM.with_name('log4j.properties')}"
    place = ("-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US")
    command = [*java(kafka_libs(version), *place, log4j), str(PROGRAM), str(folder / "calls.json")]
    with (folder / "progress").open("w+") as progress:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=progress, text=True, timeout=LIMIT_SECONDS, check=False
        )
        progress.seek(0)
        assert ended.returncode == 0, ended.stdout[-4000:] + progress.read()[-4000:]
    normaliser = Normaliser(addresses, str(folder))
    return [
        Outcome(call.line, normaliser.normal(call, each["text"]), each["code"])
        for call, each in zip(calls, json.loads(ended.stdout), strict=True)
    ]


def recorded(part: str) -> list[Outcome]:
    """Return what a real Kafka's tools wrote."""
    return list(read((RECORDINGS / f"{part}.txt").read_text()))


def read(text: str) -> Iterator[Outcome]:
    line = ""
    written: list[str] = []
    for row in text.splitlines():
        kind, rest = row[:1], row[2:]
        if kind == "$":
            line, written = rest, []
        elif kind == "|":
            written.append(rest)
        elif kind == "=":
            yield Outcome(line, "\n".join(written).rstrip("\n"), int(rest))


def write(part: str, outcomes: Sequence[Outcome]) -> None:
    RECORDINGS.mkdir(exist_ok=True)
    (RECORDINGS / f"{part}.txt").write_text("\n".join(str(each) for each in outcomes))


def by_part(parts: Mapping[str, Sequence[Call]], outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Divide outcomes into the parts whose calls were made one after another."""
    rest = iter(outcomes)
    return {name: [next(rest) for _ in calls] for name, calls in parts.items()}
