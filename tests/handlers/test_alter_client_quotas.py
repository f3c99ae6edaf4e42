"""AlterClientQuotas: what is stored, what is in force, and what is refused, with Kafka's texts."""

import math
from typing import Any

import pytest

from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import SetData
from tests.handlers.client_quotas import CONNECTIONS, MUTATION, PERCENTAGE, PRODUCED, Names, alter, entry, shown
from tests.handlers.ruling import Ruling, ruling

VERSIONS = [0, 1]


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        yield cluster


async def refusal(cluster: Ruling, entity: Any, ops: dict[str, float | None]) -> tuple[int, str | None]:
    """The code and the text of one entry, which must not depend on `validate_only`."""
    answers = [(await alter(cluster, entry(entity, ops), validate_only=only)).entries[0] for only in (True, False)]
    (told,) = {(each.error_code, each.error_message) for each in answers}
    return told


@pytest.mark.parametrize("version", VERSIONS)
async def test_quotas_are_stored_as_kafka_stores_them(cluster: Ruling, version: int) -> None:
    """Each entity has Kafka's path, each value Java's text, and a notification tells of it."""
    entities: list[tuple[Names, str]] = [
        ({"user": "alice"}, "users/alice"),
        ({"user": None}, "users/<default>"),
        ({"user": "a b/ü*", "client-id": "c"}, "users/a%20b%2F%C3%BC%2A/clients/c"),
        ({"client-id": None, "user": "bob"}, "users/bob/clients/<default>"),
        ({"client-id": "app"}, "clients/app"),
        ({"client-id": None}, "clients/<default>"),
    ]
    ops: dict[str, float | None] = {MUTATION: 12345678.0, PERCENTAGE: 0.5, PRODUCED: 10.0}
    answer = await alter(cluster, *(entry(entity, ops) for entity, _ in entities), version=version)
    assert [(row.error_code, row.error_message) for row in answer.entries] == [(0, None)] * len(entities)
    stored = {MUTATION: "1.2345678E7", PERCENTAGE: "0.5", PRODUCED: "10"}
    assert [await cluster.configs(path) for _, path in entities] == [stored] * len(entities)
    notified = {f"{kind}/{name}" for kind, name in await cluster.notifications()}
    assert notified == {path for _, path in entities}
    found = await shown(cluster, version=version)
    in_order = dict(sorted(ops.items()))
    assert sorted(map(repr, found)) == sorted(repr((_in_order(entity), in_order)) for entity, _ in entities)


def _in_order(entity: Names) -> Names:
    return {kind: entity[kind] for kind in ("user", "client-id", "ip") if kind in entity}


async def test_addresses_have_quotas_of_their_own(cluster: Ruling) -> None:
    """Only connection_creation_rate holds for them, and it for nobody else."""
    await alter(cluster, entry({"ip": "10.0.0.1"}, {CONNECTIONS: 5.0}), entry({"ip": None}, {CONNECTIONS: 20.0}))
    assert await cluster.configs("ips/10.0.0.1") == {CONNECTIONS: "5"}
    assert cluster.node.quotas.clients.connection_rate("10.0.0.1") == 5.0
    assert cluster.node.quotas.clients.connection_rate("10.0.0.2") == 20.0
    assert await refusal(cluster, {"ip": "10.0.0.1"}, {MUTATION: 1.0}) == (42, f"Invalid configuration key {MUTATION}")
    told = await refusal(cluster, {"user": "a"}, {CONNECTIONS: 1.0})
    assert told == (42, f"Invalid configuration key {CONNECTIONS}")


@pytest.mark.parametrize(
    ("entity", "text"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"foo": "x"}, "Unhandled client quota entity type: foo"),
        ({"": "x"}, "Unhandled client quota entity type: "),
        ({"user": ""}, "Empty user not supported"),
        ({"client-id": ""}, "Empty client-id not supported"),
        ({"ip": ""}, "Empty ip not supported"),
        (
            {"ip": "1.2.3.4", "user": "a"},
            "Invalid quota entity combination, IP entity should not be used with user/client ID entity.",
        ),
        ({"ip": "1.2.3.4.5.6"}, "1.2.3.4.5.6 is not a valid IP or resolvable host."),
        ({"ip": "::1"}, "%3A%3A1 is not a valid IP or resolvable host."),
        ({"user": ".."}, "No user can have the name .., because no znode can"),
    ],
)
async def test_entities_that_cannot_be(cluster: Ruling, entity: Names, text: str) -> None:
    """Each is refused by itself, with Kafka's text where Kafka has one."""
    assert await refusal(cluster, entity, {MUTATION: 1.0}) == (ErrorCode.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    ("entity", "key", "value", "text"),
    [
        ({"user": "a"}, "x", 1.0, "Invalid configuration key x"),
        ({"user": "a"}, "SCRAM-SHA-256", 1.0, "Invalid configuration key SCRAM-SHA-256"),
        *(
            ({"user": "a"}, PRODUCED, value, f"Configuration {PRODUCED} must be a LONG value")
            for value in (10.5, -1.0, 1e19, math.inf, math.nan)
        ),
        *(
            ({"ip": "1.2.3.4"}, CONNECTIONS, value, f"Configuration {CONNECTIONS} must be a INT value")
            for value in (0.5, -1.0, 3e9)
        ),
        *(({"user": "a"}, key, -1.0, f"Configuration {key} must be at least 0") for key in (MUTATION, PERCENTAGE)),
        ({"user": "a"}, MUTATION, math.nan, f"Configuration {MUTATION} must be at least 0"),
    ],
)
async def test_values_that_cannot_be(cluster: Ruling, entity: Names, key: str, value: float, text: str) -> None:
    """Whole numbers have to be whole and within their type; no rate is negative or no number."""
    assert await refusal(cluster, entity, {key: value}) == (ErrorCode.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        (PRODUCED, 10.0000009, "10"),
        (PRODUCED, 9.9999995, "10"),
        (PRODUCED, 0.0, "0"),
        (PERCENTAGE, math.inf, "Infinity"),
        (MUTATION, 0.0, "0.0"),
        (MUTATION, 1e-4, "1.0E-4"),
    ],
)
async def test_values_at_the_edge(cluster: Ruling, key: str, value: float, stored: str) -> None:
    """A whole number may be missed by a millionth, as in Kafka."""
    await alter(cluster, entry({"user": "a"}, {key: value}))
    assert await cluster.configs("users/a") == {key: stored}


