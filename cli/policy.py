"""`minicontroller policy check` and `policy test` try rules before they are in force.

Rule: rules are loaded and evaluated by the code that nodes use, so the results are the same. The
exit code is 0 for success, 1 if a file has a mistake or a case failed, 2 for a usage error, and 3
if a sample request would be refused.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import click

from ..policies.rules.mistakes import RuleFileError
from ..policies.rules.ruleset import RuleSet, read_rule_files
from ..policies.verdict import RuleAction
from ..text import plural
from .policy_cases import Case, CaseError, CaseOutcome, judged, read_all, read_cases, read_request

REFUSED = 3
"""The exit code for a refused sample request, which differs from the code for a mistake in a
file.
"""
UNSENDABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches the characters that XML 1.0 cannot contain."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("policy")
def policy() -> None:
    """Check rules for topics, and try them on requests."""


@policy.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--request", "requests", multiple=True, type=FILE, help="Sample request in TOML; repeatable.")
def check(files: tuple[Path, ...], requests: tuple[Path, ...]) -> None:
    """Report every mistake in rule files. Each is reported by file, line and column; rules without
    a mistake are then tried on the sample requests.

    The exit code is 3 if one of the requests would be refused, 1 if a file has a mistake.
    """
    cases, mistakes = _cases(requests, lambda file: [read_request(file)])
    rules = _rules(files, mistakes)
    click.echo(f"{plural(len(rules.rules), 'rule')}, no mistake; {rules.hash}")
    for warning in rules.warnings:
        click.echo(f"warning: {warning}", err=True)
    if mistakes:
        raise click.ClickException("\n".join(mistakes))
    outcomes = [judged(case, rules) for case in cases]
    for outcome in outcomes:
        _print(outcome)
    if any(_is_refused(outcome) for outcome in outcomes):
        raise click.exceptions.Exit(REFUSED)


@policy.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--junit", "report", type=click.Path(dir_okay=False, path_type=Path), help="Also write the results as JUnit XML."
)
def test(folder: Path, report: Path | None) -> None:
    """Run the cases in the files of DIR. Each *.cases.toml names the rules, the requests and the
    expected results.
    """
    cases, mistakes = _cases(sorted(folder.rglob("*.cases.toml")), read_cases)
    if mistakes:
        raise click.ClickException("\n".join(mistakes))
    if not cases:
        raise click.UsageError(f"There is no *.cases.toml with a case in the folder {folder.resolve().name}.")
    known: dict[tuple[Path, ...], RuleSet] = {}
    outcomes = []
    for case in cases:
        if case.rules not in known:
            known[case.rules] = _rules(case.rules)
        outcomes.append(judged(case, known[case.rules]))
    for outcome in outcomes:
        if outcome.failure is not None:
            click.echo(f"{outcome.case.file}: {outcome.case.name}: {outcome.failure}")
    if report is not None:
        _write(report, junit(outcomes))
    failed = sum(outcome.failure is not None for outcome in outcomes)
    click.echo(f"{plural(len(outcomes), 'case')}, {failed} failed")
    if failed:
        raise click.exceptions.Exit(1)


def _cases(files: Sequence[Path], read: Callable[[Path], Sequence[Case]]) -> tuple[list[Case], list[str]]:
    try:
        return read_all(files, read), []
    except CaseError as error:
        return [], str(error).split("\n")


def _rules(files: Sequence[Path], others: Sequence[str] = ()) -> RuleSet:
    """Return the rules of these files; `others` are mistakes to print beside theirs."""
    try:
        return read_rule_files(files)
    except RuleFileError as error:
        click.echo("\n".join((str(error), *others)), err=True)
        raise click.ClickException(f"{plural(len(error.mistakes) + len(others), 'mistake')}.") from None


def _print(outcome: CaseOutcome) -> None:
    click.echo(f"{outcome.case.file}: {outcome.decision}")
    for finding in outcome.findings:
        click.echo(f"  {finding.action.value} by {finding.rule}: {finding.message}")
        if finding.error is not None:
            click.echo(f"    {finding.error}")
    if _is_refused(outcome):
        click.echo("  The caller gets POLICY_VIOLATION (44).")


def _is_refused(outcome: CaseOutcome) -> bool:
    return outcome.decision == RuleAction.DENY.value


def _write(report: Path, text: str) -> None:
    try:
        report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"Cannot write {report}: {error}.") from None


def junit(outcomes: Sequence[CaseOutcome]) -> str:
    failed = sum(outcome.failure is not None for outcome in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0", "skipped": "0"}
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": "policy", **counts})
    for outcome in outcomes:
        case = SubElement(
            suite,
            "testcase",
            {"classname": _clean(str(outcome.case.file)), "name": _clean(outcome.case.name), "time": "0"},
        )
        if outcome.failure is not None:
            SubElement(case, "failure", {"message": _clean(outcome.failure)}).text = _clean(outcome.failure)
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _clean(text: str) -> str:
    return UNSENDABLE.sub("?", text)
