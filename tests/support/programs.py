"""Programs of tests in Go and JavaScript, built once for all checkouts with what they import."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.maven import CACHE

TESTS = Path(__file__).parents[1]
GO, JAVASCRIPT = TESTS / "go", TESTS / "javascript"
BUILD_SECONDS, RUN_SECONDS = 240, 150

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go missing (https://go.dev/dl)")
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm missing (Debian: apt install npm)")
time_to_build = pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS)  # the first run fetches what they import


def run_go(wanted: Mapping[str, str | int]) -> str:
    """Return the output of the program in Go."""
    place = _kept(GO, ("main.go", "go.sum"), lambda made: ["go", "build", "-o", str(made / "program"), "."])
    return _run([place / "program", json.dumps(wanted)])


def run_javascript(wanted: Mapping[str, str | int]) -> str:
    """Return the output of the program in JavaScript."""
    place = _fetched(JAVASCRIPT, ("package.json", "package-lock.json"), "ci")
    return _run(["node", JAVASCRIPT / "topics.js", json.dumps(wanted)], NODE_PATH=str(place / "node_modules"))


def azurite() -> Path:
    """Return the program that serves blobs as Azure does."""
    return _fetched(JAVASCRIPT / "azurite", ("package.json",), "install") / "node_modules" / ".bin" / "azurite-blob"


def _fetched(source: Path, named: Sequence[str], verb: str) -> Path:
    """A folder of the cache with what npm fetches for a package."""

    def fetching(made: Path) -> Sequence[str]:
        for name in named:
            shutil.copy(source / name, made)
        return ["npm", verb, "--no-audit", "--no-fund", "--prefix", str(made)]

    return _kept(source, named, fetching)


def _kept(source: Path, named: Sequence[str], command: Callable[[Path], Sequence[str]]) -> Path:
    """A folder of the cache for these contents of the source; the command makes it."""
    contents = b"".join((source / name).read_bytes() for name in named)
    place = CACHE / f"{source.name}-{hashlib.sha256(contents).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{source.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "whole").exists():
            place.mkdir(exist_ok=True)
            built = subprocess.run(
                command(place), cwd=source, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
            )
            assert built.returncode == 0, built.stderr[-4000:]
            (place / "whole").touch()
    return place


def _run(command: Sequence[str | Path], **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
