"""What `minicontroller demo` plays: requests as one would type them, each carried out by the client
that the commands use.

Rule: what is shown is what is sent. A step has one list of facts, from which both its command line
and its request are made.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ...client.admin_client import AdminClient
from ...client.errors import AdminError
from ...client.model import AlterConfigOp, NewTopic, Resource
from ...protocol.config_resources import ConfigOperation
from .demo_policy import DAY_MS


class DemoResult(msgspec.Struct, frozen=True):
    """What became of one element of a step, or why it was refused."""

    element: str
    done: str
    error: AdminError | None


class DemoStep(msgspec.Struct, frozen=True):
    """One step of the demo: `why` is said first, then `command` as one would type it."""

    why: str
    command: str
    play: Callable[[AdminClient], Awaitable[list[DemoResult]]]


def script() -> tuple[DemoStep, ...]:
    """Return the steps of the demo: from a first topic to its end, with each rule of the policy
    broken once.
    """
    placed, trail = "sales.orders.placed", "audit.changes.trail"
    return (
        _create("A topic as the rules want it.", [placed], partitions=6),
        _create("A name that breaks a rule.", ["Orders_v2"], partitions=6),
        _create(
            "Two in one request: each has an answer of its own.", ["sales.orders.paid", "sales.Paid"], partitions=3
        ),
        _create(
            "Too many partitions; --dry-run asks without doing.", ["sales.clicks.raw"], partitions=400, dry_run=True
        ),
        _create("One for the auditors.", [trail], partitions=1),
        _retention("Records for a year?", placed, 365),
        _retention("For a week, then.", placed, 7),
        _grow("Past the limit, later on: the rule sees what the topic would become.", placed, 24),
        _grow("Within it.", placed, 12),
        _delete("Nobody deletes the auditors' topic; the other one goes.", [trail, "sales.orders.paid"]),
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
