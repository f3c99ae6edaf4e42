"""Everything wrong that one can type, and every wrong place that one can ask: a sentence each, with
the code that fits.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import call, complaint

NODE = "broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\n"


@contextmanager
def somebody(answer: bytes | None) -> Iterator[str]:
    """Who takes connections and answers whatever comes with these bytes and the end; None: with
    silence.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                taken.append(connection)
                if answer is not None:
                    connection.recv(4096)
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in taken:
            connection.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "does not answer within 0.5 seconds."),
        (b"", "did not answer: the connection was closed; if the listener has TLS, "),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP arrived instead of Kafka's protocol"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "TLS arrived on a connection without TLS"),
        (b"\x00\x00\x00\x00", "a frame of 0 bytes is announced"),
        (b"\x00\xff\xff\xffshort", "the connection was closed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH arrived instead of Kafka's protocol"),
    ],
    ids=["silence", "end", "HTTP", "TLS", "no frame", "half a frame", "SSH"],
)
def test_whoever_is_no_kafka_is_told(tmp_path: Path, answer: bytes | None, said: str) -> None:
    """A server that is no Kafka node is reported with what is wrong with it: code 3 for a client, 1
    for `ping`.
    """
    within = ("--timeout", "0.5" if answer is None else "60")
    with somebody(answer) as address:
        told = complaint("topics", "list", "--bootstrap-server", address, *within, folder=tmp_path, code=3)
        assert address in told
        assert said in told
        assert said in complaint("ping", address, *within, folder=tmp_path)


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    """The system's words, without its numbers; whoever named no node learns how to."""
    told = complaint("topics", "list", "--bootstrap-server", "127.0.0.1:1", folder=tmp_path, code=3)
    assert told == "Cannot reach 127.0.0.1:1: Connection refused."
    assert complaint("ping", "127.0.0.1:1", folder=tmp_path) == told
    told = complaint("topics", "list", "--bootstrap-server", "no-such-host.invalid:1", folder=tmp_path, code=3)
    assert told.startswith("Cannot reach no-such-host.invalid:1: ")
    assert "Errno" not in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "list", "--timeout", "nan"), "'nan' is not a number of seconds"),
        (("topics", "list", "--timeout", "inf"), "is not in the range"),
        (("topics", "create", "a", "--timeout", "1e12"), "is not in the range"),
        (("ping", "127.0.0.1:1", "--timeout", "nan"), "'nan' is not a number of seconds"),
        (("topics", "list", "--bootstrap-server", ""), "bootstrap.servers is empty"),
        (("topics", "list", "--bootstrap-server", "http://localhost:9092"), "is not HOST:PORT"),
        (("topics", "create", "a", "--partitions", "2147483648"), "is not in the range 1<=x<=2147483647"),
        (("topics", "create", "a", "--replication-factor", "32768"), "is not in the range 1<=x<=32767"),
        (("topics", "create", "a", "--assignment", "-1:2"), "is not of the form 1:2,2:3"),
        (("topics", "create", "a", "--assignment", "2147483648"), "is not of the form 1:2,2:3"),
        (("topics", "create", "\udcff"), r"\udcff is not text in UTF-8"),
        (("configs", "set", "--topic", "a", "b=\udcff"), r"b=\udcff is not text in UTF-8"),
        (("configs", "get", "--broker", "2147483648"), "is not in the range"),
        (("topic", "list"), "Did you mean 'topics'?"),
        (("topics", "creat", "a"), "Did you mean 'create'?"),
        (("topics", "create", "a", "--partition", "3"), "Did you mean '--partitions'?"),
        (("topics", "list", "--command-config", "."), "is a directory"),
        (("topics", "list", "--command-config", "none"), "does not exist"),
        (("topics", "list", "--command-config", "no.text"), "Cannot read no.text: it is not text in UTF-8."),
        (("policy", "test", "."), "There is no *.cases.toml with a case in the folder"),
        (("",), "No such command ''"),
    ],
)
def test_a_wrong_call_is_code_2(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """A wrong call is reported before any node is asked."""
    (tmp_path / "no.text").write_bytes(b"\xff\xfe")
    assert said in complaint(*arguments, folder=tmp_path, code=2)


@pytest.mark.parametrize(
    ("connect", "said"),
    [
        ("127.0.0.1:1/no//name", "the chroot has an empty name in it"),
        ("127.0.0.1:1/a/../b", "no path of ZooKeeper has the name '..' in it"),
        ("127.0.0.1:1/./b", "no path of ZooKeeper has the name '.' in it"),
        ("127.0.0.1:1/a\x7fb", "no path of ZooKeeper has the name 'a\\x7fb' in it"),
        ("a b:2181", "a host is empty, or has a space in it"),
        ("127.0.0.1:1,,127.0.0.1:2", "a host is empty, or has a space in it"),
    ],
)
def test_a_zookeeper_that_can_never_be_reached_is_refused(tmp_path: Path, connect: str, said: str) -> None:
    """Neither `serve` nor `up` tries for ever what cannot be."""
    (tmp_path / "node.properties").write_text(NODE)
    told = complaint("serve", "--config", "node.properties", "--set", f"zookeeper.connect={connect}", folder=tmp_path)
    assert said in told
    assert told == complaint("up", "--port", "0", "--store", f"zookeeper://{connect}", folder=tmp_path)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "listeners=SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "Listener SSL: ssl.keystore.location is missing",
        ),
        (
            "listeners=SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0 sasl.enabled.mechanisms=GSSAPI",
            "GSSAPI is not offered by this version",
        ),
        ("topic.management.policy.class.name=nope:Nope", "nope"),
        ("policy.rules.files=none.toml", "none.toml"),
        ("audit.dir=node.properties/audit", "audit.dir=node.properties/audit cannot be written: Not a directory."),
        ("listeners=PLAINTEXT://192.0.2.1:9092", "Listener PLAINTEXT cannot listen on 192.0.2.1, port 9092: "),
        (
            f"broker.rack={'r' * 50_000}",
            "broker.rack and advertised.listeners make this node's registration unreadable",
        ),
        ("http.listen=192.0.2.1:80", "http.listen cannot listen on 192.0.2.1:80: "),
        ("zookeeper.session.timeout.ms=0", "zookeeper.session.timeout.ms"),
    ],
)
def test_a_mistake_is_told_while_zookeeper_is_away(tmp_path: Path, setting: str, said: str) -> None:
    """Mistakes that can be found without ZooKeeper are reported while it is down."""
    (tmp_path / "node.properties").write_text(NODE + "zookeeper.connect=127.0.0.1:1\n")
    settings = [argument for each in setting.split(" ") for argument in ("--set", each)]
    assert said in complaint("serve", "--config", "node.properties", *settings, folder=tmp_path)


def test_a_port_that_is_taken_is_told_while_zookeeper_is_away(tmp_path: Path) -> None:
    """A node does not wait for ZooKeeper with nothing to listen on."""
    with somebody(None) as address:
        port = address.rpartition(":")[2]
        (tmp_path / "node.properties").write_text(
            f"broker.id=1\nlisteners=PLAINTEXT://{address}\nzookeeper.connect=127.0.0.1:1\n"
        )
        told = complaint("serve", "--config", "node.properties", folder=tmp_path)
    assert told == f"Listener PLAINTEXT cannot listen on 127.0.0.1, port {port}: Address already in use."


def test_spaces_behind_commas_are_no_mistake(tmp_path: Path) -> None:
    """Kafka's own configuration allows them: the two servers are tried."""
    (tmp_path / "node.properties").write_text(NODE + "zookeeper.connect=127.0.0.1:1, 127.0.0.1:2\nbroker.id=x\n")
    assert "zookeeper" not in call("serve", "--config", "node.properties", folder=tmp_path).stderr
