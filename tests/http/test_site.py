"""The HTTP port as people and machines meet it: health, lists, headers, and what it withstands."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from tests.support.cluster import MiniCluster, running_cluster
from tests.support.http import address_of, ask, create
from tests.support.waiting import until


@contextmanager
def connected(cluster: MiniCluster, data: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(address_of(cluster), timeout=30) as connection:
        with suppress(OSError):
            connection.sendall(data)
        yield connection


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    data = b""
    while wanted not in data:
        more = connection.recv(65536)
        assert more, f"it ended after {data!r}"
        data += more
    return data


def test_health_tells_why(cluster: MiniCluster) -> None:
    """Live and ready answer 200 where every node serves, is registered and knows the controller;
    the body names each node.
    """
    assert ask(cluster, "/health/live").json == {"live": True}
    ready = ask(cluster, "/health/ready")
    nodes: list[dict[str, object]] = [{"node": number, "ready": True, "reasons": []} for number in (1, 2, 3)]
    assert (ready.status, ready.json) == (200, {"ready": True, "reasons": [], "nodes": nodes})


def test_topics_are_paged_and_searched(cluster: MiniCluster) -> None:
    """A page holds at most a hundred rows, sorted; a search ignores case; an offset beyond the end
    is the last page.
    """
    assert set(create(cluster, *(f"team-Page-{number:03}" for number in range(230)))) == {0}
    page = until(lambda: ask(cluster, "/api/topics?search=PAGE-").json, right=lambda page: page["total"] == 230)
    assert (page["total"], page["offset"], len(page["rows"])) == (230, 0, 100)
    assert [row["name"] for row in page["rows"][:2]] == ["team-Page-000", "team-Page-001"]
    last = ask(cluster, "/api/topics?search=page-&offset=99999").json
    assert (last["offset"], len(last["rows"])) == (200, 30)
    assert ask(cluster, "/api/topics?search=page-&offset=-1x").json["offset"] == 0
    assert ask(cluster, "/api/topics?search=nowhere").json["rows"] == []
    assert len(ask(cluster, "/api/topics?search=page-&limit=20").json["rows"]) == 20
    assert len(ask(cluster, "/api/topics?search=page-&limit=99999").json["rows"]) == 100


def test_a_topic_is_told(cluster: MiniCluster) -> None:
    """A topic's partitions come in pages with its configs; an unknown topic is reported as such."""
    assert create(cluster, "team-told", partitions=150) == [0]
    topic = ask(cluster, "/api/topic?name=team-told&offset=100").json
    assert (topic["there"], topic["partitions"], topic["offset"], len(topic["rows"])) == (True, 150, 100, 50)
    assert topic["configs"] == {}
    assert not ask(cluster, "/api/topic?name=never").json["there"]


def test_decisions_are_a_ring(cluster: MiniCluster) -> None:
    """The last 200 are kept, numbered without a gap, however many one request brings."""
    create(cluster, *(f"refused-{number}" for number in range(250)))
    decisions = ask(cluster, "/api/decisions").json
    numbers = [each["number"] for each in decisions]
    assert len(numbers) == 200
    assert numbers == list(range(numbers[0], numbers[0] + 200))
    assert decisions[-1]["name"] == "refused-249"
    assert decisions[-1]["client"] == "wire"


