"""A policy that is asked under watch: it cannot hang, print into the result or leave traces, and
what it does besides judging is told.
"""

import signal
from pathlib import Path

import pytest

from minicontroller.audit.event import AuditEvent
from minicontroller.pipeline.backtest.verdicts import TRACEBACK
from tests.pipeline.backtest.asking import in_python, told
from tests.pipeline.backtest.by_words import History, broken
from tests.pipeline.backtest.slicing import backtested


def histories(topics: int = 3) -> list[AuditEvent]:
    history = History()
    for number in range(topics):
        history.create(f"t.{number}")
    return history.events


def code(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"def validate_create_topic(self, request, cluster):\n{lines}"


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    pass",
        "import time\ntime.sleep(1000)",
        "import threading\nthreading.Event().wait()",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "try:\n    while True:\n        pass\nexcept BaseException:\n    return None",
    ],
    ids=["loop", "sleep", "wait", "stubborn", "swallowing"],
)
def test_a_policy_that_hangs_is_cut_short(body: str, tmp_path: Path) -> None:
    """A policy that hangs, even one that catches everything, is told as too slow, nobody waits
    longer than the limit, and the next request is asked.
    """
    body = "if request.topic == 't.1':\n    " + body.replace("\n", "\n    ")
    candidate = in_python(tmp_path, code(body), "policy.timeout.ms=50")
    differences, tally = backtested(histories(), candidate)
    assert told(differences, lambda each: each.candidate.message) == [
        ("timed-out", "t.1", "it takes more than policy.timeout.ms (50)")
    ]
    assert tally.by("label") == {"same": 2, "timed-out": 1}


def test_the_clock_rings_again(tmp_path: Path) -> None:
    """A signal that comes just before a policy sleeps does not wake it, so another one follows."""
    body = "import signal\nassert signal.getitimer(signal.ITIMER_REAL)[1] == 0.05"
    differences, _ = backtested(histories(), in_python(tmp_path, code(body), "policy.timeout.ms=50"))
    assert differences == []


def test_the_clock_is_given_back(tmp_path: Path) -> None:
    """Whoever had an alarm set before has it afterwards."""
    rings = []
    before = signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
    remaining = signal.setitimer(signal.ITIMER_REAL, 500.0)
    try:
        backtested(histories(), in_python(tmp_path, code("pass")))
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 0 < left <= 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *remaining)


def test_what_a_policy_prints_is_gone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing of it reaches anybody, and that it prints is told."""
    body = "import sys, logging\nprint('x' * 5)\nprint('y', file=sys.stderr)\nlogging.getLogger('p').error('z')"
    differences, tally = backtested(histories(), in_python(tmp_path, code(body)))
    assert (differences, tally.side_effects) == ([], {"prints; the output is discarded"})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "side_effect"),
    [
        ("open('/etc/hostname').close()", "opens /etc/hostname"),
        ("import socket\nsocket.socket().connect_ex(('127.0.0.1', 9))", "uses the network: ('127.0.0.1', 9)"),
        ("import socket\nsocket.getaddrinfo('localhost', None)", "looks up localhost"),
        ("import subprocess\nsubprocess.run(['true'])", "starts true"),
        ("import os\nos.system('true')", "starts b'true'"),
        ("import random\nrandom.random()", "uses Python's random generator"),
    ],
    ids=["file", "socket", "name", "process", "shell", "random"],
)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_what_a_policy_does_besides_judging_is_told(body: str, side_effect: str, tmp_path: Path) -> None:
    """Files, networks, processes and chance: the answer may hang on them, so they are named."""
    _, tally = backtested(histories(70), in_python(tmp_path, code(body)))
    assert side_effect in tally.side_effects


def test_a_late_import_is_no_deed(tmp_path: Path) -> None:
    """A module that is imported when it is needed, of the policy's folder or not, is part of the
    policy.
    """
    (tmp_path / "late.py").write_text("NAME = 't.1'\n")
    body = "import late, wave\nif request.topic == late.NAME:\n    raise PolicyViolation('late')"
    differences, tally = backtested(histories(), in_python(tmp_path, code(body)))
    assert told(differences) == [("newly-denied", "t.1")]
    assert tally.side_effects == set()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 'no'", "it returned 'no', but a policy must return None to allow"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_policy_that_fails_refuses(body: str, message: str, tmp_path: Path) -> None:
    """A returned value, an exit and an exception are told as they would be told of a controller."""
    differences, tally = backtested(histories(1), in_python(tmp_path, code(body)))
    [difference] = differences
    assert difference.kind.value == "broken"
    assert (difference.candidate.message or "").strip().splitlines()[-1] == message
    assert tally.of("errors") == 1


def test_a_traceback_names_the_file_that_its_author_knows(tmp_path: Path) -> None:
    """A policy is asked from a copy of its files, and what it says of itself speaks of the
    original.
    """
    [difference], _ = backtested(histories(1), in_python(tmp_path, code("raise ValueError(str(object()))")))
    message = difference.candidate.message or ""
    assert f'File "{tmp_path}/candidate.py"' in message
    assert "<object object at 0x...>" in message
    assert "minicontroller-policy-" not in message and "judging.py" not in message


def test_an_exception_of_the_policys_own_file_is_the_same_in_each_folder(tmp_path: Path) -> None:
    """The name under which a file was loaded depends on its folder, there and here, and is no part
    of what a policy says.
    """
    then = broken(f"it raised:\n{TRACEBACK}\n  File ...\npolicy_0123abcd_candidate.NoOwner: nobody owns t.1")
    history = History().create("t.1", policy=then).create("t.2", policy=then)
    head = "class NoOwner(Exception):\n    pass\n"
    candidate = in_python(tmp_path, code("raise NoOwner(f'nobody owns {request.topic}')"), head=head)
    [difference], tally = backtested(history.events, candidate)
    assert difference.topic == "t.2"
    assert (difference.candidate.message or "").strip().endswith("\ncandidate.NoOwner: nobody owns t.2")
    assert tally.of("label", "same") == 1


def test_endless_recursion_is_steady(tmp_path: Path) -> None:
    """How deep a policy got depends on who asks, and is no other answer."""
    candidate = in_python(tmp_path, code("self.validate_create_topic(request, cluster)"))
    differences, tally = backtested(histories(), candidate)
    assert all(each.is_steady and "RecursionError" in (each.candidate.message or "") for each in differences)
    assert differences and not tally.of("note", "unsteady")


def test_who_says_something_else_each_time_is_found_out(tmp_path: Path) -> None:
    """A difference is asked for once more, and so is a part of the rest."""
    head = "import itertools\nCALLS = itertools.count()\n"
    candidate = in_python(tmp_path, code("if next(CALLS) % 2:\n    raise PolicyViolation('now and then')"), head=head)
    differences, tally = backtested(histories(), candidate)
    assert told(differences, lambda each: each.is_steady) == [("newly-denied", f"t.{n}", False) for n in (1, 2)]
    assert tally.of("note", "unsteady") == 2
    assert "called again: allowed" in tally.notes["unsteady"][0].text


def test_each_slice_has_a_policy_of_its_own(tmp_path: Path) -> None:
    """What a policy remembers of one slice is not there in the next, in its own module or in one
    that it imports.
    """
    (tmp_path / "memory.py").write_text("SEEN = []\n")
    body = "memory.SEEN.append(request.topic)\nif len(memory.SEEN) > 3:\n    raise PolicyViolation('enough')"
    candidate = in_python(tmp_path, code(body), head="import memory\n")
    for _ in range(2):
        assert backtested(histories(3), candidate)[0] == []
