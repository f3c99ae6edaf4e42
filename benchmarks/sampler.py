"""`python sampler.py OUT -m MODULE ARGUMENTS...` runs the module and notes where its threads are,
by processor time.

It begins when it gets SIGUSR1, so that the start does not drown what is asked about.

It costs a few per cent, where cProfile doubles the price of a call, and it sees the threads of
kazoo. The samples are taken in a signal handler: a thread that asked for them would get its turn
when the others release the interpreter's lock, and so see little but system calls. They are written
to OUT as JSON when the program ends.
"""

import atexit
import json
import runpy
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

INTERVAL_SECONDS: Final = 0.002
FRAME_SHARE: Final = 0.98  # what is on every stack tells nothing
BEGIN: Final = signal.SIGUSR1
WAITING: Final = frozenset({"wait", "select", "poll", "get_events", "_wait_for_tstate_lock"})

Stack = tuple[str, ...]


class Sampler:
    """Counts stacks by thread, the outermost function first."""

    def __init__(self) -> None:
        self.stacks: Counter[tuple[str, Stack]] = Counter()

    def prepare(self) -> None:
        signal.signal(signal.SIGPROF, self.sample)
        signal.signal(BEGIN, self.begin)

    def begin(self, _signum: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def sample(self, _signum: int, interrupted: FrameType | None) -> None:
        own = threading.get_ident()
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for identity, frame in sys._current_frames().items():  # noqa: SLF001 - the only way to see other threads
            stack = stack_of(interrupted if identity == own else frame)
            self.stacks[names.get(identity, "?"), stack] += 1

    def write(self, path: Path) -> None:
        self.stop()
        rows = [[thread, list(stack), count] for (thread, stack), count in self.stacks.copy().items()]
        path.write_text(json.dumps(rows))


def stack_of(frame: FrameType | None) -> Stack:
    names: list[str] = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{Path(code.co_filename).name}:{code.co_qualname}")
        frame = frame.f_back
    return tuple(reversed(names))


def report(path: Path, top: int) -> str:
    """The busiest functions by own and by cumulative time, as shares of all samples of a working
    thread.
    """
    own: Counter[str] = Counter()
    cumulative: Counter[str] = Counter()
    threads: Counter[str] = Counter()
    for thread, stack, count in json.loads(path.read_text()):
        if not stack or stack[-1].rpartition(".")[2].rpartition(":")[2] in WAITING:
            continue
        threads[thread] += count
        own[stack[-1]] += count
        cumulative.update(dict.fromkeys(stack, count))
    total = sum(threads.values()) or 1
    cumulative = Counter({name: count for name, count in cumulative.items() if count < total * FRAME_SHARE})
    sections = [("threads at work", threads), ("own time", own), ("with what they call", cumulative)]
    lines = []
    for title, counter in sections:
        lines += [f"{title}:", *(f"  {count / total:6.1%}  {name}" for name, count in counter.most_common(top)), ""]
    return "\n".join(lines)


def main() -> None:
    out, flag, module, *arguments = sys.argv[1:]
    assert flag == "-m"
    sampler = Sampler()
    sampler.prepare()
    atexit.register(sampler.write, Path(out))
    sys.argv = [module, *arguments]
    del sys.path[0]  # this folder; the module is to be found as without the sampler
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