def test_events_tell_what_happens(cluster: MiniCluster) -> None:
    """A listener is sent the state, the latest decisions, and those made while it listens."""
    create(cluster, "team-before")
    with connected(cluster, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") as listener:
        first = read_until(listener, b"event: decisions")
        assert b"text/event-stream" in first
        assert b'"controller":' in first
        create(cluster, "team-heard")
        assert b"team-heard" in read_until(listener, b"team-heard")


def test_a_head_has_no_body(cluster: MiniCluster) -> None:
    """Also where the body never ends."""
    for path, kind in (("/", "text/html"), ("/metrics", "text/plain"), ("/events", "text/event-stream")):
        answer = ask(cluster, path, method="HEAD")
        assert (answer.status, answer.text) == (200, "")
        assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/events", "/api/topic?name=x"])
def test_nothing_can_be_changed(cluster: MiniCluster, method: str, path: str) -> None:
    """Only GET and HEAD are answered."""
    answer = ask(cluster, path, method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_browser_is_told_to_trust_nothing(cluster: MiniCluster) -> None:
    """Every answer forbids foreign and inline scripts, frames, content sniffing and caching."""
    for path in ("/", "/metrics", "/nowhere", "/health/ready", "/api/topics"):
        headers = ask(cluster, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("localhost:8080", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200), ("LOCALHOST.", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("10.0.0.1", 421), ("", 421),
    ],
)  # fmt: skip
def test_other_peoples_pages_cannot_ask(cluster: MiniCluster, host: str, status: int) -> None:
    """At a loopback address, requests with another host name are refused, which prevents DNS
    rebinding.
    """
    assert ask(cluster, "/api/state", headers={"Host": host}).status == status


NONE, TOPIC_ALREADY_EXISTS = 0, 36
HOSTILE = [
    b"\x00\x01\x02\x03" * 100,
    b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 100_000,
    b"GET " + b"/" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/topic?name=%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/topics?offset=9999999999999999999&search=%0d%0a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/history?name=%ff&older="
    + b"9" * 9_000
    + b"&until="
    + b"9" * 5_000
    + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/deleted?older=../../..:1&search=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 200_000,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000,
    (
        b"GET /events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ),
    b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_http_harms_nobody(cluster: MiniCluster, data: bytes) -> None:
    """After any malformed HTTP the next request is answered, the cluster creates topics, and the
    log has no traceback.
    """
    with connected(cluster, data) as connection:
        connection.settimeout(1)
        with suppress(OSError):
            connection.recv(65536)
    health = ask(cluster, "/health/ready")
    assert health.json["ready"], health.text
    until(lambda: create(cluster, "team-unharmed")[0], right=lambda code: code in {NONE, TOPIC_ALREADY_EXISTS})
    assert "Traceback" not in cluster.output


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"\x16\3\1\2\0\1\0\1\xfc", "TLS"),
        (b"\0\0\0\x1a\0\x12\0\3", "Kafka's protocol"),
        (b"PROXY TCP4 ", "a PROXY header"),
        (b"\r\n\r\n\0\r\nQUIT\n", "a PROXY header"),
    ],
)
def test_another_protocol_is_named(cluster: MiniCluster, data: bytes, named: str) -> None:
    """What is not HTTP ends its connection, and the log says what it is."""
    with connected(cluster, data[:1]) as connection:
        for number in range(1, len(data)):
            with suppress(OSError):
                connection.sendall(data[number : number + 1])
        with suppress(OSError):
            assert connection.recv(65536) == b""
    until(lambda: f"closing a connection at the HTTP port: {named}" in cluster.output)


def test_connections_are_bounded(cluster: MiniCluster) -> None:
    """The number of HTTP connections is bounded, and hundreds of idle ones keep no client out."""
    idle = [socket.create_connection(address_of(cluster), timeout=30) for _ in range(300)]
    try:
        assert ask(cluster, "/health/live").status == 200
        scrape = ask(cluster, "/metrics").text
    finally:
        for connection in idle:
            connection.close()
    open_now = next(line for line in scrape.splitlines() if line.startswith("minicontroller_http_connections "))
    assert float(open_now.split()[1]) <= 100


def test_listeners_are_bounded(cluster: MiniCluster) -> None:
    """At most 32 pages receive live updates; the next one is told to try again, and health checks
    still answer.
    """
    listening: list[socket.socket] = []
    try:
        for _ in range(32):
            listener = socket.create_connection(address_of(cluster), timeout=30)
            listening.append(listener)
            listener.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            read_until(listener, b"event: state")
        with connected(cluster, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") as refused:
            assert b" 503 " in read_until(refused, b"Too many")
        assert ask(cluster, "/health/live").status == 200
    finally:
        for listener in listening:
            listener.close()
    until(partial(listeners, cluster), right=lambda count: count == 0)


def listeners(cluster: MiniCluster) -> float:
    scrape = ask(cluster, "/metrics").text
    line = next(each for each in scrape.splitlines() if each.startswith("minicontroller_http_event_listeners "))
    return float(line.split()[1])


def test_a_client_that_reads_nothing_does_not_keep_it_from_stopping() -> None:
    """Ctrl-C ends the process in seconds, beside a client that has not taken what
    they were sent.
    """
    cluster = MiniCluster(brokers=1)
    cluster.start()
    try:
        create(cluster, *(f"t-{number}" for number in range(100)))
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        stuck.connect(address_of(cluster))
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        stuck.sendall(request * 500)
        assert ask(cluster, "/health/live").status == 200
    finally:
        cluster.stop()
    stuck.close()


def test_it_can_be_off() -> None:
    """With an empty http.listen nothing listens, and the ready line says nothing of it."""
    with running_cluster(brokers=1, settings={"http.listen": ""}) as cluster:
        assert cluster.http == ""
        assert " http=" not in cluster.output


def test_state_is_the_same_for_everyone(cluster: MiniCluster) -> None:
    """The state that is polled is the one that is sent: nodes, controller, figures."""
    state = json.loads(ask(cluster, "/api/state").text)
    until(lambda: json.loads(ask(cluster, "/api/state").text)["topics"] == ask(cluster, "/api/topics").json["total"])
    assert [node["id"] for node in state["nodes"]] == [1, 2, 3]
    assert state["controller_here"]