async def test_an_entry_takes_effect_as_a_whole(cluster: Ruling) -> None:
    """One wrong quota keeps the others of its entry from being set, and no other entry."""
    answer = await alter(
        cluster, entry({"user": "a"}, {MUTATION: 1.0, "x": 1.0}), entry({"user": "b"}, {MUTATION: 1.0})
    )
    assert [row.error_code for row in answer.entries] == [ErrorCode.INVALID_REQUEST, 0]
    assert await cluster.configs("users/a") is None
    assert await cluster.configs("users/b") == {MUTATION: "1.0"}


async def test_an_entity_that_is_named_twice_has_one_row(cluster: Ruling) -> None:
    """Its entries take effect one after the other, and the last of them is answered; so is a type
    that is named twice.
    """
    answer = await alter(
        cluster,
        entry({"user": "a"}, {"x": 1.0}),
        entry({"user": "a"}, {MUTATION: 1.0}),
        entry({"user": "a"}, {PERCENTAGE: 2.0}),
        entry([("user", "t1"), ("user", "t2")], {MUTATION: 1.0}),
    )
    assert [(row.entity[0].entity_name, row.error_code) for row in answer.entries] == [("a", 0), ("t2", 0)]
    assert await cluster.configs("users/a") == {MUTATION: "1.0", PERCENTAGE: "2.0"}
    assert await cluster.configs("users/t1") is None


async def test_what_is_only_validated_is_not_stored(cluster: Ruling) -> None:
    """A dry run gives the answer and changes nothing."""
    answer = await alter(cluster, entry({"user": "a"}, {MUTATION: 1.0}), validate_only=True)
    assert answer.entries[0].error_code == 0
    assert await cluster.configs("users/a") is None
    assert await shown(cluster) == []


async def test_removed_quotas_leave_nothing_behind(cluster: Ruling) -> None:
    """With the last quota go the znode and those above it that hold nothing; to remove what is not
    there is a success.
    """
    await alter(cluster, entry({"user": "u", "client-id": "c"}, {MUTATION: 1.0}))
    assert await cluster.store.children("/config/users/u/clients") == ["c"]
    answer = await alter(
        cluster,
        entry({"user": "u", "client-id": "c"}, {MUTATION: None}),
        entry({"user": "nobody"}, {MUTATION: None, "x": None}),
    )
    assert [row.error_code for row in answer.entries] == [0, 0]
    assert await cluster.store.children("/config/users") == []
    assert await shown(cluster) == []


async def test_credentials_stay_when_quotas_change(cluster: Ruling) -> None:
    """The SCRAM credentials of a user lie in the same znode, where another program wrote them: they
    are neither shown nor removed.
    """
    await alter(cluster, entry({"user": "a"}, {MUTATION: 1.0}))
    stored = encode_config({"SCRAM-SHA-256": "salt=x", MUTATION: "1.0"})
    await cluster.store.commit([SetData("/config/users/a", stored)])
    await alter(cluster, entry({"user": "a"}, {MUTATION: None, "SCRAM-SHA-256": None}))
    assert await cluster.configs("users/a") == {"SCRAM-SHA-256": "salt=x"}
    assert await shown(cluster) == []


async def test_a_new_quota_is_in_force_at_once(cluster: Ruling) -> None:
    """The controller counts by it from the answer on."""
    await alter(cluster, entry({"user": "a"}, {MUTATION: 1.0}))
    limit = cluster.node.quotas.clients.mutation_limit("a", "app")
    assert limit is not None and limit.rate == 1.0
    await alter(cluster, entry({"user": "a"}, {MUTATION: None}))
    assert cluster.node.quotas.clients.mutation_limit("a", "app") is None


async def test_what_is_not_enforced_is_told_once(cluster: Ruling, caplog: pytest.LogCaptureFixture) -> None:
    """Quotas of bytes and of processor time are kept, and the log says who enforces them."""
    for rate in (1.0, 2.0):
        await alter(cluster, entry({"user": "a"}, {PERCENTAGE: rate, PRODUCED: rate}))
    told = [each.getMessage() for each in caplog.records if each.name == "minicontroller.quotas"]
    assert len(told) == 1
    assert "producer_byte_rate, consumer_byte_rate, request_percentage are kept for Kafka's brokers" in told[0]
