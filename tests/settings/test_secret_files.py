"""Files with secrets that every user of the machine can read."""

from pathlib import Path

from minicontroller.client.configuration import Address
from minicontroller.gateway.configuration import _open_key_stores, load_gateway_config
from minicontroller.gateway.written_keys import WrittenKeys
from minicontroller.policies.configs.values import KeyType
from minicontroller.process.settings.keys import KEYS
from minicontroller.process.settings.loading import config_from_mapping, written_settings
from minicontroller.process.settings.secret_files import warnings_of_configuration

MODES = {0o644: True, 0o604: True, 0o640: False, 0o600: False}
PLANTED = "planted-secret-of-a-test"
HERE = Address("127.0.0.1", 0)
JAAS = f'Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username=u password="{PLANTED}"; }};'


def file_of(folder: Path, mode: int, text: str = PLANTED) -> Path:
    file = folder / f"{mode:o}"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_what_a_node_names_is_a_warning_if_everybody_can_read_it(tmp_path: Path) -> None:
    """Key stores of listeners, of ZooKeeper and of the HTTP port, tokens and JAAS files; what its
    owner or group alone can read is fine, and so is what has no secret.
    """
    keys = (
        "ssl.keystore.location",
        "listener.name.plaintext.ssl.keystore.location",
        "http.ssl.keystore.location",
        "http.bearer.token.file",
        "java.security.auth.login.config",
    )
    for mode, is_open in MODES.items():
        file = file_of(tmp_path, mode, JAAS)
        for key in keys:
            warnings = config_from_mapping({key: str(file), "http.listen": "127.0.0.1:0"}).warnings
            told = [
                f"configuration, {key}: {key}: {file} has secrets, and every user of this machine can read it: chmod o-r {file}"
            ]
            assert list(warnings) == (told if is_open else [])
        tls = {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.keystore.location": str(file)}
        assert bool(config_from_mapping(tls).warnings) is is_open
    assert config_from_mapping({"ssl.truststore.location": str(file_of(tmp_path, 0o644))}).warnings == ()
    assert config_from_mapping({"ssl.keystore.location": str(tmp_path)}).warnings == ()


def test_every_secret_of_a_file_of_settings_is_one(tmp_path: Path) -> None:
    """A password counts as a secret by its name, but certificates do not, which are no secrets."""
    file = str(file_of(tmp_path, 0o644))
    passwords = [name for name, key in KEYS.items() if key.type is KeyType.PASSWORD and "certificate" not in name]
    assert [name for name in passwords if not warnings_of_configuration(f"{name}={PLANTED}", file)] == []


def test_a_file_of_settings_may_have_passwords(tmp_path: Path) -> None:
    """The file of `--config` is looked at, too, at nodes and at gateways, if it has secrets."""
    secret, harmless = f"ssl.key.password={PLANTED}\n", "log.format=json\n"
    for mode, is_open in MODES.items():
        file = file_of(tmp_path, mode)
        for text, is_told in ((secret, is_open), (harmless, False), ("a=\\u", False)):
            told = warnings_of_configuration(text, str(file))
            assert bool(told) is is_told and PLANTED not in str(told)
        written = written_settings(f"upstream.ssl.keystore.location={file}", "f", ())
        assert len(list(_open_key_stores(WrittenKeys(written)))) == is_open
        config = load_gateway_config(f"http.bearer.token={PLANTED}", str(file), (), upstream="h:1", listen=HERE)
        assert len(config.warnings) == is_open
    assert warnings_of_configuration(secret, "the environment") == []
