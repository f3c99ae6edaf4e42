"""With either log.format, an event begins a line and names its request, whatever texts clients
send.
"""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from minicontroller.process.observe.logs import ABOUT, LINES_OF_A_KIND, NODE, HumanFormatter, JsonFormatter, KindLimit
from tests.support.cluster import running_cluster
from tests.support.wire import Wire

STRANGER = 'x"}\n2026-01-01 00:00:00,000 ERROR forged: all is lost\x1b[31m'


@pytest.fixture(name="node")
def on_node_one() -> Iterator[None]:
    token = NODE.set(1)
    yield
    NODE.reset(token)


def record(message: str, *, fault: BaseException | None = None, **said: Any) -> logging.LogRecord:
    trace = None if fault is None else (type(fault), fault, fault.__traceback__)
    made = logging.LogRecord("minicontroller.test", logging.INFO, __file__, 1, message, None, trace)
    setattr(made, ABOUT, said)
    return made


def raised() -> Exception:
    try:
        int("nothing")
    except ValueError as error:
        return error
    raise AssertionError


def test_people_read_a_line(node: None) -> None:
    """In text, the message comes first, then node and request in brackets; a client's name cannot
    begin a line.
    """
    line = HumanFormatter().format(record("refused", principal="User:alice", client=STRANGER, correlation=7))
    assert line.count("\n") == 0
    assert "\x1b" not in line
    assert line.endswith("correlation=7]")
    assert "refused [node=1 principal=User:alice client='x" in line


def test_a_trace_follows_its_line(node: None) -> None:
    """The line stays whole; what follows is indented, so that nothing of it looks like an event."""
    first, *rest = HumanFormatter().format(record("it failed", fault=raised())).split("\n")
    assert first.endswith("it failed [node=1]")
    assert rest
    assert all(line.startswith("    ") for line in rest)


def test_machines_read_an_object_a_line(node: None) -> None:
    """Each event is one line of JSON with everything that is known of it, traces and half
    characters included.
    """
    line = JsonFormatter().format(record("a \ud800 b\n", fault=raised(), client=STRANGER, correlation=7))
    assert "\n" not in line
    event = json.loads(line)
    assert (event["node"], event["client"], event["correlation"]) == (1, STRANGER, 7)
    assert (event["level"], event["logger"], event["message"]) == ("INFO", "minicontroller.test", "a \ud800 b\n")
    assert event["time"].endswith("Z")
    assert "ValueError" in event["trace"]


def test_no_kind_of_line_floods_the_log() -> None:
    """Of the warnings of one kind those beyond LINES_OF_A_KIND in a minute are left out, and the
    next one says how many; other kinds, nodes and levels have no part in that.
    """

    def shown(seconds: float, text: str = "topic %s is damaged", level: int = logging.WARNING) -> str:
        made = logging.LogRecord("minicontroller.test", level, __file__, 1, text, ("t",), None)
        made.created = seconds
        return made.getMessage() if limit.filter(made) else ""

    limit = KindLimit()
    assert [shown(each / 100) for each in range(LINES_OF_A_KIND + 2)].count("topic t is damaged") == LINES_OF_A_KIND
    assert shown(30, "%s is gone") and shown(30, level=logging.INFO) and not shown(59)
    token = NODE.set(2)
    assert shown(30)
    NODE.reset(token)
    assert [shown(61), shown(62)] == ["topic t is damaged (3 more were left out)", "topic t is damaged"]


def test_a_cluster_logs_who_asked() -> None:
    """With log.format=json and -v every line is an object, and a decision tells node, principal,
    client, software and correlation.
    """
    with running_cluster(brokers=1, settings={"log.format": "json"}, options=["--verbose"]) as cluster:
        with Wire(cluster.bootstrap) as wire:
            wire.ask("ApiVersions", 3, {"client_software_name": "probe", "client_software_version": "1.5"})
            wire.ask("CreateTopics", 5, {"topics": [{"name": "x y", "num_partitions": 1, "replication_factor": 1}]})
        cluster.wait_for("minicontroller.decision")
        lines = [json.loads(line) for line in cluster.output.splitlines() if not line.startswith("ready:")]
    event = next(line for line in lines if line["logger"] == "minicontroller.decision")
    assert "INVALID_TOPIC_EXCEPTION" in event["message"]
    about = {name: event[name] for name in ("node", "principal", "client", "host", "software", "api")}
    assert about == {
        "node": 1,
        "principal": None,
        "client": "wire",
        "host": "127.0.0.1",
        "software": "probe/1.5",
        "api": "CreateTopics",
    }
    assert isinstance(event["correlation"], int)
