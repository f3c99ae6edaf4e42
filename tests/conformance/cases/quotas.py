"""Quotas of users, clients and addresses: what can be set, what is shown, and what is refused."""

import math
from collections.abc import Sequence
from typing import Any

from tests.conformance.case import Body, Case, each_version

MUTATION, PERCENTAGE, PRODUCED = "controller_mutation_rate", "request_percentage", "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"
EXACT, DEFAULT, ANY = 0, 1, 2
USER, CLIENT, IP = "user", "client-id", "ip"
LAST = 1

Named = tuple[str, str | None]
Ops = dict[str, float | None]


def entity(*named: Named) -> list[Body]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in named]


def entry(named: Sequence[Named], ops: Ops) -> Body:
    """Return an entry for an entity and its operations; None removes a quota."""
    return {
        "entity": entity(*named),
        "ops": [
            {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
            for key, value in ops.items()
        ],
    }


def altered(*entries: Body, validate_only: bool = False) -> Body:
    return {"entries": list(entries), "validate_only": validate_only}


def alter(name: str, *entries: Body, **how: Any) -> Case:
    return Case(name, "AlterClientQuotas", LAST, altered(*entries, **how))


def asked(*components: tuple[str, int, str | None], strict: bool = False) -> Body:
    parts = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    return {"components": parts, "strict": strict}


def describe(name: str, *components: tuple[str, int, str | None], **how: Any) -> Case:
    return Case(name, "DescribeClientQuotas", LAST, asked(*components, **how))


def value(key: str, number: float, kind: str = USER) -> list[Case]:
    name = "quotas-n" if kind == USER else "10.1.1.1"
    return [
        alter(f"{'dry ' if dry else ''}{key}={number}", entry([(kind, name)], {key: number}), validate_only=dry)
        for dry in (True, False)
    ]


REFUSED: list[tuple[str, list[Named]]] = [
    ("nobody", []),
    ("unknown type", [("foo", "x")]),
    ("no type", [("", "x")]),
    ("empty user", [(USER, "")]),
    ("empty client", [(CLIENT, "")]),
    ("empty address", [(IP, "")]),
    ("address and user", [(IP, "1.2.3.4"), (USER, "a")]),
    ("no address", [(IP, "1.2.3.4.5.6")]),
    ("address of version 6", [(IP, "::1")]),
]

FILTERS: list[tuple[str, list[tuple[str, int, str | None]]]] = [
    ("all", []),
    ("a user", [(USER, EXACT, "quotas-a")]),
    ("default user", [(USER, DEFAULT, None)]),
    ("any user", [(USER, ANY, None)]),
    ("a client", [(CLIENT, EXACT, "quotas-c")]),
    ("any client", [(CLIENT, ANY, None)]),
    ("any pair", [(USER, ANY, None), (CLIENT, ANY, None)]),
    ("a user and the default client", [(USER, EXACT, "quotas-a"), (CLIENT, DEFAULT, None)]),
    ("any address", [(IP, ANY, None)]),
    ("an address", [(IP, EXACT, "10.0.0.1")]),
    ("default address", [(IP, DEFAULT, None)]),
    ("unknown user", [(USER, EXACT, "quotas-nobody")]),
    ("default with a name", [(USER, DEFAULT, "x")]),
    ("user twice", [(USER, EXACT, "a"), (USER, EXACT, "b")]),
    ("client twice", [(CLIENT, EXACT, "a"), (CLIENT, EXACT, "b")]),
    ("address twice", [(IP, EXACT, "a"), (IP, EXACT, "b")]),
    ("no type", [("", EXACT, "a")]),
    ("unknown type", [("foo", EXACT, "a")]),
    ("nobody", [(USER, EXACT, None)]),
    ("unknown match", [(USER, 3, "a")]),
    ("negative match", [(USER, -1, "a")]),
    ("user and address", [(USER, EXACT, "a"), (IP, EXACT, "b")]),
]

CASES = [
    *each_version("empty cluster", "DescribeClientQuotas", asked()),
    *each_version("none", "AlterClientQuotas", altered()),
    *each_version(
        "a user", "AlterClientQuotas", altered(entry([(USER, "quotas-a")], {PERCENTAGE: 50.0, PRODUCED: 10.0}))
    ),
    alter(
        "all kinds",
        entry([(USER, "quotas-a"), (CLIENT, "quotas-c")], {PERCENTAGE: 1.5}),
        entry([(USER, "quotas-a"), (CLIENT, None)], {PERCENTAGE: 2.0}),
        entry([(USER, None), (CLIENT, "quotas-c")], {PERCENTAGE: 3.0}),
        entry([(USER, None)], {PERCENTAGE: 4.0}),
        entry([(CLIENT, "quotas-c")], {PERCENTAGE: 5.0}),
        entry([(CLIENT, None)], {PERCENTAGE: 6.0}),
        entry([(CLIENT, "quotas a/ü*")], {PERCENTAGE: 7.0}),
        entry([(IP, "10.0.0.1")], {CONNECTIONS: 100_000.0}),
        entry([(IP, None)], {CONNECTIONS: 200_000.0}),
    ),
    *[describe(name, *components) for name, components in FILTERS],
    *[describe(f"strict {name}", *components, strict=True) for name, components in FILTERS],
    *each_version("a user and others", "DescribeClientQuotas", asked((USER, EXACT, "quotas-a"))),
    *[
        alter(f"{'dry ' if dry else ''}{name}", entry(named, {PERCENTAGE: 1.0}), validate_only=dry)
        for name, named in REFUSED
        for dry in (True, False)
    ],
    *[case for number in (10.5, -1.0, 1e19, math.inf, 10.0000009, 9.9999995, 0.0) for case in value(PRODUCED, number)],
    *[case for number in (-1.0, math.nan, 0.5, 1e7, 1e-4, math.inf) for case in value(PERCENTAGE, number)],
    *[case for number in (0.5, -1.0, 3e9) for case in value(CONNECTIONS, number, IP)],
    *value("x", 1.0),
    *value(CONNECTIONS, 1.0),
    *value(PERCENTAGE, 1.0, IP),
    *value("SCRAM-SHA-256", 1.0),
    describe("values", (USER, EXACT, "quotas-n")),
    alter("right and wrong", entry([(USER, "quotas-w")], {PERCENTAGE: 1.0, "x": 1.0}), entry([(USER, "quotas-r")], {PERCENTAGE: 1.0})),
    alter("twice, wrong first", entry([(USER, "quotas-t")], {"x": 1.0}), entry([(USER, "quotas-t")], {PERCENTAGE: 1.0})),
    alter("twice, wrong last", entry([(USER, "quotas-u")], {PERCENTAGE: 1.0}), entry([(USER, "quotas-u")], {"x": 1.0})),
    alter("type twice", entry([(USER, "quotas-1"), (USER, "quotas-2")], {PERCENTAGE: 1.0})),
    alter("no operation", entry([(USER, "quotas-o")], {})),
    alter("dry", entry([(USER, "quotas-d")], {PERCENTAGE: 1.0}), validate_only=True),
    describe("afterwards"),
    alter("removed", entry([(USER, "quotas-a")], {PRODUCED: None}), entry([(USER, "quotas-nobody")], {PERCENTAGE: None, "x": None})),
    describe("after a removal", (USER, ANY, None)),
    alter(
        "all removed",
        *(
            entry(named, {PERCENTAGE: None, PRODUCED: None})
            for named in (
                [(USER, "quotas-a")], [(USER, "quotas-a"), (CLIENT, "quotas-c")], [(USER, "quotas-a"), (CLIENT, None)],
                [(USER, None), (CLIENT, "quotas-c")], [(USER, None)], [(CLIENT, "quotas-c")], [(CLIENT, None)],
                [(CLIENT, "quotas a/ü*")], [(USER, "quotas-n")], [(USER, "quotas-r")], [(USER, "quotas-t")],
                [(USER, "quotas-u")], [(USER, "quotas-2")],
            )
        ),
        entry([(IP, "10.0.0.1")], {CONNECTIONS: None}),
        entry([(IP, None)], {CONNECTIONS: None}),
    ),
    describe("at the end"),
]  # fmt: skip
