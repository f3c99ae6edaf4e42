"""Java programs from Maven Central: their jars in the cache, and the ZooKeeper server that both
sides use alike.
"""

import shutil
import signal
import subprocess
from pathlib import Path
from typing import ClassVar, Final

from .base import CACHE, HOST, CannotRunError, Process, System, free_ports, wait_for_port

KAFKA_WITH_ZOOKEEPER: Final = "3.9.1"  # the last line that runs on ZooKeeper
KAFKA_WITH_KRAFT: Final = "4.1.1"
POM: Final = Path(__file__).parent / "kafka" / "pom.xml"
TICK_MS: Final = 2000  # zoo_sample.cfg; a session ends on a multiple of it
MAX_CONNECTIONS: Final = 0  # no limit: every node and the benchmark itself come from one address
READY_SECONDS: Final = 30.0

LOG4J: Final = """\
log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def missing_java() -> str | None:
    absent = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if not absent:
        return None
    return f"{' and '.join(absent)} not found (Debian: apt install default-jre-headless maven)"


def jars(version: str) -> Path:
    """The folder with a Kafka broker's jars and ZooKeeper's, downloaded once."""
    home = CACHE / f"kafka-{version}"
    complete = home / ".complete"
    if not complete.exists():
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(POM), f"-Dkafka.version={version}"]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={home / 'libs'}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotRunError(f"Maven could not fetch Kafka {version}: {done.stdout.strip()[-500:]}")
        complete.touch()
    return home / "libs"


def java(version: str, *arguments: str, heap: str, folder: Path) -> list[str]:
    """A command line with the jars of that version and a quiet log."""
    log4j = folder / "log4j.properties"
    log4j.write_text(LOG4J)
    options = [f"-Xmx{heap}", f"-Dlog4j.configuration=file:{log4j}", "-Djava.awt.headless=true"]
    return ["java", *options, "-cp", f"{jars(version)}/*", *arguments]


class ZooKeeper:
    """One server of Kafka 3.9's own jars, with its log on disk and synced as ZooKeeper does by
    default.
    """

    def __init__(self, folder: Path) -> None:
        home = folder / "zookeeper"
        (home / "data").mkdir(parents=True)
        (self.port,) = free_ports(1)
        command = java(
            KAFKA_WITH_ZOOKEEPER,
            "-Dzookeeper.admin.enableServer=false",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            *map(str, (self.port, home / "data", TICK_MS, MAX_CONNECTIONS)),
            heap="256m",
            folder=home,
        )
        self.process = Process(command, log=home / "log.txt")
        wait_for_port((HOST, self.port), self.process, READY_SECONDS)

    @property
    def connect(self) -> str:
        return f"{HOST}:{self.port}"

    def stop(self) -> None:
        self.process.end(signal.SIGKILL)
        self.process.reap()


class WithZooKeeper(System):
    """A system on a ZooKeeper server that is its own and lives as long as it does, over all its
    starts.
    """

    chroot: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._zookeeper: ZooKeeper | None = None

    @classmethod
    def missing(cls) -> str | None:
        return missing_java()

    def prepare(self) -> None:
        jars(KAFKA_WITH_ZOOKEEPER)
        self._zookeeper = ZooKeeper(self.folder)

    def close(self) -> None:
        self.stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None
        super().close()

    def zookeeper(self) -> str | None:
        return None if self._zookeeper is None else f"{self._zookeeper.connect}{self.chroot}"

    def zookeeper_pid(self) -> int | None:
        return None if self._zookeeper is None else self._zookeeper.process.pid
