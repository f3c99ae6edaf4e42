"""`minicontroller audit` shows the events of audit logs, newest last, and verifies that logs are
complete.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from ...audit.event import NOT_AUTHENTICATED, AuditEvent, Decision, NamedState, Observed, Removal, SnapshotTopics
from ...audit.files import audit_files, copies
from ...audit.reading import Follower, LocatedEvent, is_audit_file, read_all
from ...audit.verifying import Verification
from ...protocol.error_codes import ErrorCode
from ...text.escaping import escaped
from ...text.plurals import plural
from ...text.times import parse_time
from .audit_text import one_line, print_details
from .output import readers_may_leave

LOOK_SECONDS = 0.2
"""The pause in seconds between two reads of a followed log. Polling works on every system;
notifications about growing files do not.
"""

ANY_ERROR_OR_NONE = ("allowed", "refused")
"""The outcomes that are no error's name."""

Wanted = Callable[[AuditEvent], bool]


def _moment(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Convert a time option to milliseconds since 1970. Raises click.BadParameter."""
    if value is None:
        return None
    try:
        return int(parse_time(value).timestamp() * 1000)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _outcome(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Check that an outcome is one that a decision can have. Raises click.BadParameter."""
    if value is None or value.lower() in ANY_ERROR_OR_NONE or value.upper() in ErrorCode.__members__:
        return value
    near = get_close_matches(value.lower(), [*ANY_ERROR_OR_NONE, *map(str.lower, ErrorCode.__members__)], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise click.BadParameter(
        f"{escaped(value)} is not an outcome: allowed (no error), refused (any error), "
        f"or the name of one of Kafka's errors, such as policy_violation.{hint}"
    )


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


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--until", metavar="TIME", callback=_moment, help="Only events until this time."),
        click.option(
            "--since", metavar="TIME", callback=_moment, help="Only events since this time, or this age, such as 90m."
        ),
        click.option(
            "--outcome",
            callback=_outcome,
            help="Only events with this error, or `allowed` (no error), or `refused` (any error).",
        ),
        click.option("--principal", help="Only events of this principal, or of '(not authenticated)'."),
        click.option("--topic", help="Only events of this topic or broker."),
    ):
        command = option(command)
    return command


def wanted(
    topic: str | None, principal: str | None, outcome: str | None, since: int | None, until: int | None
) -> Wanted:
    """Return a predicate for events that match all of the options."""

    def is_wanted(event: AuditEvent) -> bool:
        if (since is not None and event.time_ms < since) or (until is not None and event.time_ms > until):
            return False
        if topic is not None and topic not in names_of(event):
            return False
        if principal is None and outcome is None:
            return True
        return (
            isinstance(event, Decision)
            and (principal is None or (event.principal or NOT_AUTHENTICATED) == principal)
            and (outcome is None or _has_outcome(event, outcome))
        )

    return is_wanted


def names_of(event: AuditEvent) -> tuple[str, ...]:
    match event:
        case Decision():
            return (event.name,)
        case Removal() | Observed():
            return (event.topic,)
        case SnapshotTopics():
            return tuple(each.topic for each in event.topics)
        case _:
            return ()


def _has_outcome(event: Decision, outcome: str) -> bool:
    match outcome.lower():
        case "allowed":
            return event.error_code == 0
        case "refused":
            return event.error_code != 0
        case _:
            return event.error == outcome.upper()


# ------------------------------------------------------------------ commands


@audit.command()
@paths_argument
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(0), help="Number of events to show.")
@click.option("-f", "--follow", is_flag=True, help="Print new events until Ctrl-C.")
@filter_options
@json_option
def tail(*, paths: tuple[Path, ...], lines: int, follow: bool, as_json: bool, **filters: Any) -> None:
    """Show the last events, one line each."""
    is_wanted = wanted(**filters)
    follower = Follower(paths)
    _require_files(paths, may_come=follow)
    source = follower.look() if follow else read_all(paths)
    for located in deque(_matching(source, is_wanted, complains=not follow), maxlen=lines):
        _print(located, as_json=as_json)
    try:
        while follow:
            sys.stdout.flush()
            time.sleep(LOOK_SECONDS)
            for located in _matching(follower.look(), is_wanted, complains=True):
                _print(located, as_json=as_json)
    except KeyboardInterrupt:
        return


@audit.command()
@paths_argument
@filter_options
@json_option
def show(*, paths: tuple[Path, ...], as_json: bool, **filters: Any) -> None:
    """Show all details of events."""
    topic = filters["topic"]
    _require_files(paths)
    for located in _matching(read_all(paths), wanted(**filters), complains=True):
        if as_json:
            _print(located, as_json=True)
        elif located.event is not None:
            print_details(_narrowed(located.event, topic))


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


def _matching(source: Iterator[LocatedEvent], is_wanted: Wanted, *, complains: bool) -> Iterator[LocatedEvent]:
    """Yield the wanted events. With `complains`, print lines that are not valid events on
    stderr.
    """
    for located in source:
        if located.event is None:
            if complains:
                click.echo(escaped(f"{located.place.file}:{located.place.line}: {located.problem}"), err=True)
        elif is_wanted(located.event):
            yield located


def _print(located: LocatedEvent, *, as_json: bool) -> None:
    assert located.event is not None
    if as_json:
        click.echo(located.text)
    else:
        one_line(located.event)


def _narrowed(event: AuditEvent, topic: str | None) -> AuditEvent:
    """Return a snapshot with only the topic that was asked for; other events are unchanged."""
    if topic is None or not isinstance(event, SnapshotTopics):
        return event
    return msgspec.structs.replace(event, topics=tuple(filter(partial(_is_named, topic), event.topics)))


def _is_named(topic: str, each: NamedState) -> bool:
    return each.topic == topic
