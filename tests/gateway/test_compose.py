"""The compose file with Kafka's own image and a gateway, held to the program."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from minicontroller.cli.commands import commands
from minicontroller.client.configuration import Address
from minicontroller.gateway.configuration import GatewayConfig, load_gateway_config
from tests.support.kafka_kraft import KAFKAS

DOCKER = Path(__file__).parents[2] / "docker"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DOCKER / "gateway.yaml").read_text())["services"]
KAFKA, GATEWAY = SERVICES["kafka"], SERVICES["gateway"]
KAFKA_ID = KAFKA["environment"]["KAFKA_NODE_ID"]
FOLDER = "/etc/minicontroller"
"""The folder in which the image runs commands."""


def parse(arguments: list[str]) -> dict[str, Any]:
    """The parameters as the command itself takes them."""
    with click.Context(commands) as context:
        name, command, rest = commands.resolve_command(context, arguments)
    assert command is not None
    return command.make_context(name, rest).params


@pytest.fixture(name="config")
def config_fixture(monkeypatch: pytest.MonkeyPatch) -> GatewayConfig:
    """The gateway's configuration as its container makes it."""
    source, place, _ = GATEWAY["volumes"][0].split(":")
    assert (DOCKER / source).is_dir() and place == f"{FOLDER}/{Path(source).name}"
    monkeypatch.chdir((DOCKER / source).parent)
    params = parse(GATEWAY["command"])
    assert Path(*params["rules"]).exists()
    return load_gateway_config(
        "",
        "",
        params["settings"],
        upstream=params["upstream"],
        listen=Address(*params["listen"]),
        rules=[str(each) for each in params["rules"]],
    )


def test_clients_on_this_machine_reach_the_gateway(config: GatewayConfig) -> None:
    """Each port that is advertised is published, and the gateway listens there."""
    clients, page = (published.split(":") for published in GATEWAY["ports"])
    first, last = map(int, clients[2].split("-"))
    assert clients[:2] == ["127.0.0.1", clients[2]]
    assert config.listen.port == first
    assert parse(GATEWAY["command"])["settings"].count(f"broker.ports={KAFKA_ID}:{last}") == 1
    assert config.begin_host.text == config.broker_host.text == "localhost"
    assert config.node.string("http.listen") == f"0.0.0.0:{page[2]}"
    assert f'CMD ["probe", "{page[2]}"]' in (DOCKER / "Dockerfile").read_text() and "healthcheck" not in GATEWAY


def test_the_gateway_alone_reaches_the_kafka(config: GatewayConfig) -> None:
    """The broker has an address among the containers only, and is of a version that is tried."""
    environment = KAFKA["environment"]
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{parse(GATEWAY['command'])['upstream']}"
    assert "ports" not in KAFKA and [*GATEWAY["depends_on"]] == ["kafka"]
    image, _, version = KAFKA["image"].partition(":")
    assert image == "apache/kafka" and version == KAFKAS[-1].version
    names = {part.partition(":")[0] for part in environment["KAFKA_LISTENERS"].split(",")}
    mapped = {part.partition(":")[0] for part in environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}
    assert names == mapped == {"PLAINTEXT", environment["KAFKA_CONTROLLER_LISTENER_NAMES"]}


def test_the_audit_log_has_a_place(config: GatewayConfig) -> None:
    """Nobody runs as root, so it lies where the image has a folder for its user."""
    volume, place = GATEWAY["volumes"][1].split(":")
    assert config.node.string("audit.dir").startswith(f"{place}/")
    assert volume in yaml.safe_load((DOCKER / "gateway.yaml").read_text())["volumes"]
    assert f"--owner minicontroller {place}" in (DOCKER / "Dockerfile").read_text()


def test_the_image_is_built_from_here() -> None:
    build = GATEWAY["build"]
    assert (DOCKER / build["context"]).resolve() == DOCKER.parent
    assert (DOCKER.parent / build["dockerfile"]).exists()
    assert re.fullmatch(r"[a-z]+", GATEWAY["image"])
