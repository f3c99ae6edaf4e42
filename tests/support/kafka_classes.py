"""Keeps the classes with which Kafka, its tools and a client in a source file start.

`python -m tests.support.kafka_classes` runs each once before the tests, and has Java write what
they loaded to an archive beside Kafka's jars: a broker and a tool then start for half of the
processor time. Without Maven, or where the archive is, it does nothing.
"""

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.support.java import archive, java
from tests.support.kafka import KafkaCluster, kafka_libs
from tests.support.kafka_kraft import started
from tests.support.maven import MISSING
from tests.support.programs import TESTS

LIMIT_SECONDS = 270
CLIENT = TESTS / "java" / "quota-oracle" / "QuotaOracle.java"


def keep_classes() -> None:
    """Make the archive, unless it is there."""
    libs = kafka_libs()
    kept = archive(libs)
    if kept.exists():
        return
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        folder = Path(temporary)
        lines = dict.fromkeys(line for each in _loaded(libs, folder) for line in each.read_text().splitlines())
        classes, made = folder / "classes", folder / "made"
        classes.write_text("\n".join(lines))
        dump = ("-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={made}")
        _run(java(libs, *dump))
        made.rename(kept)


def _loaded(libs: Path, folder: Path) -> Iterable[Path]:
    """Return lists of the classes that a broker, the tools and a client in a source file load."""
    broker = folder / "broker"
    cluster = KafkaCluster(folder / "kafka", 1)
    cluster.options = (*cluster.options, _listing(broker))
    with started(cluster):
        asked, keeper = ["--bootstrap-server", cluster.bootstrap], f"zookeeper.connect={cluster.zookeeper.connect}"
        programs = (
            ["kafka.admin.ConfigCommand", *asked, "--describe", "--entity-type", "topics"],
            ["kafka.admin.AclCommand", "--authorizer-properties", keeper, "--list"],
            [str(CLIENT)],
        )
        lists = [folder / f"program-{number}" for number in range(len(programs))]
        for each, program in zip(lists, programs, strict=True):
            _run([*java(libs, _listing(each)), *program])
    return broker, *lists


def _listing(to: Path) -> str:
    return f"-XX:DumpLoadedClassList={to}"


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


if __name__ == "__main__":
    if not MISSING:
        keep_classes()
