"""The options by which `minicontroller audit` selects events.

Rule: a filter that could select nothing, because no event has such an outcome, kind or API, is a
mistake that names the nearest word. What an event lacks does not match: events other than decisions
have no principal, API, rule or outcome.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

import click
import msgspec

from ..admin.changes import ENTITY_KINDS, KINDS
from ..audit.event import NOT_AUTHENTICATED, AuditEvent, Decision, Observed, Removal, SnapshotTopics
from ..audit.outcomes import ALLOWED, REFUSED, WOULD_BE_REFUSED, would_be_refused
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..text import escaped, parse_time

OUTCOMES = (ALLOWED, REFUSED, WOULD_BE_REFUSED.replace(" ", "-"))
"""The outcomes that are no error's name, as they are written on a command line."""
RESOURCE_KINDS = (*KINDS.values(), *ENTITY_KINDS, "resource")
TOPIC = "topic"
OF_TOPICS_AND_BROKERS = frozenset({TOPIC, "replica", "broker", "logger"})
"""The kinds of resources that have the name of a topic or the id of a broker."""


class Filter(NamedTuple):
    """The events that are wanted: those that match all that is given."""

    topic: str | None = None
    kind: str | None = None
    resource: str | None = None
    """A name, or a pattern of names in which `*` stands for any text."""
    principal: str | None = None
    api: str | None = None
    rule: str | None = None
    outcome: str | None = None
    since: int | None = None
    until: int | None = None

    def matches(self, event: AuditEvent) -> bool:
        if (self.since is not None and event.time_ms < self.since) or (
            self.until is not None and event.time_ms > self.until
        ):
            return False
        names_a_resource = not self.topic is self.kind is self.resource is None
        if names_a_resource and not any(self.has(kind, name) for kind, name in resources_of(event)):
            return False
        if self.principal is self.api is self.rule is self.outcome is None:
            return True
        return isinstance(event, Decision) and self._is_decided_so(event)

    def has(self, kind: str, name: str) -> bool:
        return (
            (self.topic is None or (kind in OF_TOPICS_AND_BROKERS and name == self.topic))
            and (self.kind is None or kind == self.kind)
            and (self.resource is None or name == self.resource or fnmatchcase(name, self.resource))
        )

    def _is_decided_so(self, event: Decision) -> bool:
        return (
            (self.principal is None or (event.principal or NOT_AUTHENTICATED) == self.principal)
            and (self.api is None or event.api == self.api)
            and (self.rule is None or self.rule in _rules_of(event))
            and (self.outcome is None or _has_outcome(event, self.outcome))
        )


def resources_of(event: AuditEvent) -> Iterable[tuple[str, str]]:
    match event:
        case Decision():
            return ((event.resource, event.name),)
        case Removal() | Observed():
            return ((TOPIC, event.topic),)
        case SnapshotTopics():
            return tuple((TOPIC, each.topic) for each in event.topics)
        case _:
            return ()


def narrowed(event: AuditEvent, wanted: Filter) -> AuditEvent:
    """Return a snapshot with only the topics that are wanted; other events are unchanged."""
    if not isinstance(event, SnapshotTopics):
        return event
    topics = tuple(each for each in event.topics if wanted.has(TOPIC, each.topic))
    return msgspec.structs.replace(event, topics=topics)


def _rules_of(event: Decision) -> set[str]:
    """Return the rules that found something in the request of a decision, or refused it."""
    policy = event.policy
    return set() if policy is None else {policy.rule, *(each.rule for each in policy.findings)} - {""}


def _has_outcome(event: Decision, outcome: str) -> bool:
    match outcome:
        case "allowed":
            return event.error_code == 0
        case "refused":
            return event.error_code != 0
        case "would-be-refused":
            return would_be_refused(event) is not None
    return event.error == outcome


# ------------------------------------------------------------------ options


def _moment(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Convert a time option to milliseconds since 1970. Raises click.BadParameter."""
    if value is None:
        return None
    try:
        return int(parse_time(value).timestamp() * 1000)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _outcome(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is None or value.upper() in ErrorCode.__members__:
        return value and value.upper()
    word = value.lower().replace(" ", "-").replace("_", "-")
    if word in OUTCOMES:
        return word
    raise click.BadParameter(
        f"{escaped(value)} is not an outcome: allowed (no error), refused (any error), would-be-refused (no error, "
        "though a rule objects that is not enforced), or the name of one of Kafka's errors, such as "
        f"policy_violation.{_hint(value.lower(), [*OUTCOMES, *map(str.lower, ErrorCode.__members__)])}"
    )


def _kind(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is None or value.lower() in RESOURCE_KINDS:
        return value and value.lower()
    hint = _hint(value.lower(), RESOURCE_KINDS)
    raise click.BadParameter(f"{escaped(value)} is not a kind of resource: {', '.join(RESOURCE_KINDS)}.{hint}")


def _api(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return Kafka's name of an API. Raises click.BadParameter for what is none."""
    if value is None:
        return None
    names = {key.name.replace("_", "").lower(): key.name.title().replace("_", "") for key in ApiKey}
    if value.lower() in names:
        return names[value.lower()]
    raise click.BadParameter(
        f"{escaped(value)} is not one of Kafka's APIs, such as CreateTopics.{_hint(value.lower(), names, names.get)}"
    )


def _hint(value: str, known: Iterable[str], shown: Callable[[str], str | None] = lambda word: word) -> str:
    near = get_close_matches(value, list(known), n=1)
    return f" Did you mean {shown(near[0])}?" if near else ""


_OPTIONS = (
    click.option("--topic", metavar="NAME", help="Only events of this topic or broker."),
    click.option(
        "--kind",
        metavar="KIND",
        callback=_kind,
        help=f"Only events of this kind of resource: {', '.join(RESOURCE_KINDS)}.",
    ),
    click.option(
        "--resource",
        metavar="NAME",
        help="Only events of resources of this name, such as alice or Topic:PREFIXED:sales.; * stands for any text.",
    ),
    click.option("--principal", help="Only events of this principal, or of '(not authenticated)'."),
    click.option("--api", metavar="API", callback=_api, help="Only events of this API, such as CreateAcls."),
    click.option("--rule", metavar="NAME", help="Only events in which this rule found something."),
    click.option(
        "--outcome",
        callback=_outcome,
        help="Only events with this error, or `allowed` (no error), `refused` (any error), or `would-be-refused` "
        "(no error, though a rule objects that is not enforced).",
    ),
    click.option(
        "--since", metavar="TIME", callback=_moment, help="Only events since this time, or this age, such as 90m."
    ),
    click.option("--until", metavar="TIME", callback=_moment, help="Only events until this time."),
)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
