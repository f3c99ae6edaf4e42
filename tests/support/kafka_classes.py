"""Keeps the classes with which Kafka, its tools and a client in a source file start, of the last
Kafka with ZooKeeper and the newest without it.

`python -m tests.support.kafka_classes` runs each once before the tests, and has Java write what
they loaded to an archive beside Kafka's jars: a broker and a tool then start for half of the
processor time. Without Maven, or where the archives are, it does nothing.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.java import archive, java
from tests.support.kafka import KafkaCluster, KafkaProcesses, kafka_libs
from tests.support.kafka_kraft import NEWEST_VERSION, KraftCluster, started
from tests.support.maven import MISSING
from tests.support.programs import TESTS

LIMIT_SECONDS = 270
JAVA = TESTS / "java"


def keep_classes() -> None:
    """Make the archives, unless they are there."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        last, newest = KafkaCluster(folder / "last", 1), KraftCluster(folder / "newest", NEWEST_VERSION)
        _keep(last, _tools(last))
        _keep(newest, _clients(newest, folder))


def _tools(cluster: KafkaCluster) -> list[list[str]]:
    asked, keeper = ["--bootstrap-server", cluster.bootstrap], f"zookeeper.connect={cluster.zookeeper.connect}"
    return [
        ["kafka.admin.ConfigCommand", *asked, "--describe", "--entity-type", "topics"],
        ["kafka.admin.AclCommand", "--authorizer-properties", keeper, "--list"],
        [str(JAVA / "quota-oracle" / "QuotaOracle.java")],
    ]


def _clients(cluster: KraftCluster, folder: Path) -> list[list[str]]:
    """Return the making of a topic, a producer, and the compiler, which does without a broker what
    it does for a client in a source file.
    """
    at, topic = ["--bootstrap-server", cluster.bootstrap], ["--topic", "kept"]
    jars = ":".join(map(str, kafka_libs(cluster.version).glob("*.jar")))
    return [
        ["org.apache.kafka.tools.TopicCommand", *at, *topic, "--create"],
        ["org.apache.kafka.tools.ConsoleProducer", *at, *topic],
        ["com.sun.tools.javac.Main", "-d", str(folder), "-cp", jars, str(JAVA / "clients" / "Load.java")],
    ]


def _keep(cluster: KafkaProcesses, programs: list[list[str]]) -> None:
    """Make the archive of what a broker and these programs beside it load."""
    libs = kafka_libs(cluster.version)
    kept = archive(libs)
    if kept.exists():
        return
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        folder = Path(temporary)
        lists = _loaded(cluster, programs, folder)
        lines = dict.fromkeys(line for each in lists for line in each.read_text().splitlines())
        classes, made = folder / "classes", folder / "made"
        classes.write_text("\n".join(lines))
        dump = ("-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={made}")
        _run(java(libs, *dump))
        made.rename(kept)


def _loaded(cluster: KafkaProcesses, programs: list[list[str]], folder: Path) -> Iterator[Path]:
    """Yield lists of the classes that a broker and each of the programs load."""
    broker = folder / "broker"
    cluster.options = (*cluster.options, _listing(broker))
    with started(cluster):
        for number, program in enumerate(programs):
            listed = folder / f"program-{number}"
            _run([*java(kafka_libs(cluster.version), _listing(listed)), *program])
            yield listed
    yield broker


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
