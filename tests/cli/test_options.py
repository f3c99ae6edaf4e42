"""Help, version, and errors of wrong calls."""

import subprocess
import sys
from pathlib import Path

import pytest

from minicontroller import __version__
from minicontroller.protocol.registry import KAFKA
from tests.cli.command import call, complaint
from tests.support.specs import WITH_RECORDS


def test_help_names_every_command(tmp_path: Path) -> None:
    """`--help` lists the commands, each with a line that is not cut."""
    outcome = call("--help", folder=tmp_path)
    listed = [line.split()[0] for line in outcome.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert "..." not in outcome.stdout.partition("Commands:")[2]
    assert (outcome.code, outcome.stderr, listed) == (
        0,
        "",
        [
            "acls",
            "audit",
            "cluster",
            "configs",
            "demo",
            "gateway",
            "groups",
            "leaders",
            "log-dirs",
            "ping",
            "pipeline",
            "policy",
            "protocol",
            "quotas",
            "reassignments",
            "records",
            "serve",
            "tokens",
            "topics",
            "up",
            "users",
        ],
    )


@pytest.mark.parametrize(
    "group",
    [
        *("acls", "audit", "configs", "groups", "leaders", "log-dirs", "pipeline", "policy", "protocol", "quotas"),
        *("reassignments", "records", "tokens", "topics", "users"),
    ],
)
def test_help_of_a_group_is_not_cut(tmp_path: Path, group: str) -> None:
    """Each command of a group has a line in the group's help that is whole on a terminal of 80
    columns.
    """
    outcome = call(group, "--help", folder=tmp_path, variables={"COLUMNS": "80"})
    listed = outcome.stdout.partition("Commands:\n")[2]
    assert listed and "..." not in listed


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("up", ["--brokers", "--port", "--store", "--set", "--verbose"]),
        ("serve", ["--config", "--set", "--verbose"]),
        ("ping", ["--timeout", "--user", "--command-config"]),
    ],
)
def test_each_option_is_explained(tmp_path: Path, command: str, options: list[str]) -> None:
    """The help of a command has every option with a sentence."""
    outcome = call(command, "-h", folder=tmp_path)
    lines = [line.strip() for line in outcome.stdout.splitlines()]
    for option in options:
        [line] = [line for line in lines if option in line.partition("  ")[0]]
        assert line.partition("  ")[2].strip(), option


def test_version_is_the_packages(tmp_path: Path) -> None:
    """`--version` tells the version of the package."""
    assert call("--version", folder=tmp_path).stdout == f"minicontroller, version {__version__}\n"


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """A command leaves no file in the folder from which it is called."""
    call("protocol", "apis", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dance"], "No such command 'dance'"),
        (["up", "--bokers", "3"], "Did you mean '--brokers'?"),
        (["up", "--brokers", "0"], "0 is not in the range 1<=x<=100"),
        (["up", "--brokers", "many"], "'many' is not a valid integer"),
        (["up", "--port", "65536"], "65536 is not in the range"),
        (["up", "--port", "65534"], "leaves no room for 3 nodes: the last would be 65536"),
        (["up", "--set", "num.partitions"], "'num.partitions' is not KEY=VALUE"),
        (["up", "now"], "Got unexpected extra argument (now)"),
        (["serve"], "name a file by --config, or set KAFKA_... variables"),
        (["serve", "--config", "server.properties"], "File 'server.properties' does not exist"),
        (["serve", "--config", "."], "File '.' is a directory"),
        (["ping", "localhost"], "'localhost' is not HOST:PORT"),
        (["ping", "localhost:http"], "'localhost:http' is not HOST:PORT"),
        (["ping", f"localhost:{'9' * 5_000}"], "is not HOST:PORT"),
        (["ping", "::1:9092"], "an IPv6 address stands in brackets: [::1]:9092"),
        (["gateway", "--upstream", "localhost:1", "--listen", "[::1:0"], "'[::1:0' is not HOST:PORT"),
        (["protocol", "show", "CreateTopicRequest", "7"], "the nearest is CreateTopicsRequest"),
        (["protocol", "show", "CreateTopicsRequest", "8"], "CreateTopicsRequest has the versions 0 to 7, not 8"),
        (["protocol", "show", "CreateTopicsRequest", "new"], "'new' is not a valid integer"),
    ],
)
def test_a_wrong_call_is_a_sentence_and_code_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    """A wrong call ends with a sentence that says what is wrong, and code 2."""
    assert said in complaint(*arguments, folder=tmp_path, code=2)


def test_the_table_of_apis_is_what_is_handled(tmp_path: Path) -> None:
    """`protocol apis` lists each API that nodes with records answer, with its versions."""
    table = call("protocol", "apis", folder=tmp_path).stdout
    rows = [line.split()[:3] for line in table.splitlines()[1:]]
    apis = [KAFKA[key] for key in WITH_RECORDS]
    versions = [
        str(api.min_version) if api.min_version == api.max_version else f"{api.min_version}-{api.max_version}"
        for api in apis
    ]
    assert rows == [[str(int(api.key)), api.name, spoken] for api, spoken in zip(apis, versions, strict=True)]


def test_generated_code_is_shown_as_python(tmp_path: Path) -> None:
    """`protocol show` prints code that compiles."""
    shown = call("protocol", "show", "CreateTopicsRequest", "7", folder=tmp_path).stdout
    compile(shown, "shown", "exec")
    assert shown.count("def ") == 2


@pytest.mark.parametrize(
    "arguments", [["protocol", "show", "MetadataResponse", "12"], ["protocol", "apis"], ["--help"]]
)
def test_a_closed_pipe_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    """A command whose output is piped to `head` writes nothing to stderr."""
    pipe = subprocess.run(
        ["bash", "-c", '"$0" -m minicontroller "$@" | true', sys.executable, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert pipe.stderr == ""
