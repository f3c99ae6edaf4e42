"""franz-go's kfake, an in-memory fake cluster in Go, as a process of its own.

It is an honest fast peer for the embedded store, and no more than that: it takes bad names and
values, and dies on an api key that it does not know.
"""

import shutil
import subprocess
from pathlib import Path

from ..base import CACHE, CannotRunError, Process, System, wait_for_ready_line

BINARY = CACHE / "kfake"
SOURCE = Path(__file__).parent
READY_SECONDS = 10.0


class Kfake(System):
    name = "kfake"
    title = "kfake (franz-go)"

    @classmethod
    def missing(cls) -> str | None:
        return None if shutil.which("go") else "go not found (https://go.dev/dl)"

    def prepare(self) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["go", "build", "-o", str(BINARY), "."], cwd=SOURCE, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CannotRunError(f"kfake could not be built: {done.stderr.strip()[-500:]}")

    def start(self) -> None:
        log = self.folder / "log.txt"
        log.unlink(missing_ok=True)
        process = Process([str(BINARY)], log=log)
        self.nodes[0] = process
        self.addresses = wait_for_ready_line(process, READY_SECONDS)
