"""The image and the compose file, read as Docker reads them: there is a file for each COPY, a
command for each line, a way to each port.
"""

import json
import os
import re
import shlex
import subprocess
import tomllib
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
import yaml

from minicontroller.cli.commands import commands
from minicontroller.controller.node.client_addresses import ClientAddresses
from minicontroller.controller.node.process import node_settings
from minicontroller.process.settings.loading import load_config
from minicontroller.process.settings.node_config import NodeConfig

ROOT = Path(__file__).parents[1]
DOCKER = ROOT / "docker"
INSTRUCTIONS = [
    line.split(None, 1)
    for line in re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", (DOCKER / "Dockerfile").read_text())).splitlines()
    if line
]
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = [name for name in SERVICES if name.startswith("node-")]


def arguments_of(instruction: str) -> list[str]:
    return [rest for name, rest in INSTRUCTIONS if name == instruction]


def sources_of_copies() -> list[str]:
    from_here = [shlex.split(rest) for rest in arguments_of("COPY") if "--from" not in rest]
    return [source for words in from_here for source in words[:-1]]


def parse(arguments: list[str]) -> dict[str, Any]:
    """As the command itself takes them; raises what it would complain of."""
    with click.Context(commands) as context:
        name, command, rest = commands.resolve_command(context, arguments)
    assert command is not None
    return command.make_context(name, rest).params


def health_check() -> list[str]:
    words: list[str] = json.loads(arguments_of("HEALTHCHECK")[0].partition("CMD ")[2])
    return words


def in_the_image(service: str) -> NodeConfig:
    """The configuration of a node as its container makes it."""
    params = parse(SERVICES[service]["command"])
    environment = {name: str(value) for name, value in SERVICES[service].get("environment", {}).items()}
    return load_config(params["file"].read_text(), str(params["file"]), params["settings"], environment)


