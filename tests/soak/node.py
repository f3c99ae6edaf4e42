"""A node of the soak: `python -m tests.soak.node serve --config FILE`. At SIGUSR2 it gives back to
the system what memory it can, so that what is resident afterwards is what the node holds.

Without that nobody can tell a leak from free memory: the C library keeps what a burst needed, in
pieces, and Python collects cycles seldom.
"""

import ctypes
import gc
import signal
import sys
from pathlib import Path

from minicontroller.cli.main import main


def mark_of(config: Path) -> Path:
    """Return the file to which a node with this configuration adds a byte when it is done."""
    return config.with_suffix(".gave-back")


def _give_back(_number: int, _frame: object) -> None:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)
    with mark_of(Path(sys.argv[sys.argv.index("--config") + 1])).open("ab") as mark:
        mark.write(b".")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, _give_back)
    main()
