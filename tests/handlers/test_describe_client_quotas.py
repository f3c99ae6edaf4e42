"""DescribeClientQuotas: filters, and what cannot be one."""

from typing import Any

import pytest

from tests.handlers.client_quotas import CONNECTIONS, MUTATION, Names, alter, describe, entry, shown
from tests.handlers.ruling import Ruling, ruling

EXACT, DEFAULT, ANY = 0, 1, 2


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        yield cluster


@pytest.fixture(name="filled")
async def filled_cluster(cluster: Ruling) -> Ruling:
    entities: list[Names] = [
        {"user": "a"},
        {"user": None},
        {"user": "a", "client-id": "x"},
        {"user": "a", "client-id": None},
        {"client-id": "x"},
    ]
    await alter(
        cluster, *(entry(each, {MUTATION: 1.0}) for each in entities), entry({"ip": "1.2.3.4"}, {CONNECTIONS: 1.0})
    )
    return cluster


@pytest.mark.parametrize(
    ("components", "loose", "strict"),
    [
        ([], 6, 0),
        ([("user", EXACT, "a")], 3, 1),
        ([("user", DEFAULT, None)], 1, 1),
        ([("user", ANY, None)], 4, 2),
        ([("client-id", EXACT, "x")], 2, 1),
        ([("client-id", ANY, None)], 3, 1),
        ([("user", ANY, None), ("client-id", ANY, None)], 2, 2),
        ([("user", EXACT, "a"), ("client-id", DEFAULT, None)], 1, 1),
        ([("ip", ANY, None)], 1, 1),
        ([("ip", EXACT, "1.2.3.4")], 1, 1),
        ([("ip", DEFAULT, None)], 0, 0),
        ([("user", EXACT, "nobody")], 0, 0),
        ([("user", EXACT, ""), ("client-id", ANY, None)], 0, 0),
    ],
)
async def test_filters(filled: Ruling, components: list[Any], loose: int, strict: int) -> None:
    """A strict filter finds entities of exactly its types, and any other finds those with more."""
    assert len(await shown(filled, *components)) == loose
    assert len(await shown(filled, *components, strict=True)) == strict


@pytest.mark.parametrize(
    ("components", "code", "text"),
    [
        ([("user", 0, "a"), ("user", 0, "b")], 42, "Duplicate user filter component entity type"),
        ([("client-id", 0, "a"), ("client-id", 0, "b")], 42, "Duplicate client filter component entity type"),
        ([("ip", 0, "a"), ("ip", 0, "b")], 42, "Duplicate ip filter component entity type"),
        ([("", 0, "a")], 42, "Unexpected empty filter component entity type"),
        ([("foo", 0, "a")], 35, "Custom entity type 'foo' not supported"),
        ([("user", 0, None)], 42, "The user filter component names nobody"),
        ([("ip", 0, "")], 42, "The ip filter component names nobody"),
        ([("user", 0, "a"), ("client-id", 0, "")], 42, "The client filter component names nobody"),
        ([("user", 3, "a")], 42, "Unknown match type 3 of the user filter component"),
        (
            [("user", 0, "a"), ("ip", 0, "b")],
            42,
            (
                "Invalid entity filter component combination, IP filter component should not be used with "
                "user or clientId filter component."
            ),
        ),
    ],
)
async def test_filters_that_cannot_be(cluster: Ruling, components: list[Any], code: int, text: str) -> None:
    """The whole request is refused, with Kafka's text where Kafka has one."""
    answer = await describe(cluster, *components)
    assert (answer.error_code, answer.error_message, answer.entries) == (code, text, None)
