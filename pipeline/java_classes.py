"""The archive of Spark's classes with which Java starts it in half the time (application class data
sharing, JEP 350).

Rule: the archive is a shortcut and nothing more. Java writes it when the first session ends, checks
it against its own version, the jars and a checksum, and goes without it if anything is different.
Whoever cannot keep it, or does not own its folder, has none.
"""

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pyspark

UNSAFE_MODE = 0o022
"""The permissions by which others than the owner of a folder may put files there."""
OPTIONS = '-XX:+IgnoreUnrecognizedVMOptions -XX:+VerifySharedSpaces -Xlog:disable -Xlog:all=error:stderr "-XX:{}={}"'


def archive() -> Path | None:
    """Return where the archive is, or will be; None where it cannot be kept."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "minicontroller"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, key = folder.stat(), _key()
    except (OSError, RuntimeError):  # a person without a home, a home that is read-only
        return None
    is_safe = status.st_uid == os.getuid() and not status.st_mode & UNSAFE_MODE
    return folder / f"spark-{key}.jsa" if is_safe and os.access(folder, os.W_OK) else None


def java_options(archive: Path) -> str:
    """Return Java's options by which it uses the archive, or makes it where there is none."""
    return OPTIONS.format("SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit", archive)


def _key() -> str:
    """Return a name for this Java with these jars. Raises OSError."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.realpath(Path(home) / "bin" / "java" if home else shutil.which("java") or "java")
    status, spark = Path(java).stat(), os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    told = (java, status.st_mtime_ns, status.st_size, str(spark), pyspark.__version__)
    return sha256(repr(told).encode()).hexdigest()[:16]
