"""Starts Spark and ends it: quiet unless asked otherwise, and each failure to start is a sentence.

Rule: a session lives as long as one command. Whatever is wrong with Java or the master is found
before anything is read or written.

Java starts in half the time from an archive of Spark's classes (JEP 350). The archive is a shortcut
and nothing more: Java writes it when the first session ends, checks it against its own version, the
jars and a checksum, and goes without it if anything is different. Workers that do not have the
program get its Python code as a zip; they need the installed libraries themselves.
"""

import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit
from warnings import catch_warnings
from zipfile import ZIP_DEFLATED, ZipFile

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, is_remote

from ..process.settings.properties import PropertiesError, parse_properties
from .ending import ending, remove
from .failures import PipelineError, SparkLostError, first_line, is_sparks, lost

MASTER, REMOTE, PYTHON = "spark.master", "SPARK_REMOTE", "spark.pyspark.python"
CONNECT = "sc://"
LOCAL = "local"
LISTENING = {"spark": ("Spark master", ""), "sc": ("Spark Connect server", "15002")}
"""The kind of server that an address of each scheme names, and its default port, if it has one."""
CONNECT_SECONDS = 5.0
LOCAL_DIR = "spark.local.dir"
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The variable in which spark-submit tells where Java's side is."""
STDERR = "stderr"
"""The file with what Java says, which warns of modules that Spark asks for."""
TOO_OLD = "UnsupportedClassVersionError"
ENDED = "JAVA_GATEWAY_EXITED"
NO_JVM = "Error: Could not create the Java Virtual Machine"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET = """
rootLogger = off, none
appender.none.type = Null
appender.none.name = none
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""
"""The configuration of log4j in the driver: what goes wrong reaches Python as an exception, and is
told there. Without a level of its own Spark would give the gateway one, and say so.
"""

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "minicontroller",
    "spark.driver.memory": "2g",
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.python.authenticate.socketTimeout": "2m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
"""Spark's settings for plans of two steps, in which Java only carries what Python works on: to plan
them anew and to compile them takes longer than to carry them out. Whoever wants others says so with
--conf.
"""
UNSAFE_MODE = 0o022
"""The permissions by which others than the owner of a folder may put files there."""
OPTIONS = '-XX:+IgnoreUnrecognizedVMOptions -XX:+VerifySharedSpaces -Xlog:disable -Xlog:all=error:stderr "-XX:{}={}"'
NAME = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]
PACKAGES = ("audit", "pipeline", "policies", "protocol")
"""The packages that are sent as a whole."""
MODULES = ("process/__init__.py", "process/settings/__init__.py", "process/settings/properties.py")
"""The modules of other packages that are sent: workers read the properties that name a policy."""


class SparkUnavailableError(PipelineError):
    """Spark cannot be started."""


@contextmanager
def spark_session(
    master: str | None = None, *, settings: Mapping[str, str] | None = None, verbose: bool = False
) -> Iterator[SparkSession]:
    """Give the block a Spark session. Raises SparkUnavailableError.

    A session that is there already, as in a notebook, is used and stays. Another one ends with the
    block. Without a master Spark runs where spark-submit, spark-defaults.conf or the environment
    says, and otherwise on this machine.
    """
    present = SparkSession.getActiveSession()
    if present is not None:
        if master:
            raise SparkUnavailableError(
                f"This command uses the Spark session that exists already: leave --master {master} out."
            )
        yield present
        return
    with _own_folder() as folder:
        spark = None
        try:
            with ending.of_children():
                spark = _started(master, settings or {}, folder, is_quiet=not verbose)
                is_here = not is_remote() and _is_local(spark.sparkContext.master or "")
                if not is_here and (package := write_package(folder)) is not None:
                    spark.addArtifacts(str(package), pyfile=True)
                yield spark
        finally:
            if spark is not None:
                _stop(spark)


def _stop(spark: SparkSession) -> None:
    """End Spark, in silence: its Java may have been ended by the signal that ended the command."""
    level = logging.root.manager.disable
    logging.disable()
    with suppress(SparkLostError), lost(), catch_warnings(action="ignore"):
        spark.stop()
    logging.disable(level)


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Make a folder for the session, which goes however the command ends."""
    folder = Path(mkdtemp(prefix="minicontroller-spark-"))
    ending.folders.add(folder)
    try:
        yield folder
    finally:
        remove(folder)
        ending.folders.discard(folder)


