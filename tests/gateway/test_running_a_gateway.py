"""What docs/running-a-gateway.md shows holds: the exception with an end, and the manifests."""

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from minicontroller.client.configuration import parse_addresses
from minicontroller.gateway.configuration import GatewayConfig, load_gateway_config
from minicontroller.process.settings.loading import config_from_mapping
from tests.cli.command import call

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "running-a-gateway.md").read_text()
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
SECOND_POD = "gateway-1"


def manifests(name: str) -> dict[tuple[str, str], Any]:
    """Return the objects of a manifest by kind and name."""
    objects = yaml.safe_load_all((ROOT / "config" / "kubernetes" / name).read_text())
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def container_of(objects: dict[tuple[str, str], Any], name: str) -> Any:
    (container,) = objects["StatefulSet", name]["spec"]["template"]["spec"]["containers"]
    return container


def command_of(container: Any, pod: str) -> list[str]:
    """Return the words that the shell of a pod starts."""
    (line,) = container["args"]
    number = pod.rpartition("-")[2]
    return shlex.split(line.replace("${HOSTNAME##*-}", number).replace("$HOSTNAME", pod))


def test_an_exception_ends(tmp_path: Path) -> None:
    """The rules and their cases stand in the page as they are tried here."""
    for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL):
        name = text.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(text)
    done = call("policy", "test", ".", folder=tmp_path)
    assert (done.code, done.stdout) == (0, "3 cases, 0 failed\n")


def gateway_config(objects: dict[tuple[str, str], Any], words: list[str]) -> GatewayConfig:
    options = dict(zip(words[3::2], words[4::2], strict=True))
    (listen,) = parse_addresses(options["--listen"])
    text = objects["ConfigMap", "gateway"]["data"]["gateway.properties"]
    text = text.replace("/etc/rules/", "").replace("audit.dir=/var/audit", "")
    return load_gateway_config(
        text, options["--config"], [options["--set"]], upstream=options["--upstream"], listen=listen
    )


def test_the_gateways_of_kubernetes() -> None:
    """The keys are known, each gateway has a number of its own, and the ports of the Service are
    those of the listeners.
    """
    objects = manifests("gateway.yaml")
    words = command_of(container_of(objects, "gateway"), SECOND_POD)
    assert words[:3] == ["exec", "minicontroller", "gateway"]
    config = gateway_config(objects, words)
    assert config.node.integer("broker.id") == 1
    ports = [each["port"] for each in objects["Service", "gateway"]["spec"]["ports"]]
    (fixed,) = config.broker_ports
    assert ports == [config.listen.port, *map(fixed.port_of, range(3))]


def test_the_nodes_of_kubernetes() -> None:
    """The keys are known, and each node has an id and an address of its own."""
    objects = manifests("nodes.yaml")
    words = command_of(container_of(objects, "node"), "node-2")
    lines = objects["ConfigMap", "nodes"]["data"]["server.properties"].splitlines()
    sets = [word for before, word in pairwise(words) if before == "--set"]
    config = config_from_mapping(dict(line.split("=", 1) for line in [*lines, *sets]))
    assert config.integer("broker.id") == 2
    assert config.string("advertised.listeners") == "PLAINTEXT://node-2.nodes:9092"


@pytest.mark.parametrize(("file", "name"), [("gateway.yaml", "gateway"), ("nodes.yaml", "node")])
def test_the_objects_of_kubernetes_fit(file: str, name: str) -> None:
    """Probes ask by HTTP at the port that is served, volumes are there, and the parts name each
    other.
    """
    objects = manifests(file)
    spec = objects["StatefulSet", name]["spec"]
    pod, container = spec["template"]["spec"], container_of(objects, name)
    (http,) = [each["containerPort"] for each in container["ports"] if each.get("name") == "http"]
    assert any(f"http.listen=0.0.0.0:{http}" in text for text in yaml.safe_dump(list(objects.values())).split())
    assert {container[each]["httpGet"]["path"] for each in PROBES} == {"/health/live", "/health/ready"}
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert ("Service", spec["serviceName"]) in objects
    claims = [each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", ())]
    volumes = {each["name"]: each["configMap"]["name"] for each in pod["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == {*volumes, *claims}
    assert all(("ConfigMap", config) in objects for config in volumes.values())
    assert all("subPath" not in each for each in container["volumeMounts"])