@pytest.fixture(autouse=True)
def where_the_image_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the image `config` is /etc/minicontroller, and that is where commands run."""
    assert "config /etc/minicontroller" in arguments_of("COPY")
    assert arguments_of("WORKDIR")[-1] == "/etc/minicontroller"
    monkeypatch.chdir(ROOT / "config")


def test_what_is_copied_is_there() -> None:
    """Each source of a COPY exists, the builder is sent all of them, and they are all that makes
    the package.
    """
    lines = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    sources = [source.removesuffix("/") for source in sources_of_copies()]
    assert all((ROOT / source).exists() for source in sources)
    assert sorted(sent) == sorted(sources)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {package.split(".")[1] for package in project["tool"]["setuptools"]["packages"] if "." in package}
    modules = {path.name for path in ROOT.glob("*.py")}
    assert {*packages, *modules, "pyproject.toml", "README.md", "LICENSE", "py.typed"} <= {*sources}


def test_the_image_is_of_a_python_that_will_do() -> None:
    """Each stage starts from a slim Python that the project supports."""
    for image in arguments_of("FROM"):
        assert fnmatch(image.split()[0], "python:3.1?-slim")
        assert int(image.removeprefix("python:3.")[:2]) >= 11


def test_nobody_runs_as_root() -> None:
    """The last user is a number, which Kubernetes can check, and not 0."""
    assert int(arguments_of("USER")[-1]) > 0


def test_the_command_of_the_image_works() -> None:
    """It is a cluster for whoever publishes its port, with a page where the health check asks."""
    assert json.loads(arguments_of("ENTRYPOINT")[0]) == ["minicontroller"]
    params = parse(json.loads(arguments_of("CMD")[0]))
    clients = ClientAddresses(params["listen"], params["advertise"])
    settings = node_settings(1, params["brokers"], "memory", "secret", clients.settings(1, params["port"]))
    config = load_config("\n".join(f"{key}={value}" for key, value in settings.items()), "up", params["settings"])
    client = next(listener for listener in config.listeners if listener.name == "PLAINTEXT")
    assert (client.host, client.port) == ("0.0.0.0", 9092)
    assert (client.advertised_host, client.advertised_port) == ("localhost", 9092)
    assert config.string("http.listen") == f"0.0.0.0:{health_check()[1]}"
    assert arguments_of("EXPOSE") == ["9092 8080"]


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (401, 1)])
def test_the_health_check_asks_by_http(status: int, code: int) -> None:
    """The probe succeeds if and only if the answer is 200, and starts no Python."""
    asked = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name in the library
            pass

    program, _ = health_check()
    script = DOCKER / program
    assert f"docker/{program} /usr/local/bin/{program}" in arguments_of("COPY") and os.access(script, os.X_OK)
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        Thread(target=server.handle_request, daemon=True).start()
        probed = subprocess.run([script, str(server.server_port)], capture_output=True, check=False, timeout=60)
    assert (probed.returncode, asked) == (code, ["/health/ready"])
    assert subprocess.run([script, str(server.server_port)], capture_output=True, check=False).returncode == 1


def test_there_are_three_nodes_and_a_zookeeper() -> None:
    """Three nodes have numbers of their own, and all of them are on the one ZooKeeper."""
    assert {*SERVICES} == {"zookeeper", *NODES}
    configs = [in_the_image(node) for node in NODES]
    assert [config.integer("broker.id") for config in configs] == [1, 2, 3]
    [connect] = {config.string("zookeeper.connect") for config in configs}
    assert connect == "zookeeper:2181/minicontroller"


@pytest.mark.parametrize("node", NODES)
def test_clients_on_the_host_reach_each_node(node: str) -> None:
    """The port that is published is the one that is advertised, and leads to the one on which the
    node listens and is checked.
    """
    config = in_the_image(node)
    client = next(listener for listener in config.listeners if listener.name == "CLIENT")
    published, page = SERVICES[node]["ports"]
    assert published == f"127.0.0.1:{client.advertised_port}:{client.port}"
    assert (client.host, client.advertised_host) == ("0.0.0.0", "localhost")
    assert page.endswith(f":{health_check()[1]}") and config.string("http.listen") == f"0.0.0.0:{health_check()[1]}"
    assert str(client.port) in arguments_of("EXPOSE")[0]


def test_what_a_cluster_has_to_keep_is_kept() -> None:
    """ZooKeeper's data, its transaction log, and each node's audit log are volumes; rules are a
    folder, in which an editor may replace a file.
    """
    mounted = {name: [each.split(":")[:2] for each in service["volumes"]] for name, service in SERVICES.items()}
    assert [place for _, place in mounted.pop("zookeeper")] == ["/data", "/datalog"]
    for node, volumes in mounted.items():
        (kept, place), (rules, folder) = volumes
        assert kept == node and in_the_image(node).string("audit.dir").startswith(f"{place}/")
        assert any(place in rest for rest in arguments_of("RUN"))
        [file] = in_the_image(node).strings("policy.rules.files")
        assert folder == "/etc/minicontroller/rules" and (DOCKER / rules / Path(file).name).exists()
    assert {*COMPOSE["volumes"]} == {"zookeeper-data", "zookeeper-log", *mounted}


@pytest.mark.parametrize("node", NODES)
def test_nodes_reach_each_other(node: str) -> None:
    """The listener of the nodes is advertised under the container's name, and is not published."""
    listener = in_the_image(node).inter_broker_listener
    assert (listener.name, listener.advertised_host) == ("INTERNAL", node)
    assert listener.port == listener.advertised_port
    assert not any(str(listener.port) in published for published in SERVICES[node]["ports"])


def test_each_node_is_built_from_here() -> None:
    """The nodes are one image, built from this checkout by this Dockerfile."""
    for node in NODES:
        build = SERVICES[node]["build"]
        context = (DOCKER / build["context"]).resolve()
        assert (context, context / build["dockerfile"]) == (ROOT, DOCKER / "Dockerfile")
        assert set(SERVICES[node]["depends_on"]) <= set(SERVICES)
