"""`minicontroller policy check` and `policy test`: try rules before they are in force.

Rule: the same loading and the same judgement as in a node, so what passes here passes there. Exit
codes: 0 all is well, 1 a file has a mistake or a case failed, 2 the command was called wrongly, 3 a
sample request would be refused.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from ...policies.rules.mistakes import RuleFileError
from ...policies.rules.reading import read_rule_files
from ...policies.rules.ruleset import RuleSet
from ...policies.verdict import Action
from ...text.plurals import plural
from .junit import junit
from .policy_cases import CaseError, CaseOutcome, judged, read_cases, read_request

REFUSED = 3
"""The exit code, other than that of rules with a mistake: who expects a refusal can tell it from a
file that says nothing.
"""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("policy")
def policy() -> None:
    """Rules for topics: what is wrong with them, and what they would decide."""


@policy.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--request", "requests", multiple=True, type=FILE, help="A request in TOML, to be judged; repeatable.")
def check(files: tuple[Path, ...], requests: tuple[Path, ...]) -> None:
    """Name every mistake of rule files. Each is named by file, line and column; the rules are then
    tried on sample requests.

    The exit code is 3 if one of the requests would be refused, 1 if a file has a mistake.
    """
    rules = _rules(files)
    click.echo(f"{plural(len(rules.rules), 'rule')}, no mistake; {rules.hash}")
    for warning in rules.warnings:
        click.echo(f"warning: {warning}", err=True)
    try:
        cases = [read_request(file) for file in requests]
    except CaseError as error:
        raise click.ClickException(str(error)) from None
    outcomes = [judged(case, rules) for case in cases]
    for outcome in outcomes:
        _tell(outcome)
    if any(_is_refused(outcome) for outcome in outcomes):
        raise click.exceptions.Exit(REFUSED)


@policy.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--junit", "report", type=click.Path(dir_okay=False, path_type=Path), help="Also as JUnit's XML, for CI.")
def test(folder: Path, report: Path | None) -> None:
    """Run the cases in the files of DIR. Each *.cases.toml says which rules it is about, what is
    asked, and what is expected.
    """
    try:
        cases = [case for file in sorted(folder.rglob("*.cases.toml")) for case in read_cases(file)]
    except CaseError as error:
        raise click.ClickException(str(error)) from None
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


def _rules(files: Sequence[Path]) -> RuleSet:
    try:
        return read_rule_files(files)
    except RuleFileError as error:
        click.echo(str(error), err=True)
        raise click.ClickException(f"{plural(len(error.mistakes), 'mistake')}.") from None


def _tell(outcome: CaseOutcome) -> None:
    click.echo(f"{outcome.case.file}: {outcome.decision}")
    for finding in outcome.findings:
        click.echo(f"  {finding.action.value} by {finding.rule}: {finding.message}")
        if finding.error is not None:
            click.echo(f"    {finding.error}")
    if _is_refused(outcome):
        click.echo("  The caller gets POLICY_VIOLATION (44).")


def _is_refused(outcome: CaseOutcome) -> bool:
    return outcome.decision == Action.DENY.value


def _write(report: Path, text: str) -> None:
    try:
        report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"Cannot write {report}: {error}.") from None
