"""What came of a back-test, in sentences: the same on the terminal and on the page.

Rule: each sentence says a number and what it means. What the history lacks, and what may make the
candidate answer otherwise tomorrow, is said whether it is asked for or not.
"""

from collections.abc import Iterator

from ..page.sheet import Kind as Holds
from ..page.sheet import plural, shown
from .summary import Summary
from .verdicts import Kind

ABOUT = {
    "gap": "Events are missing before this one",
    "begins-late": "The log begins in the middle",
    "dropped": "Events were dropped when they could not be written",
    "misfit": "The log does not fit itself",
    "parted-missing": "Would not be there",
    "parted-more": "Would be there",
    "parted-otherwise": "Would be otherwise",
}
"""Titles of notes."""
NONE, NO_ERROR = "NONE", "deletions of what was deleted already"
MOOT = {
    "no-topic": "there would be no such topic",
    "topic-exists": "the topic would be there already",
    "partitions": "the topic would have as many partitions already",
    "no-partition": "the topic would not have these partitions",
    "unknown-request": "the log does not tell what was asked, because it was refused before the policy had its turn",
}


def answer(summary: Summary) -> str:
    """Say in a sentence what the back-test has shown."""
    history, totals = summary.history, summary.totals
    if not history.asked and not summary.differences:
        return "There is no request in this time that a policy is asked about."
    if not summary.differences:
        return f"{plural(history.asked, 'request')}: the candidate says of each what was said then."
    kinds = totals.differences
    text = (
        f"Of {plural(history.asked, 'request')} the candidate would deny {_number(kinds[Kind.NEWLY_DENIED.value])} that passed, and allow "
        f"{_number(kinds[Kind.NEWLY_ALLOWED.value])} that were denied."
    )
    if kinds[Kind.NEWLY_ALLOWED.value]:
        text += (
            " What is newly allowed, Kafka might still have refused: nobody knows what it would have had against it."
        )
    if totals.moot:
        moot = "; ".join(f"{_number(number)} because {MOOT.get(why, why)}" for why, number in totals.moot.items())
        text += f" Moot after that: {moot}."
    return text


def lacks(summary: Summary) -> Iterator[str]:
    """Say what the history lacks, and what that means for the result."""
    history = summary.history
    if history.missing:
        yield (
            f"{plural(history.missing, 'event')} {'is' if history.missing == 1 else 'are'} missing in the log: requests among them could not be replayed."
        )
    if history.uncertain:
        yield (
            f"{plural(history.uncertain, 'request')} came while not all topics were known: the topic itself was as recorded, "
            "others may have been otherwise than the candidate saw them."
        )
    if history.hidden:
        keys = ", ".join(f"{shown(key, Holds.NAME)} ({_number(number)})" for key, number in history.hidden.items())
        yield (
            f"The log hides values of configs: {keys}. The candidate saw [hidden] in their place; "
            f"{plural(history.hidden_differences, 'difference')} {'is' if history.hidden_differences == 1 else 'are'} of such requests."
        )
    if history.not_asked:
        errors = ", ".join(
            f"{NO_ERROR if name == NONE else shown(name, Holds.NAME)} ({_number(number)})"
            for name, number in history.not_asked.items()
        )
        total = sum(history.not_asked.values())
        yield f"{plural(total, 'change')} failed before any policy was asked: {errors}."
    if history.unknown_operations:
        operations = ", ".join(
            f"{shown(name, Holds.NAME)} ({_number(number)})" for name, number in history.unknown_operations.items()
        )
        yield f"Operations that this version does not know were not replayed: {operations}."
    if history.other_resources:
        resources = ", ".join(
            f"{shown(name, Holds.NAME)} ({_number(number)})" for name, number in history.other_resources.items()
        )
        yield (
            "Decisions about other resources than topics are not replayed where the log does not tell what was asked: "
            f"{resources}."
        )
    if history.unjudged:
        operations = ", ".join(
            f"{shown(name, Holds.NAME)} ({_number(number)})" for name, number in history.unjudged.items()
        )
        yield f"No policy judges these, then or now: {operations}."


def steadiness(summary: Summary) -> Iterator[str]:
    """Say what may make the candidate answer otherwise another time."""
    tried = summary.candidate
    if summary.totals.errors:
        yield f"The candidate failed or took too long in {plural(summary.totals.errors, 'verdict')}: such requests are refused."
    if summary.totals.rule_errors:
        yield f"Rules could not be evaluated {plural(summary.totals.rule_errors, 'time')}: such requests are refused."
    if tried.unsteady:
        yield f"Asked again, the candidate said something else {_number(tried.unsteady)} of {plural(tried.asked_again, 'time')}: its answers hang on more than the question."
    if tried.deeds:
        yield f"While it was asked, the candidate did more than judge: {'; '.join(shown(deed, Holds.NAME) for deed in tried.deeds)}."
    if tried.suspicions:
        yield f"Its code names what may answer otherwise another time: {'; '.join(shown(each, Holds.NAME) for each in tried.suspicions)}."
    if tried.reads:
        yield f"While it was loaded it read files that do not travel with it, and must be the same on every machine: {', '.join(shown(each, Holds.NAME) for each in tried.reads)}."
    if tried.in_force and summary.differences:
        yield f"This very policy was in force for {plural(tried.in_force, 'request')}: differences there come of its configuration or its moods."


def _number(number: int) -> str:
    return f"{number:,}"
