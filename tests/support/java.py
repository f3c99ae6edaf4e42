"""How tests start Java with a folder of jars: soon, and with the jars' classes that are kept.

Kept classes are an archive beside the jars (class data sharing, JEP 310), which
`tests.support.kafka_classes` makes. It is a shortcut and nothing more: Java checks it against its
own version and the jars, and goes without it where there is none or anything is different.
"""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # a third less to compile and collect until it serves
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Options by which an archive that does not fit is passed over without a word on stdout."""


def java(libs: Path, *options: str, tuned: Sequence[str] = SHORT_LIVED) -> list[str]:
    """Return a command of Java with all jars of a folder; the program's name and its arguments
    follow it.
    """
    kept = archive(libs)
    shared = (*QUIET, f"-XX:SharedArchiveFile={kept}") if kept.exists() else ()
    return ["java", *tuned, *shared, *options, "-cp", f"{libs}/*"]


def archive(libs: Path) -> Path:
    """Return where this Java's archive of a folder of jars is, or would be."""
    program = Path(os.path.realpath(shutil.which("java") or "java"))
    status = program.stat()
    name = sha256(repr((program, status.st_mtime_ns, status.st_size)).encode()).hexdigest()[:16]
    return libs.with_name(f"{libs.name}-{name}.jsa")
