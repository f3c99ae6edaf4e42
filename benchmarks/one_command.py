"""One command of the pipeline, in a session that is started before: `python -m
benchmarks.one_command TIMES MASTER report --tables ...`.

Rule: the command itself is the one that users call. The file TIMES gets two times of the machine's
monotonic clock: when the session was there, and when the command was done.
"""

import sys
import time
from pathlib import Path

from minicontroller.pipeline.commands import pipeline
from minicontroller.pipeline.session import spark_session


def main() -> None:
    file, master, *command = sys.argv[1:]
    with spark_session(master):  # which the command finds
        began = time.monotonic()
        pipeline.main(command, standalone_mode=False)
        Path(file).write_text(f"{began} {time.monotonic()}")


if __name__ == "__main__":
    main()
