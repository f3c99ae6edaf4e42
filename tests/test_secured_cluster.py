"""The page that leads to a secured cluster, followed by somebody who knows nothing else: its blocks
in their order, in an empty folder, with a shell, real nodes, a real ZooKeeper and real clients.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.cli.command import call, complaint, environment, running
from tests.support.cluster import READY
from tests.support.forked import COMMAND
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "secured-cluster.md").read_text()
SAMPLE = (ROOT / "config" / "tls.properties").read_text()
ZOOKEEPER = "127.0.0.1:2181/secured"
PORTS = sorted(set(re.findall(r"localhost:(\d+)", PAGE)))
SERVE = "minicontroller serve "
END = "-- the end --"


class Shell:
    """One bash that runs commands one after the other."""

    def __init__(self, folder: Path) -> None:
        path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=environment({"PATH": path}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Return the exit code and what was said, on stdout and stderr."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(f"{{ {command}\n}} < /dev/null\ncode=$?; echo; echo '{END}' $code", file=self._process.stdin, flush=True)
        said = ""
        for line in self._process.stdout:
            if line.startswith(END):
                return int(line.removeprefix(END)), said.removesuffix("\n")
            said += line
        raise AssertionError(f"the shell has ended: {said}")

    def close(self) -> None:
        self._process.communicate(timeout=60)


def blocks(zookeeper: str) -> Iterator[tuple[str, str]]:
    """The blocks of the page by language, with addresses that are free on this machine."""
    page = PAGE.replace(ZOOKEEPER, zookeeper)
    for port in PORTS:
        page = page.replace(f"localhost:{port}", f"localhost:{free_port()}")
    yield from re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what it shows."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def test_a_secured_cluster_step_by_step(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """Every file and every command of the page does what the page shows."""
    with ExitStack() as stack:
        shell = Shell(tmp_path)
        stack.callback(shell.close)
        nodes = 0
        for language, block in blocks(f"{zookeeper.connect}/secured"):
            if language != "console":
                (tmp_path / block.split()[1]).write_text(block)
                continue
            for command, shown in commands(block):
                if command.startswith("minicontroller up "):
                    ends_well(tmp_path, *shlex.split(command)[1:])
                    continue
                if command.startswith(SERVE):
                    node = stack.enter_context(running(*shlex.split(command)[1:], folder=tmp_path))
                    assert node.stdout is not None
                    assert node.stdout.readline() == shown
                    nodes += 1
                    until(lambda shell=shell, nodes=nodes: nodes == 1 or known(shell) == nodes)  # type: ignore[misc]
                    continue
                code, said = shell.run(command)
                assert code == int(": refused (" in shown), f"{command}: {said}"
                assert not shown or said == shown, command
    assert nodes == 3
    [job] = yaml.safe_load((tmp_path / "prometheus.yml").read_text())["scrape_configs"]
    files = {job["tls_config"]["ca_file"], job["authorization"]["credentials_file"]}
    assert all((tmp_path / file).exists() for file in files)
    sample_starts(tmp_path, zookeeper)
    node_starts_on_a_protected_zookeeper(tmp_path)


def sample_starts(folder: Path, zookeeper: ZooKeeperServer) -> None:
    """The sample of a configuration is one with the files that the page has made, and lets the same
    administrator in.
    """
    sample = SAMPLE.replace("127.0.0.1:2181/minicontroller", f"{zookeeper.connect}/sample")
    sample = sample.replace("/etc/minicontroller/node1.pem", "node.pem").replace("/etc/minicontroller/", "")
    ports = {port: free_port() for port in re.findall(r"0\.0\.0\.0:(\d+)", sample)}
    sample = re.sub(r"(node1\.example|0\.0\.0\.0):(\d+)", lambda found: f"localhost:{ports[found[2]]}", sample)
    (folder / "sample.properties").write_text(sample)
    with running("serve", "--config", "sample.properties", folder=folder) as node:
        assert node.stdout is not None
        address = node.stdout.readline().removeprefix(READY).split()[0]
        arguments = ("--bootstrap-server", address, "--command-config", "first.properties")
        assert call("users", "list", *arguments, folder=folder) == (0, "", "No users.\n")


def ends_well(folder: Path, *arguments: str) -> None:
    """A cluster in memory lets its administrator in, and ends."""
    login = (
        (folder / "admin.properties")
        .read_text()
        .replace("SCRAM-SHA-512", "PLAIN")
        .replace("scram.Scram", "plain.Plain")
    )
    (folder / "tests.properties").write_text(re.sub('password=".*"', 'password="admin-secret"', login))
    with running(*arguments, folder=folder) as cluster:
        assert cluster.stdout is not None
        servers = cluster.stdout.readline().removeprefix(READY).split()[0]
        chosen = ("--bootstrap-server", servers, "--command-config", "tests.properties")
        assert call("acls", "list", *chosen, folder=folder) == (0, "", "No ACLs.\n")


def known(shell: Shell) -> int:
    """How many nodes the first one knows."""
    _, said = shell.run("minicontroller cluster --command-config admin.properties --json")
    return len(json.loads(said)["brokers"])


def node_starts_on_a_protected_zookeeper(folder: Path) -> None:
    """A ZooKeeper with the lines of the last chapter lets in a node that has those of the same
    chapter, and none without its login.
    """
    subprocess.run(["bash", "-c", ". ./certificates.sh; certificate zookeeper DNS:localhost"], cwd=folder, check=True)
    lines = re.sub(r"=(\w+\.pem)", rf"={folder}/\1", (folder / "zoo.cfg").read_text()).splitlines()
    [port] = re.findall(r"localhost:(\d+)", (folder / "zookeeper.properties").read_text())
    extra = [f"secureClientPort={port}" if line.startswith("secure") else line for line in lines]
    options = [f"-Djava.security.auth.login.config={folder / 'jaas.conf'}"]
    rest = re.sub("^zookeeper.connect=.*", "", (folder / "cluster.properties").read_text(), flags=re.MULTILINE)
    right = (folder / "zookeeper.properties").read_text() + rest
    (folder / "right.properties").write_text(right)
    (folder / "wrong.properties").write_text(re.sub("^zookeeper.s[ae].*", "", right, flags=re.MULTILINE))
    start = (
        "serve",
        "--set",
        "broker.id=1",
        "--set",
        "listeners=CLIENTS://localhost:0,NODES://localhost:0",
        "--config",
    )
    with (
        ZooKeeperServer(folder / "protected", extra=extra, options=options),
        running(*start, "right.properties", folder=folder) as node,
    ):
        assert node.stdout is not None
        assert node.stdout.readline().startswith(READY)
        assert "needs the login" in complaint(*start, "wrong.properties", folder=folder)
