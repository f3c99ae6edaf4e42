"""A command on a terminal: what it draws, and what somebody types."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.cli.command import TIMEOUT_SECONDS, environment
from tests.support.forked import COMMAND

READ_BYTES = 65536
OWNING = (
    sys.executable,
    "-c",
    "import os, fcntl, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)
"""The program that it runs has the terminal for its own, so that Ctrl-C there reaches it."""


class Seen(NamedTuple):
    code: int
    screen: str


def on_terminal(
    *arguments: str,
    folder: Path,
    columns: int = 80,
    keys: str = "",
    prompt: str = "",
    variables: Mapping[str, str] | None = None,
) -> Seen:
    """`keys` are typed once the screen shows `prompt`."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = environment({"TERM": "xterm-256color", **(variables or {})})
    own.pop("COLUMNS", None)
    process = subprocess.Popen(
        [*OWNING, COMMAND, *arguments], cwd=folder, env=own, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    screen, typed = b"", not keys
    try:
        while True:
            try:
                data = os.read(master, READ_BYTES)
            except OSError:  # Linux: nobody has the other end any more
                break
            if not data:
                break
            screen += data
            if not typed and prompt.encode() in screen:
                os.write(master, keys.encode())
                typed = True
        return Seen(process.wait(TIMEOUT_SECONDS), screen.decode().replace("\r\n", "\n"))
    finally:
        os.close(master)
        process.kill()
        process.wait()
