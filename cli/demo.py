"""`minicontroller demo` runs a cluster with a policy and sends requests to it, in one terminal.

Rule: all shown results are the cluster's answers, and the command line and the request of a step
are made from the same values, so the demo shows exactly what it sends. The cluster is the installed
`minicontroller up` in a process of its own. It ends whenever the demo ends, even by SIGKILL,
because its stdin is a pipe from the demo.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import click
import msgspec
from rich.panel import Panel
from rich.text import Text

from ..client.admin_client import AdminClient
from ..client.configs import AlterConfigOp, Resource
from ..client.configuration import load_client_config
from ..client.errors import AdminError
from ..client.topics import NewTopic
from ..protocol.config_resources import ConfigOperation
from ..text import escaped
from .admin_options import DEFAULT_BOOTSTRAP, AdminOptions, ask
from .console import PlainConsole
from .demo_policy import DAY_MS
from .main import SIGNALS

BROKERS, PORT, WIDTH = 3, 9092, 100
POLICY = "minicontroller.cli.demo_policy:DemoPolicy"
READY = "ready: "
STOP_SECONDS = 15.0
BEAT_SECONDS = 0.35
"""The pause between two steps on a terminal, in seconds."""


@click.command()
@click.option("--once", is_flag=True, help="End after the script instead of keeping the cluster up.")
def demo(once: bool) -> None:
    """Run a cluster with a policy, and show its answers to some requests. Ctrl-C ends it."""
    console = PlainConsole(width=min(PlainConsole().width, WIDTH))
    console.print(Text("minicontroller demo", style="bold"), Text("three nodes in memory, and a policy", style="dim"))
    with _cluster() as (process, facts):
        console.print(Text(f"bootstrap.servers={facts['bootstrap.servers']}", style="dim"))
        _play(console, facts["bootstrap.servers"])
        if not once:
            _invite(console, facts)
            process.wait()


# ------------------------------------------------------------------ the cluster


@contextmanager
def _cluster() -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run a cluster, and yield its process and the facts in its ready line. If another program
    takes Kafka's port between the check and the start, the cluster uses free ports.
    """
    with ExitStack() as processes:
        for port in dict.fromkeys((_port(), 0)):
            process = processes.enter_context(_process(port))
            facts = _ready(process)
            if facts is not None:
                yield process, facts
                return
    raise click.ClickException("The cluster did not start; `minicontroller up` says why.")