def _started(master: str | None, settings: Mapping[str, str], folder: Path, *, is_quiet: bool) -> SparkSession:
    """Start Spark, or connect to it. The folder is for what Spark keeps, and for what keeps it
    quiet.
    """
    configured = _configured()
    address = master or os.environ.get(REMOTE) or configured.get(MASTER) or os.environ.get("MASTER") or ""
    _check_answers(address)
    if address.startswith(CONNECT):
        return _start(address, settings)
    _check_java()
    chosen = {key: value for key, value in SETTINGS.items() if key not in configured} | dict(settings)
    os.environ.setdefault("PYSPARK_PYTHON", chosen.get(PYTHON, sys.executable))
    if master:
        chosen[MASTER] = master
    if _is_local(address or LOCAL) and LOCAL_DIR not in {*configured, *chosen}:
        chosen[LOCAL_DIR] = str(folder)
    if not is_quiet:
        return _start(address, chosen)
    log = folder / "log4j2.properties"
    log.write_text(QUIET, encoding="utf-8")
    given = chosen.get(JAVA_OPTIONS, configured.get(JAVA_OPTIONS, ""))
    chosen[JAVA_OPTIONS] = f"{given} -Dlog4j2.configurationFile={log.as_uri()}".strip()
    classes = archive() if _is_local(address or LOCAL) else None  # of other masters a session may not come about
    if classes is not None:
        try:
            return _start(address, chosen | {JAVA_OPTIONS: f"{chosen[JAVA_OPTIONS]} {java_options(classes)}"}, folder)
        except SparkUnavailableError as error:
            if ENDED not in str(error):
                raise
            classes.unlink(missing_ok=True)  # Java may have crashed on an archive that was cut off
    return _start(address, chosen, folder)


