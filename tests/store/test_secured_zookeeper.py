"""The store on a real ZooKeeper over TLS, and with logins by SASL."""

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import NoAuthError  # type: ignore[import-untyped]

from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.security.zookeeper_access import protected, zookeeper_access
from minicontroller.store.base import AccessDenied, Create, SessionState, SetData
from minicontroller.store.zookeeper import ZooKeeperStore
from tests.store.worlds import PATIENCE_SECONDS, end_session, reaches
from tests.support.certificates import Authority
from tests.support.nodes import NodeProcess, Nodes
from tests.support.proxy import Proxy
from tests.support.secured_zookeeper import OTHER_PASSWORD, OTHER_USER, PASSWORD, USER, SecuredZooKeeper
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"


@pytest.fixture(name="client", scope="module")
def client_fixture(secured: SecuredZooKeeper) -> Path:
    """A key store that the server trusts."""
    return secured.authority.issue("client", "node")


def jaas(user: str, password: str) -> str:
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'{MODULE} username="{user}" password="{escaped}";'


def over_tls(server: SecuredZooKeeper, keystore: Path | None = None, **settings: str) -> dict[str, str]:
    """The configuration of a node that speaks TLS with this server."""
    found = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.truststore.location": str(server.authority.file),
    }
    if keystore is not None:
        found["zookeeper.ssl.keystore.location"] = str(keystore)
    return found | {f"zookeeper.ssl.{key.replace('_', '.')}": value for key, value in settings.items()}


def store_at(connect: str, settings: dict[str, str]) -> ZooKeeperStore:
    access = zookeeper_access(config_from_mapping({"broker.id": "1", **settings}))
    return ZooKeeperStore(connect, access=access.access, tls=access.tls, login=access.login)


