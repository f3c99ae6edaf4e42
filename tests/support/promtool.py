"""promtool, which evaluates Prometheus' rules: the one of the system, or else that of Debian's
package, which is unpacked into the cache without being installed, so that no server is started.

`python -m tests.support.promtool` gets it; the Makefile does so before the tests.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.maven import CACHE, alone

CACHED = CACHE / "promtool"
MISSING = "The alerts are tested with promtool: please install Prometheus (Debian: apt install prometheus)."


class NoPromtoolError(Exception):
    """There is no promtool, and none can be got here."""


def promtool() -> str:
    """Return the path of promtool. Raises NoPromtoolError."""
    installed = shutil.which("promtool")
    if installed is not None:
        return installed
    with alone():
        if not CACHED.exists():
            _unpack()
    return str(CACHED)


def _unpack() -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            _run(folder, "apt-get", "-qq", "download", "prometheus")
            (package,) = Path(folder).glob("prometheus_*.deb")
            _run(folder, "dpkg-deb", "-x", package.name, "unpacked")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise NoPromtoolError(MISSING) from error
        shutil.move(Path(folder) / "unpacked" / "usr" / "bin" / "promtool", CACHED)


def _run(folder: str, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


if __name__ == "__main__":
    try:
        promtool()
    except NoPromtoolError as error:
        sys.exit(str(error))
