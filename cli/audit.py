"""`minicontroller audit` shows the events of audit logs, newest last, and verifies that logs are
complete.
"""

import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from ..audit.files import audit_files, copies
from ..audit.reading import Follower, LocatedEvent, is_audit_file, read_all
from ..audit.verifying import Verification
from ..text import escaped, plural
from .audit_filters import Filter, filter_options, narrowed
from .audit_text import one_line, print_details
from .output import readers_may_leave

LOOK_SECONDS = 0.2
"""The pause in seconds between two reads of a followed log. Polling works on every system;
notifications about growing files do not.
"""


@click.group()
def audit() -> None:
    """Read the audit log: who changed what, and which rule refused a change. PATH is a folder
    (audit.dir), or a file.
    """


paths_argument = click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the events as JSON, as they are in the files."
)


# ------------------------------------------------------------------ commands


@audit.command()
@paths_argument
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(0), help="Number of events to show.")
@click.option("-f", "--follow", is_flag=True, help="Print new events until Ctrl-C.")
@filter_options
@json_option
def tail(*, paths: tuple[Path, ...], lines: int, follow: bool, as_json: bool, **filters: Any) -> None:
    """Show the last events, one line each."""
    wanted = Filter(**filters)
    follower = Follower(paths)
    _require_files(paths, may_come=follow)
    source = follower.look() if follow else read_all(paths)
    for located in deque(_matching(source, wanted, complains=not follow), maxlen=lines):
        _print(located, as_json=as_json)
    try:
        while follow:
            sys.stdout.flush()
            time.sleep(LOOK_SECONDS)
            for located in _matching(follower.look(), wanted, complains=True):
                _print(located, as_json=as_json)
    except KeyboardInterrupt:
        return


@audit.command()
@paths_argument
@filter_options
@json_option
def show(*, paths: tuple[Path, ...], as_json: bool, **filters: Any) -> None:
    """Show all details of events."""
    wanted = Filter(**filters)
    _require_files(paths)
    for located in _matching(read_all(paths), wanted, complains=True):
        if as_json:
            _print(located, as_json=True)
        elif located.event is not None:
            print_details(narrowed(located.event, wanted))


@audit.command()
@paths_argument
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per finding, and one for the summary.")
def verify(*, paths: tuple[Path, ...], as_json: bool) -> None:
    """Check whether the log is complete. Exits with 0 if it is, with 1 if events are missing,
    repeated, cut, or contradictory.
    """
    _require_files(paths)
    verification = Verification(paths)
    findings = verification.findings()
    with readers_may_leave():
        for finding in findings:
            if as_json:
                click.echo(msgspec.json.encode({**msgspec.to_builtins(finding, enc_hook=_path_text)}))
            else:
                click.echo(escaped(f"{finding.file}:{finding.line}: {finding.kind}: {finding.text}"))
    deque(findings, maxlen=0)  # a closed pipe changes neither summary nor exit code
    summary = verification.summary
    if as_json:
        counts = {
            "files": len(summary.files),
            "events": summary.events,
            "epochs": len(summary.epochs),
            "clusters": len(summary.clusters),
            "findings": summary.findings,
        }
        click.echo(msgspec.json.encode({"summary": counts}))
    else:
        verdict = plural(summary.findings, "finding") if summary.findings else "whole"
        click.echo(
            f"{verdict}: {plural(summary.events, 'event')} of {plural(len(summary.epochs), 'epoch')} "
            f"in {plural(len(summary.files), 'file')}",
            err=True,
        )
    sys.exit(1 if summary.findings else 0)


# ------------------------------------------------------------------ output


def _require_files(paths: tuple[Path, ...], *, may_come: bool = False) -> None:
    """Raise click.ClickException for a file that is no audit log, or if there are no audit files,
    unless `may_come`. Print the names of copies, which are not read.
    """
    for path in paths:
        if path.is_file() and not is_audit_file(path):
            raise click.ClickException(
                escaped(f"{path} is no audit file: there is no event in its first lines. ")
                + "Name a file of audit.dir, or the folder."
            )
    if not (may_come or audit_files(paths)):
        raise click.ClickException(
            escaped(f"There is no audit file in {', '.join(map(str, paths))}. ")
            + "A node writes its first one when it becomes the active controller or denies a change: if this one has, "
            "its files are gone. Name the folders of all nodes to read them together."
        )
    for copy, original in sorted(copies(paths).items()):
        click.echo(escaped(f"{copy} is not read, because {original.name} is in the same folder."), err=True)


def _path_text(path: Path) -> str:
    """Return a path as valid Unicode for JSON, because file names may contain any bytes."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _matching(source: Iterator[LocatedEvent], wanted: Filter, *, complains: bool) -> Iterator[LocatedEvent]:
    """Yield the wanted events. With `complains`, print lines that are not valid events on
    stderr.
    """
    for located in source:
        if located.event is None:
            if complains:
                click.echo(escaped(f"{located.place.file}:{located.place.line}: {located.problem}"), err=True)
        elif wanted.matches(located.event):
            yield located


def _print(located: LocatedEvent, *, as_json: bool) -> None:
    assert located.event is not None
    if as_json:
        click.echo(located.text)
    else:
        one_line(located.event)
