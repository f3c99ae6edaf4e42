"""The log of a running cluster, in either form: every line can be read again, and whatever a
request caused says whose it was.
"""

import ast
import json
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.process.observe.logs import ABOUT, NODE, HumanFormatter, JsonFormatter
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.registry import KAFKA
from tests.handlers.ruling import creating, wanted
from tests.support.cluster import MiniCluster, other_ids, running_cluster
from tests.support.wire import ConnectionEndedError, Wire

POLICY = """
import threading
from minicontroller.policies import PolicyViolation, TopicManagementPolicy


def fail():
    raise LookupError("in a thread\\x1b[31m")


class Odd(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if request.topic == "refused":
            raise PolicyViolation("Not this.\\n2026-01-01 00:00:00,000 ERROR   forged: all is lost\\x1b[31m")
        if request.topic == "broken":
            thread = threading.Thread(target=fail)
            thread.start()
            thread.join()
            raise ValueError("no\\x85team\\u2028")
"""
RULES = """
[[partitions]]
name = "few"
max = 2
action = "warn"

[[rule]]
name = "lasting"
operations = ["create"]
topics = ["lasting"]
condition = 'int(after.configs["retention.ms"]) > 1'
"""
CLIENT = 'a b"]\n2026-01-01 00:00:00,000 ERROR   forged: me too\x1b[31m'
SOFTWARE = "probe/1.5"
UNREADABLE = ("the bytes end too early", "is not served", "has no header")

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) +(?P<logger>[\w.]+): "
    r"(?P<message>.*?)(?: \[(?P<about>node=\d+(?: [a-z]+=(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^ \[\]\"'=\\]+))*)\])?"
)
FIELD = re.compile(r"([a-z]+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^ ]+)")


def read_human(lines: list[str]) -> Iterator[Mapping[str, Any]]:
    """Each event; what is indented belongs to the one before it."""
    began = False
    for line in lines:
        if line.startswith("    ") and began:
            continue
        match = LINE.fullmatch(line)
        assert match, f"no event begins like this: {line!r}"
        began = True
        fields = FIELD.findall(match["about"] or "")
        about = {name: ast.literal_eval(value) if value[0] in "'\"" else value for name, value in fields}
        yield {"level": match["level"], "logger": match["logger"], "message": match["message"], **about}


