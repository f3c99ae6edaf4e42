"""`minicontroller demo` runs a cluster with a policy and sends requests to it, in one terminal.

Rule: all shown results are the cluster's answers. The cluster is the installed `minicontroller up`
in a process of its own. It ends whenever the demo ends, even by SIGKILL, because its stdin is a
pipe from the demo.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import click
from rich.panel import Panel
from rich.text import Text

from ..client.admin_client import AdminClient
from ..client.configuration import load_client_config
from ..client.errors import AdminError
from ..text import escaped
from .admin_options import DEFAULT_BOOTSTRAP, AdminOptions, ask
from .console import PlainConsole
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


# ------------------------------------------------------------------ the script


def _play(console: PlainConsole, bootstrap: str) -> None:
    import trio

    from .demo_script import DemoStep, script

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
