"""Quotas of clients, set and described by who may do that."""

from typing import Any

from tests.conformance.case import Case
from tests.conformance.cases.acl_requests import (
    ADMIN,
    by,
)


def entity(**parts: str | None) -> list[dict[str, Any]]:
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in parts.items()]


def quota(name: str, who: list[dict[str, Any]], *ops: tuple[str, float | None], validate_only: bool = False) -> Case:
    return Case(
        f"alter quotas {name}",
        "AlterClientQuotas",
        1,
        {
            "entries": [
                {"entity": who, "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops]}
            ],
            "validate_only": validate_only,
        },
    )  # fmt: skip


def quotas(name: str, *components: tuple[str, int, str | None], strict: bool = False) -> Case:
    return Case(
        f"describe quotas {name}",
        "DescribeClientQuotas",
        1,
        {
            "components": [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components],
            "strict": strict,
        },
    )


EXACT, DEFAULT, SPECIFIED = 0, 1, 2

CASES = by(
    ADMIN,
    [
        quota("of a user", entity(user="q-alice"), ("producer_byte_rate", 1024.0), ("consumer_byte_rate", 2048.0)),
        quota("of the default user", entity(user=None), ("request_percentage", 50.0)),
        quota("of a client", entity(client_id="q-app"), ("controller_mutation_rate", 10.0)),
        quota("of a pair", entity(user="q-alice", client_id="q-app"), ("producer_byte_rate", 1.0)),
        quota("of a user's default client", entity(user="q-alice", client_id=None), ("producer_byte_rate", 2.0)),
        quota("of both defaults", entity(user=None, client_id=None), ("producer_byte_rate", 3.0)),
        quota("of an ip", entity(ip="10.1.2.3"), ("connection_creation_rate", 100.0)),
        quota("of the default ip", entity(ip=None), ("connection_creation_rate", 200.0)),
        quota("of a strange user", entity(user="q a:b/c*"), ("producer_byte_rate", 9.0)),
        quota("of nobody", [], ("producer_byte_rate", 9.0)),
        quota("of an unknown kind", entity(group="g"), ("producer_byte_rate", 9.0)),
        quota("of an empty name", entity(user=""), ("producer_byte_rate", 9.0)),
        quota("of an ip and a user", entity(user="a", ip="10.1.2.3"), ("producer_byte_rate", 9.0)),
        quota("of a host", entity(ip="no host at all"), ("connection_creation_rate", 9.0)),
        quota("with an unknown key", entity(user="q-alice"), ("nonsense", 9.0)),
        quota("with the key of an ip", entity(user="q-alice"), ("connection_creation_rate", 9.0)),
        quota("with a fraction", entity(ip="10.1.2.3"), ("connection_creation_rate", 1.5)),
        quota("with a fraction of bytes", entity(user="q-alice"), ("producer_byte_rate", 1.5)),
        quota("validated", entity(user="q-bob"), ("producer_byte_rate", 7.0), validate_only=True),
        quota("removed that is not there", entity(user="q-zzz"), ("producer_byte_rate", None)),
        quotas("all"),
        Case("describe quotas all", "DescribeClientQuotas", 0, {"components": [], "strict": False}),
        quotas("strictly nothing", strict=True),
        quotas("a user", ("user", EXACT, "q-alice")),
        quotas("strictly a user", ("user", EXACT, "q-alice"), strict=True),
        quotas("the default user", ("user", DEFAULT, None)),
        quotas("any user", ("user", SPECIFIED, None)),
        quotas("strictly any user", ("user", SPECIFIED, None), strict=True),
        quotas("a pair", ("user", EXACT, "q-alice"), ("client-id", EXACT, "q-app")),
        quotas("ips", ("ip", SPECIFIED, None)),
        quotas("the default ip", ("ip", DEFAULT, None)),
        quotas("an ip and a user", ("ip", SPECIFIED, None), ("user", SPECIFIED, None)),
        quotas("twice", ("user", SPECIFIED, None), ("user", SPECIFIED, None)),
        quotas("an unknown kind", ("group", SPECIFIED, None)),
        quotas("an empty kind", ("", SPECIFIED, None)),
        quota("removed", entity(user="q-alice"), ("producer_byte_rate", None), ("consumer_byte_rate", None)),
        quotas("what is left", ("user", EXACT, "q-alice")),
        # What concerns everybody would delay the requests of the scenarios to come.
        quota("removed of the default user", entity(user=None), ("request_percentage", None)),
        quota("removed of both defaults", entity(user=None, client_id=None), ("producer_byte_rate", None)),
        quota("removed of the default ip", entity(ip=None), ("connection_creation_rate", None)),
        quotas("what is left of defaults", ("user", DEFAULT, None)),
    ],
)