@contextmanager
def _process(port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "minicontroller", "up", "--brokers", str(BROKERS), "--port", str(port)]
    command += ["--with-parent", "--set", f"topic.management.policy.class.name={POLICY}"]
    # The cluster has its own session, so that Ctrl-C reaches only this process, which stops it.
    process = subprocess.Popen(  # noqa: S603 - this very program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    for number in SIGNALS:
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _port() -> int:
    """Return Kafka's default port, so that commands need no address, or 0 if a port is taken."""
    for port in range(PORT, PORT + BROKERS):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return 0
    return PORT


def _ready(process: subprocess.Popen[str]) -> dict[str, str] | None:
    """Return the addresses in the ready line: `bootstrap.servers`, and `http` if there is a page.
    Returns None if the process ended before it was ready.
    """
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(READY):
            return dict(fact.split("=", 1) for fact in line.removeprefix(READY).split())
    return None


# ------------------------------------------------------------------ the steps


class DemoResult(msgspec.Struct, frozen=True):
    element: str
    done: str
    error: AdminError | None


class DemoStep(msgspec.Struct, frozen=True):
    """One step of the demo: the explanation `why`, the `command` as typed, and the request to
    send.
    """

    why: str
    command: str
    play: Callable[[AdminClient], Awaitable[list[DemoResult]]]


def script() -> tuple[DemoStep, ...]:
    """Return the steps of the demo, which break each rule of the policy."""
    placed, trail = "sales.orders.placed", "audit.changes.trail"
    return (
        _create("A topic that follows the rules.", [placed], partitions=6),
        _create("A name that breaks a rule.", ["Orders_v2"], partitions=6),
        _create(
            "Two topics in one request: each gets its own result.", ["sales.orders.paid", "sales.Paid"], partitions=3
        ),
        _create(
            "Too many partitions; --dry-run checks without creating.",
            ["sales.clicks.raw"],
            partitions=400,
            dry_run=True,
        ),
        _create("A topic for the auditors.", [trail], partitions=1),
        _retention("Keep records for a year.", placed, 365),
        _retention("Keep records for a week.", placed, 7),
        _grow("More partitions than the limit: the rule checks later changes, too.", placed, 24),
        _grow("More partitions, within the limit.", placed, 12),
        _delete("The auditors' topic is protected; the other one is deleted.", [trail, "sales.orders.paid"]),
    )


def _create(why: str, names: Sequence[str], *, partitions: int, dry_run: bool = False) -> DemoStep:
    topics = [NewTopic(name, partitions, replication_factor=3) for name in names]

    async def play(admin: AdminClient) -> list[DemoResult]:
        results = await admin.create_topics(topics, validate_only=dry_run)
        return [DemoResult(name, "created", _error(result)) for name, result in results.items()]

    options = f"--partitions {partitions} --replication-factor 3{' --dry-run' if dry_run else ''}"
    return DemoStep(why, f"topics create {' '.join(names)} {options}", play)


def _retention(why: str, name: str, days: int) -> DemoStep:
    change = AlterConfigOp(ConfigOperation.SET, "retention.ms", str(days * DAY_MS))

    async def play(admin: AdminClient) -> list[DemoResult]:
        results = await admin.alter_configs({Resource.topic(name): [change]})
        return [DemoResult(resource.name, f"kept for {days} days", error) for resource, error in results.items()]

    return DemoStep(why, f"configs set --topic {name} {change.name}={change.value}", play)


def _grow(why: str, name: str, partitions: int) -> DemoStep:
    async def play(admin: AdminClient) -> list[DemoResult]:
        results = await admin.create_partitions({name: partitions})
        return [DemoResult(name, f"has {partitions} partitions", error) for name, error in results.items()]

    return DemoStep(why, f"topics alter {name} --partitions {partitions}", play)


def _delete(why: str, names: Sequence[str]) -> DemoStep:
    async def play(admin: AdminClient) -> list[DemoResult]:
        return [DemoResult(name, "deleted", error) for name, error in (await admin.delete_topics(names)).items()]

    return DemoStep(why, f"topics delete {' '.join(names)}", play)


def _error(result: object) -> AdminError | None:
    return result if isinstance(result, AdminError) else None


# ------------------------------------------------------------------ the performance


def _play(console: PlainConsole, bootstrap: str) -> None:
    import trio

    async def play(admin: AdminClient) -> None:
        for step in script():
            await _step(admin, step)

    async def _step(admin: AdminClient, step: DemoStep) -> None:
        if console.is_terminal:
            await trio.sleep(BEAT_SECONDS)
        console.print()
        console.print(Text(step.why))
        console.print(Text(f"$ minicontroller {step.command}", style="cyan"), soft_wrap=True)
        for outcome in await step.play(admin):
            console.print(_outcome(outcome.element, outcome.done, outcome.error))

    config = load_client_config("", "", bootstrap=bootstrap, default_bootstrap=bootstrap)
    ask(AdminOptions(config, as_json=False), play)


def _outcome(element: str, done: str, error: AdminError | None) -> Text:
    if error is None:
        return Text.assemble(("  yes  ", "bold green"), f"{escaped(element)} {done}")
    return Text.assemble(
        ("  no   ", "bold red"), f"{escaped(element)}: {escaped(error.message)} ", (f"({error.name})", "dim")
    )


def _invite(console: PlainConsole, facts: dict[str, str]) -> None:
    bootstrap = facts["bootstrap.servers"]
    first = bootstrap.split(",")[0]
    lines = ["The cluster stays up for any Kafka client:", f"  bootstrap.servers={bootstrap}", ""]
    if first != DEFAULT_BOOTSTRAP:
        lines += [f"  export MINICONTROLLER_BOOTSTRAP={first}"]
    lines += [
        "  minicontroller topics describe",
        "  minicontroller topics create your.first.topic",
        "  minicontroller cluster",
    ]
    if "http" in facts:
        lines += ["", f"The page, live: http://{facts['http']}/"]
    console.print()
    console.print(Panel(Text("\n".join(lines)), title="Your turn", title_align="left", border_style="green"))
    console.print(Text("Ctrl-C ends it.", style="dim"))
