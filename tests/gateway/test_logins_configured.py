"""The logins of a gateway's clients are configured right, or a sentence says where they are not,
and no sentence and no repr has a secret.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.gateway.apis import APIS
from minicontroller.gateway.identity.controllers import envelope
from minicontroller.gateway.identity.settings import Mode
from minicontroller.gateway.identity.user_files import ScramUsers, UpstreamUsers
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.credentials import PlainCredentials, ScramCredentials
from minicontroller.security.principal import principal_from_envelope
from tests.gateway.test_configuration import loaded

SECRET = "planted-secret"
LOGIN = "org.apache.kafka.common.security"
UPSTREAM = "upstream.security.protocol=SASL_PLAINTEXT\nupstream.sasl.mechanism=PLAIN\n"
UPSTREAM += f'upstream.sasl.jaas.config={LOGIN}.plain.PlainLoginModule required username="g" password="{SECRET}";\n'
OWN = "security.protocol=SASL_PLAINTEXT\nsasl.enabled.mechanisms=PLAIN\nidentity.credentials.file=users\n"
ENVELOPE = f"identity=envelope\nupstream.controllers=c-1:9093,c-2:9093\n{OWN}{UPSTREAM}"
USERS = f"""alice={LOGIN}.plain.PlainLoginModule required username="a" password="{SECRET}";
CN\\=bob,\\ O\\=x={LOGIN}.scram.ScramLoginModule required username="b" password="{SECRET}";
"""


def test_who_authenticates_clients() -> None:
    """By default logins pass; the other modes have a login of their own, and controllers by keys
    that hold for brokers, too, unless they have their own.
    """
    assert loaded().identity.mode is Mode.PASS
    assert loaded(f"identity=map\n{OWN}{UPSTREAM}").identity.credentials_file == Path("users")
    controllers = loaded(f"{ENVELOPE}upstream.controller.client.id=c\n").identity.controllers
    assert controllers is not None
    assert [str(each) for each in controllers.bootstrap_servers] == ["c-1:9093", "c-2:9093"]
    assert (controllers.client_id, controllers.credentials) == ("c", PlainCredentials("g", SECRET))
    by_certificate = "identity=envelope\nupstream.controllers=c:1\nsecurity.protocol=SSL\nssl.client.auth=required\n"
    assert loaded(by_certificate).identity.credentials_file is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("identity=guess", "identity must be one of pass, envelope, map"),
        ("identity.credentials.file=users", "without effect with identity=pass"),
        ("sasl.enabled.mechanisms=PLAIN", "without effect with identity=pass"),
        ("upstream.controllers=c:1", "without effect with identity=pass"),
        (f"identity=map\nupstream.controller.client.id=c\n{OWN}{UPSTREAM}", "without effect with identity=map"),
        (f"identity=map\n{OWN}", "identity=map needs a login at the brokers"),
        (f"identity=map\nsecurity.protocol=SSL\n{UPSTREAM}", "no client could authenticate"),
        (f"identity=envelope\n{OWN}{UPSTREAM}", "upstream.controllers is missing"),
        (f"identity=envelope\nupstream.controllers=c\n{OWN}{UPSTREAM}", "is not HOST:PORT"),
        (ENVELOPE.replace("identity.credentials.file=users", ""), "identity.credentials.file is missing"),
        (ENVELOPE.replace(UPSTREAM, ""), "without effect: the brokers ask for no login"),
        (ENVELOPE.replace("=PLAIN\nid", "=SCRAM-SHA-512\nid"), "identity.scram.file is missing"),
        (f"{ENVELOPE}identity.scram.file=x\n", "names no SCRAM"),
        ("security.protocol=SASL_SSL", "The gateway relays logins to the broker"),
        ("identity.credential.file=x", "Do you mean identity.credentials.file"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    """A key that would be without effect, and one that is missing, is told without any value."""
    with pytest.raises(ConfigurationError) as fault:
        loaded(text)
    assert said in str(fault.value)
    assert SECRET not in str(fault.value)


def test_the_credentials_of_users(tmp_path: Path) -> None:
    """A line is a login module; the line of anybody holds for whoever has none."""
    file = tmp_path / "users"
    file.write_text(USERS)
    users = UpstreamUsers(file, "SCRAM-SHA-256")
    assert users.of("alice") == PlainCredentials("a", SECRET)
    assert users.of("CN=bob, O=x") == ScramCredentials("b", SECRET, "SCRAM-SHA-256")
    assert users.of("carol") is None
    assert SECRET not in repr(users.of("alice"))
    file.write_text(f"{USERS}*={LOGIN}.plain.PlainLoginModule required username=any password=x;\n")
    assert UpstreamUsers(file, "SCRAM-SHA-256").of("carol") == PlainCredentials("any", "x")


@given(st.text(max_size=80) | st.text("=\"\\'; required\nausernmpwd", max_size=60))
def test_any_file_of_users(text: str) -> None:
    """Any text is read, or a sentence names the file and, for a mistake in a line, the line."""
    with tempfile.NamedTemporaryFile("w", suffix="users", encoding="utf-8", errors="replace") as file:
        file.write(f"{text}\nmallory={SECRET}")
        file.flush()
        with pytest.raises(ConfigurationError, match=r"users, line [0-9]"):
            UpstreamUsers(Path(file.name), "SCRAM-SHA-256")


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there, or is no text, is told at the start."""
    for name, data in (("missing", None), ("bytes", b"\xff\xfe=\0"), ("empty", b"alice=\n")):
        file = tmp_path / name
        if data is not None:
            file.write_bytes(data)
        with pytest.raises(ConfigurationError, match=name):
            ScramUsers(file)


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_file_that_everybody_can_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warns: bool
) -> None:
    """A warning names the file, and nothing of what is in it."""
    file = tmp_path / "scram.properties"
    file.write_text(f"alice={SECRET}\n")
    file.chmod(mode)
    ScramUsers(file)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warns
    assert (str(file) in caplog.text) is warns and SECRET not in caplog.text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200), st.ip_addresses())
def test_the_principal_in_an_envelope(name: str, host: object) -> None:
    """The principal is written as brokers write it, and the address in its bytes."""
    message = envelope(b"request", f"User:{name}", str(host))
    assert message.request_principal is not None
    assert principal_from_envelope(message.request_principal) == (
        None if name == "ANONYMOUS" else f"User:{name}",
        False,
    )
    assert len(message.client_host_address) in (4, 16)


def test_what_is_forwarded_can_be_refused() -> None:
    """The gateway reads the versions that pass of each API that goes to the controller, of all but
    those whose failure it cannot tell.
    """
    forwarded = {key for key, api in APIS.items() if api.is_forwarded}
    unread = {key for key in forwarded if key not in KAFKA}
    assert unread == {ApiKey.DESCRIBE_QUORUM, ApiKey.UNREGISTER_BROKER}
    for key in forwarded - unread:
        assert KAFKA[key].max_version >= APIS[key].newest, key