def read_json(lines: list[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        event = json.loads(line)
        assert {"time", "level", "logger", "message"} <= event.keys()
        yield event


@pytest.fixture(name="logged", scope="module", params=["human", "json"])
def of_everything_that_can_happen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Mapping[str, Any]]:
    """The events of a cluster that was asked much, by way of a node that does not rule, and was
    started with -v.
    """
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(POLICY)
    (folder / "rules.toml").write_text(RULES)
    settings = {
        "log.format": request.param,
        "topic.management.policy.class.name": f"{folder}/odd.py:Odd",
        "policy.rules.files": f"{folder}/rules.toml",
        "audit.dir": f"{folder}/audit",
        "connection.failed.authentication.delay.ms": "1",
    }
    with running_cluster(settings=settings, options=["--verbose"], traces=True) as cluster:
        make_trouble(cluster)
        for text in (*(text for _, text, _ in REQUESTS), *UNREADABLE, "a thread ended with an exception"):
            cluster.wait_for(text)  # a policy's process, for one, is heard later than its verdict
        output = cluster.output
    lines = [line for line in output.split("\n")[:-1] if not line.startswith("ready: ")]
    assert not [character for line in lines for character in line if not character.isprintable()]
    return list({"human": read_human, "json": read_json}[request.param](lines))


def make_trouble(cluster: MiniCluster) -> None:
    address = cluster.addresses[other_ids(cluster)[0]]
    with Wire(address) as wire:
        wire.ask("ApiVersions", 3, {"client_software_name": "probe", "client_software_version": "1.5"})
        for number, name in enumerate(("fine", "wide", "refused", "broken", "lasting", "no name"), start=100):
            header = RequestHeader(int(ApiKey.CREATE_TOPICS), 7, number, CLIENT)
            wire.exchange(KAFKA.encode_request(header, creating(wanted(name, 3 if name == "wide" else 1, 1))))
        forged = RequestHeader(int(ApiKey.CREATE_TOPICS), 7, 200, CLIENT, origin=RequestOrigin("User:admin\n"))
        wire.exchange(KAFKA.encode_request(forged, creating(wanted("forged", 1, 1))))
    for frame in (
        bytes.fromhex("0013 0007 0000012d 0004 61620a63 00 ffffffff"),  # CreateTopics, cut
        bytes.fromhex("7fff 0000 0000012e 0004 61620a63"),  # an API that nobody knows
        b"\xff",
    ):
        with Wire(address) as wire, pytest.raises(ConnectionEndedError):
            wire.exchange(len(frame).to_bytes(4) + frame)


def of(logged: list[Mapping[str, Any]], logger: str, text: str) -> Mapping[str, Any]:
    found = [event for event in logged if event["logger"] == logger and text in event["message"]]
    assert found, f"nothing of {text!r} in {[event['message'] for event in logged]}"
    return found[0]


REQUESTS = [
    (
        "minicontroller.policy",
        "CreateTopics of topic wide by (not authenticated) would be refused by the rule few",
        101,
    ),
    ("minicontroller.policy", "refused CreateTopics of topic refused", 102),
    ("minicontroller.policy", "failed on CreateTopics of topic broken", 103),
    ("minicontroller.policy", "The rule lasting failed on CreateTopics of topic lasting", 104),
    ("minicontroller.decision", "CreateTopics of topic fine: NONE", 100),
    ("minicontroller.decision", "CreateTopics of topic no name: INVALID_TOPIC_EXCEPTION", 105),
    ("minicontroller.answer", "forwards a request in the name of", 200),
]


@pytest.mark.parametrize(("logger", "text", "correlation"), REQUESTS, ids=[text for _, text, _ in REQUESTS])
def test_each_line_says_whose_request_it_was(
    logged: list[Mapping[str, Any]], logger: str, text: str, correlation: int
) -> None:
    """Principal, client, software and correlation id as the client sent them, also at the
    controller it was forwarded to, and the node.
    """
    event = of(logged, logger, text)
    assert event["client"] == CLIENT
    assert event["software"] == SOFTWARE
    assert int(event["correlation"]) == correlation
    assert event["principal"] in {None, "null"}
    assert (event["host"], event["api"]) == ("127.0.0.1", "CreateTopics")
    assert int(event["node"]) in {1, 2, 3}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("the bytes end too early", {"client": "ab\nc", "correlation": 301, "api": "CreateTopics"}),
        ("is not served", {"client": "ab\nc", "correlation": 302, "api": "API 32767"}),
        ("has no header", {}),
    ],
)
def test_what_cannot_be_read_is_told_as_far_as_it_can(
    logged: list[Mapping[str, Any]], text: str, about: Mapping[str, Any]
) -> None:
    """The line about a request that ends its connection has what stands in its header."""
    event = of(logged, "minicontroller.connection", text)
    assert {name: type(value)(event[name]) for name, value in about.items()} == about
    assert event["host"] == "127.0.0.1"


def test_nothing_in_a_line_is_forged(logged: list[Mapping[str, Any]]) -> None:
    """Texts of clients and policies cannot begin a log event, and other output of a policy's
    process is an event of the policy.
    """
    assert "forged" not in {event["logger"] for event in logged}
    assert {event["logger"].partition(".")[0] for event in logged} <= {"minicontroller", "py", "asyncio", "kazoo"}
    assert of(logged, "minicontroller.policy", "a thread ended with an exception")["level"] == "ERROR"


@given(
    st.text(),
    st.dictionaries(st.sampled_from(["principal", "client", "software", "host"]), st.text()),
    st.integers(-(2**31), 2**31 - 1),
)
def test_every_event_can_be_read_again(message: str, said: Mapping[str, str], correlation: int) -> None:
    """Whatever a message and the texts about its request hold, each form gives one event with
    exactly these texts.
    """
    record = logging.LogRecord("minicontroller.x", logging.INFO, __file__, 1, "%s", (message,), None)
    about = {**said, "correlation": str(correlation)}
    setattr(record, ABOUT, about)
    token = NODE.set(1)
    try:
        (human,) = read_human(HumanFormatter().format(record).split("\n"))
        (machine,) = read_json(JsonFormatter().format(record).split("\n"))
    finally:
        NODE.reset(token)
    assert {name: value for name, value in human.items() if name in about} == about
    assert {name: value for name, value in machine.items() if name in about} == about
    assert machine["message"] == message