@pytest.fixture(name="messages")
def messages_fixture(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Collect the messages that the program logs."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler = Keep()
    logging.getLogger("minicontroller").addHandler(handler)
    yield found
    logging.getLogger("minicontroller").removeHandler(handler)


async def first_message(store: ZooKeeperStore, messages: list[str]) -> str:
    """Return the first message of a store that cannot connect."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.__aenter__)
        with trio.fail_after(PATIENCE_SECONDS):
            await trio.to_thread.run_sync(until, lambda: messages)
        nursery.cancel_scope.cancel()
    return messages[0]


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.3,TLSv1.2"])
async def test_large_commits_and_answers_pass_through_tls(
    secured: SecuredZooKeeper, client: Path, chroot: str, versions: str
) -> None:
    """Requests and answers of many records arrive whole, however many are under way."""
    async with store_at(
        secured.secure_connect + chroot, over_tls(secured, client, enabled_protocols=versions)
    ) as store:
        large = bytes(range(256)) * 2000
        commits = [store.commit([Create(f"/{number}", large)]) for number in range(4)]
        for commit in commits:
            await commit
        assert [entry and entry.data for entry in await store.get_many([f"/{n}" for n in range(4)])] == [large] * 4
        commits = [store.commit([SetData("/0", str(number).encode(), number)]) for number in range(500)]
        for commit in commits:
            await commit
        entry = await store.get("/0")
        assert entry is not None and entry.data == b"499"


async def test_a_session_survives_a_lost_connection_over_tls_and_sasl(
    secured: SecuredZooKeeper, client: Path, chroot: str
) -> None:
    """A session logs in again on its next connection, and a new session does after its end."""
    with Proxy(secured.secure_port) as proxy:
        settings = over_tls(secured, client) | {
            "zookeeper.sasl.client.jaas.config": jaas(USER, PASSWORD),
            "zookeeper.set.acl": "true",
        }
        async with store_at(f"localhost:{proxy.connect.partition(':')[2]}{chroot}", settings) as store:
            await store.ensure("/config/users")
            await store.commit([Create("/config/users/a", b"x")])
            before = store.session_id
            proxy.cut()
            await reaches(store, SessionState.SUSPENDED)
            proxy.mend()
            await reaches(store, SessionState.CONNECTED)
            assert store.session_id == before
            await store.commit([SetData("/config/users/a", b"y")])
            identity = store._kazoo.identity
            assert identity is not None
            await trio.to_thread.run_sync(end_session, secured.connect, identity)
            await reaches(store, SessionState.CONNECTED, lambda: store.session_id != before)
            await store.commit([SetData("/config/users/a", b"z")])


@pytest.mark.parametrize(("user", "password"), [(USER, PASSWORD), (OTHER_USER, OTHER_PASSWORD)])
async def test_what_a_login_writes_is_its_own(secured: SecuredZooKeeper, chroot: str, user: str, password: str) -> None:
    """zookeeper.set.acl with a login: others read what holds no credentials, and change nothing."""
    settings = {"zookeeper.sasl.client.jaas.config": jaas(user, password), "zookeeper.set.acl": "true"}
    async with store_at(secured.connect + chroot, settings) as store:
        for path in ("/config/users/a", "/brokers/b"):
            await store.ensure(path)
    for other in ({}, {"zookeeper.sasl.client.jaas.config": jaas(*_another(user))}):
        async with store_at(secured.connect + chroot, other) as store:
            assert await store.children("/brokers") == ["b"]
            with pytest.raises(AccessDenied):
                await store.get("/config/users/a")
            with pytest.raises(AccessDenied):
                await store.commit([SetData("/brokers/b", b"")])


def _another(user: str) -> tuple[str, str]:
    return (OTHER_USER, OTHER_PASSWORD) if user == USER else (USER, PASSWORD)


async def test_a_certificate_is_an_identity(secured: SecuredZooKeeper, client: Path, chroot: str) -> None:
    """zookeeper.set.acl with a certificate and without a login: the certificate's name owns the
    znodes.
    """
    settings = over_tls(secured, client) | {"zookeeper.set.acl": "true"}
    async with store_at(secured.secure_connect + chroot, settings) as store:
        await store.ensure("/config/users")
    async with store_at(secured.secure_connect + chroot, settings) as store:
        assert await store.children("/config/users") == []
    async with ZooKeeperStore(secured.connect + chroot) as stranger:
        with pytest.raises(AccessDenied):
            await stranger.children("/config/users")


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong-secret"), ("nobody", "wrong-secret")])
async def test_a_wrong_password_is_told_in_one_sentence(
    secured: SecuredZooKeeper, chroot: str, messages: list[str], user: str, password: str
) -> None:
    """The server's refusal ends the start, and the sentence has no secret in it."""
    with pytest.raises(AccessDenied, match="refuses the identity of this node"):
        async with store_at(secured.connect + chroot, {"zookeeper.sasl.client.jaas.config": jaas(user, password)}):
            pass
    assert messages[0].startswith(
        f"ZooKeeper at {secured.connect} refuses this node's login: the user and the password"
    )
    assert not any(password in message for message in messages)


async def test_a_password_that_changes_is_told_once_and_may_change_back(tmp_path: Path, messages: list[str]) -> None:
    """A node whose login is refused while it runs has no session, says so once, and goes on when
    the server takes its password again.
    """
    with SecuredZooKeeper(tmp_path) as server:
        settings = {"zookeeper.sasl.client.jaas.config": jaas(USER, PASSWORD)}
        states: list[SessionState] = []
        async with store_at(f"{server.connect}/kafka", settings) as store:
            store.on_session(states.append)
            accepted = server.jaas.read_text()
            server.kill()
            server.jaas.write_text(accepted.replace("secret", "another"))
            server.start()
            await reaches(store, SessionState.EXPIRED)
            for _ in range(2):  # further attempts, each by another session
                attempt = store._kazoo
                await trio.to_thread.run_sync(until, lambda attempt=attempt: store._kazoo is not attempt)
            assert SessionState.CONNECTED not in states
            server.kill()
            server.jaas.write_text(accepted)
            server.start()
            await reaches(store, SessionState.CONNECTED)
            assert await store.children("/") == []
    assert sum("refuses this node's login" in message for message in messages) == 1
    assert sum("has ended: opening a new one" in message for message in messages) == 1


async def test_a_server_without_logins_is_not_used_without_one(zookeeper: ZooKeeperServer, messages: list[str]) -> None:
    """A node that has to log in does not go on as nobody where the server offers no login."""
    with pytest.raises(AccessDenied):
        async with store_at(zookeeper.connect, {"zookeeper.sasl.client.jaas.config": jaas(USER, PASSWORD)}):
            pass
    assert "offers no SASL login" in messages[0]


async def test_a_foreign_server_is_not_trusted(
    secured: SecuredZooKeeper, client: Path, tmp_path: Path, messages: list[str]
) -> None:
    """A certificate of another authority ends the attempt before the session begins."""
    settings = over_tls(secured, client, truststore_location=str(Authority(tmp_path, "other").file))
    message = await first_message(store_at(secured.secure_connect, settings), messages)
    assert "the server's certificate is not trusted: " in message
    assert "zookeeper.ssl.truststore.location" in message


async def test_another_hosts_certificate_is_refused_unless_names_are_not_checked(
    secured: SecuredZooKeeper, client: Path, chroot: str, messages: list[str]
) -> None:
    """The certificate names the server as zookeeper.connect does, unless the algorithm is empty."""
    elsewhere = f"127.0.0.1:{secured.secure_port}"
    message = await first_message(store_at(elsewhere, over_tls(secured, client)), messages)
    assert "the server's certificate is another host's" in message
    settings = over_tls(secured, client, endpoint_identification_algorithm="")
    async with store_at(elsewhere + chroot, settings) as store:
        assert await store.children("/") == []


async def test_a_node_without_a_certificate_is_told_what_is_missing(
    secured: SecuredZooKeeper, messages: list[str]
) -> None:
    """The server wants certificates: the sentence names the key to set."""
    message = await first_message(store_at(secured.secure_connect, over_tls(secured)), messages)
    assert "zookeeper.ssl.keystore.location names ours" in message


async def test_a_port_without_tls_is_told(secured: SecuredZooKeeper, client: Path, messages: list[str]) -> None:
    """TLS is never left out because the server does not speak it."""
    message = await first_message(store_at(secured.connect, over_tls(secured, client)), messages)
    assert "cannot be reached" in message


def test_kafkas_versions_hold_by_default(secured: SecuredZooKeeper) -> None:
    """As in Kafka, zookeeper.ssl.protocol alone means this version and no other."""
    access = zookeeper_access(config_from_mapping({"broker.id": "1", **over_tls(secured)}))
    assert access.tls is not None and access.access is not protected
    assert (access.tls.minimum_version, access.tls.maximum_version) == (ssl.TLSVersion.TLSv1_2,) * 2
    assert access.tls.check_hostname


def test_nodes_share_a_protected_tree(secured: SecuredZooKeeper, client: Path, chroot: str, tmp_path: Path) -> None:
    """Nodes of one identity, one over TLS and one without, make a cluster, and nobody else may
    write or read its secrets; a node that ZooKeeper refuses ends with a sentence.
    """
    identity = {
        "zookeeper.sasl.client.jaas.config": jaas(USER, PASSWORD).replace("\\", "\\\\"),
        "zookeeper.set.acl": "true",
    }
    connects = [secured.secure_connect + chroot, secured.connect + chroot]
    settings = [identity | over_tls(secured, client), identity]
    nodes = Nodes.of(
        NodeProcess(tmp_path, number, connect, each)
        for number, (connect, each) in enumerate(zip(connects, settings, strict=True), 1)
    )
    wrong = NodeProcess(
        tmp_path,
        3,
        connects[1],
        {"zookeeper.sasl.client.jaas.config": f'{MODULE} username="{USER}" password="planted";'},
    )
    try:
        nodes.start()
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 2, "assignments": [], "configs": []}
        with nodes[2].wire() as wire:
            body = {"topics": [topic], "timeout_ms": 20_000, "validate_only": False}
            assert wire.ask("CreateTopics", 4, body)["topics"][0]["error_code"] == 0
        wrong.start()
        assert wrong.wait_end() == 1
    finally:
        nodes.kill()
        wrong.kill()
    assert "zookeeper.connect: ZooKeeper refuses the identity of this node" in wrong.output
    assert "planted" not in wrong.output and "Traceback" not in wrong.output
    raw = KazooClient(secured.connect + chroot)
    raw.start()
    lists = {path: access_list(raw, path) for path in OWNED}
    raw.stop()
    raw.close()
    assert lists == OWNED


def access_list(raw: KazooClient, path: str) -> set[tuple[int, str]] | None:
    """A znode's permissions by scheme; None if a stranger may not read them."""
    try:
        lists = {(each.perms, each.id.scheme) for each in raw.get_acls(path)[0]}
    except NoAuthError:
        return None
    return lists - {(31, "x509")}  # the second identity of the node that has a certificate


OWNED = {
    "/brokers/topics/t": {(31, "sasl"), (1, "world")},
    "/brokers/topics/t/partitions/0/state": {(31, "sasl"), (1, "world")},
    "/config/topics/t": {(31, "sasl"), (1, "world")},
    "/config/users": None,
    "/minicontroller/membership": None,
    "/consumers": {(31, "world")},
}
