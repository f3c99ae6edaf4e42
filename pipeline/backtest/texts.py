"""The sentences of a back-test's result, for the terminal and the page: the answer, what the
history lacks, and what makes the candidate's verdicts unsteady.
"""

from collections.abc import Iterator, Mapping, Sequence

from ..page.tables import ValueKind as Holds
from ..page.tables import count, plural, shown
from .summary import BacktestSummary
from .verdicts import DifferenceKind

ABOUT = {
    "gap": "Events are missing before this one",
    "begins-late": "The log begins in the middle",
    "dropped": "Events were dropped when they could not be written",
    "misfit": "The log contradicts itself",
    "parted-missing": "Would not exist",
    "parted-more": "Would exist",
    "parted-otherwise": "Would be different",
}
MOOT = {
    "no-topic": "the topic would not exist",
    "topic-exists": "the topic would exist already",
    "partitions": "the topic would have as many partitions already",
    "no-partition": "the topic would not have these partitions",
    "unknown-request": "the log does not have the requested change, because it was refused before a policy judged it",
}


def answer(summary: BacktestSummary) -> str:
    """Say in a sentence what the back-test has shown."""
    asked, kinds, moot = summary.history["asked"], summary.totals["differences"], summary.totals["moot"]
    if not asked and not summary.differences:
        return "No policy judges any request of this time."
    if not summary.differences:
        return f"{plural(asked, 'request')}: the candidate gives each the verdict that it had."
    denied, allowed = kinds[DifferenceKind.NEWLY_DENIED.value], kinds[DifferenceKind.NEWLY_ALLOWED.value]
    text = f"Of {plural(asked, 'request')} the candidate would deny {count(denied)} that passed, and allow {count(allowed)} that were denied."
    if allowed:
        text += " Kafka might still have refused the newly allowed requests; the log cannot show that."
    if moot:
        reasons = "; ".join(f"{count(number)} because {MOOT.get(why, why)}" for why, number in moot.items())
        text += f" Not applicable after that: {reasons}."
    return text


def lacks(summary: BacktestSummary) -> Iterator[str]:
    """Say what the history lacks, and what that means for the result."""
    history = summary.history
    if observed := history["observed"]:
        yield (
            f"The verdicts on {plural(observed, 'request')} were not enforced, because a gateway only observed or its policy had "
            "failed: these requests count as passed, whatever their verdict."
        )
    if missing := history["missing"]:
        yield f"{plural(missing, 'event is', 'events are')} missing in the log: requests among them could not be replayed."
    if uncertain := history["uncertain"]:
        yield (
            f"{plural(uncertain, 'request')} came while not all topics were known: the topic itself was as recorded, "
            "the candidate may have seen others in another state."
        )
    if hidden := history["hidden"]:
        differences = plural(history["hidden_differences"], "difference is", "differences are")
        yield (
            f"The log hides values of configs: {_counts(hidden)}. The candidate saw [hidden] in their place; "
            f"{differences} of such requests."
        )
    if errors := history["not_asked"]:
        by_reason = {
            "deletions of topics that were already deleted" if name == "NONE" else name: errors[name] for name in errors
        }
        yield f"{plural(sum(errors.values()), 'change')} failed before a policy judged them, or where none was enforced: {_counts(by_reason)}."
    if operations := history["unknown_operations"]:
        yield f"Operations that this version does not know were not replayed: {_counts(operations)}."
    if resources := history["other_resources"]:
        yield (
            "Decisions about other resources than topics are not replayed if the log does not have the requested change: "
            f"{_counts(resources)}."
        )
    if operations := history["unjudged"]:
        yield f"Neither the recorded policy nor the candidate judges these: {_counts(operations)}."


def steadiness(summary: BacktestSummary) -> Iterator[str]:
    """Say what may make the candidate answer otherwise another time."""
    tried, totals = summary.candidate, summary.totals
    if totals["errors"]:
        yield f"The candidate failed or took too long in {plural(totals['errors'], 'verdict')}: such requests are refused."
    if totals["rule_errors"]:
        yield f"Rules could not be evaluated {plural(totals['rule_errors'], 'time')}: such requests are refused."
    if tried["unsteady"]:
        yield (
            f"Called again, the candidate decided differently {count(tried['unsteady'])} of {plural(tried['asked_again'], 'time')}: "
            "its verdicts depend on more than the request."
        )
    if tried["deeds"]:
        yield f"The candidate did more than judge: {_names(tried['deeds'], '; ')}."
    if tried["suspicions"]:
        yield f"Its code uses names whose results may differ between runs: {_names(tried['suspicions'], '; ')}."
    if tried["reads"]:
        yield (
            "While it was loaded, it read files that are not sent to the workers, and must be the same on every machine: "
            f"{_names(tried['reads'], ', ')}."
        )
    if tried["in_force"] and summary.differences:
        yield f"The candidate was itself in force for {plural(tried['in_force'], 'request')}: differences there come from its configuration, or it is not deterministic."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(name, Holds.NAME)} ({count(number)})" for name, number in counts.items())


def _names(names: Sequence[str], between: str) -> str:
    return between.join(shown(name, Holds.NAME) for name in names)