def _configured() -> dict[str, str]:
    """Return what Spark was told by spark-submit, which only Java knows, or spark-defaults.conf."""
    if SUBMITTED in os.environ:
        SparkContext._ensure_initialized()  # noqa: SLF001 - until then a SparkConf knows nothing of Java's side
        return dict(SparkConf(loadDefaults=True).getAll())
    file = Path(os.environ.get("SPARK_CONF_DIR") or _spark() / "conf") / "spark-defaults.conf"
    try:
        found = parse_properties(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        return {}
    except PropertiesError as error:
        raise SparkUnavailableError(str(error)) from None
    except (OSError, ValueError) as error:
        raise SparkUnavailableError(f"{file} cannot be read: {error}.") from None
    return {key: entry.value for key, entry in found.entries.items()}


def _is_local(master: str) -> bool:
    return master.partition("[")[0] == LOCAL


def _start(address: str, settings: Mapping[str, str], quiet: Path | None = None) -> SparkSession:
    builder = SparkSession.builder
    try:
        if address.startswith(CONNECT):
            builder = builder.remote(address)
        elif SparkContext._gateway is None:  # noqa: SLF001 - there is no other way to know whether Java runs
            _start_java(settings, quiet)
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except FileNotFoundError as error:
        raise SparkUnavailableError(f"There is no {error.filename}: SPARK_HOME names no folder of Spark.") from None
    except Exception as error:
        if not is_sparks(error):
            raise
        told = f"{f' with --master {address}' if address else ''}: {first_line(error)}"
        if quiet is not None and (said := _reason(quiet / STDERR)):
            told = f": {said}"
        raise SparkUnavailableError(f"Spark cannot be started{told}") from None


def _start_java(settings: Mapping[str, str], quiet: Path | None) -> None:
    """Start Java in its own process group, so that a signal to ours does not end it too early."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    untyped: Any = launch_gateway
    with nullcontext() if quiet is None else (quiet / STDERR).open("wb") as stderr:
        gateway = untyped(conf, {"process_group": 0, "stderr": stderr})
    context = _context(conf, gateway)
    server = context._accumulatorServer  # noqa: SLF001 - its thread would print a trace when Java has gone
    vars(server)["handle_error"] = lambda *_: None


def _context(conf: SparkConf, gateway: Any) -> SparkContext:
    """Make a context without pyspark's own handler of Ctrl-C, which talks to Java amid a talk."""
    handler = signal.getsignal(signal.SIGINT)
    context = SparkContext(conf=conf, gateway=gateway)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
    return context


def _reason(stderr: Path) -> str | None:
    """Return Java's complaint; one about options stands before the line that it cannot start."""
    lines = stderr.read_text(encoding="utf-8", errors="replace").splitlines() if stderr.exists() else []
    if any(TOO_OLD in line for line in lines):
        return "this Java is too old, and Spark needs 17 or newer."
    for before, line in pairwise(("", *lines)):
        if before and line.startswith(NO_JVM):
            return before
        if line.startswith(("Error", "Exception")):
            return line.rpartition("Exception: ")[2].removeprefix("Error: ")
    return None


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        raise SparkUnavailableError(
            f"JAVA_HOME is {home}, but there is no bin/java in it: Spark needs Java, 17 or newer."
            if home
            else "Spark needs Java, 17 or newer, and there is none: install one (Debian: apt install default-jre-headless)."
        )


def _check_answers(address: str) -> None:
    """Refuse a master or a server that cannot be reached: Spark itself would try for minutes."""
    scheme, _, hosts = address.partition("://")
    if scheme not in LISTENING:
        return
    name, usual_port = LISTENING[scheme]
    failure = ""
    for each in hosts.partition("/")[0].split(","):
        try:
            server = urlsplit(f"//{each}")
            port = int(server.port or usual_port)
            socket.create_connection((server.hostname, port), timeout=CONNECT_SECONDS).close()
        except ValueError:
            raise SparkUnavailableError(f"--master {address}: write it as {scheme}://HOST:PORT.") from None
        except OSError as error:
            failure = error.strerror or str(error)
        else:
            return
    raise SparkUnavailableError(f"No {name} answers at {address}: {failure}.")


def archive() -> Path | None:
    """Return where the archive is, or will be; None where it cannot be kept. One that is older than
    the jars goes: Java refuses it once they have been installed anew.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "minicontroller"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, kept = folder.stat(), folder / f"spark-{_key()}.jsa"
        if status.st_uid != os.getuid() or status.st_mode & UNSAFE_MODE or not os.access(folder, os.W_OK):
            return None
        if kept.exists() and kept.stat().st_mtime_ns < (_spark() / "jars").stat().st_mtime_ns:
            kept.unlink()
    except (OSError, RuntimeError):  # a person without a home, a home that is read-only
        return None
    return kept


def java_options(archive: Path) -> str:
    """Return Java's options by which it uses the archive, or makes it where there is none."""
    return OPTIONS.format("SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit", archive)


def _key() -> str:
    """Return a name for this Java with these jars. Raises OSError."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.realpath(Path(home) / "bin" / "java" if home else shutil.which("java") or "java")
    status = Path(java).stat()
    told = (java, status.st_mtime_ns, status.st_size, str(_spark()), pyspark.__version__)
    return sha256(repr(told).encode()).hexdigest()[:16]


def _spark() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def write_package(folder: Path) -> Path | None:
    """Write the zip into a folder; None if the program runs from one, which Spark was given."""
    if not ROOT.is_dir():
        return None
    target = folder / f"{NAME}.zip"
    packages = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    sources = [*ROOT.glob("*.py"), *(ROOT / module for module in MODULES), *packages]
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for file in sorted(sources):
            archive.write(file, f"{NAME}/{file.relative_to(ROOT).as_posix()}")
    return target
