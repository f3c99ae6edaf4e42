"""The steps of `minicontroller demo`: commands as one would type them, and the requests that they
send.

Rule: the command line and the request of a step are made from the same values, so the demo shows
exactly what it sends.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ..client.admin_client import AdminClient
from ..client.configs import AlterConfigOp, Resource
from ..client.errors import AdminError
from ..client.topics import NewTopic
from ..protocol.config_resources import ConfigOperation
from .demo_policy import DAY_MS


class DemoResult(msgspec.Struct, frozen=True):
    """The result for one topic or other resource of a step."""

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
