"""DescribeUserScramCredentials: every code and text as a Kafka 3.9.1 answered them."""

from collections.abc import Sequence

import pytest

from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from minicontroller.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from tests.handlers.ruling import Ruling, ruling
from tests.handlers.test_authorization import allowing

SHA256, SHA512 = 1, 2
CLUSTER = AclResourceType.CLUSTER


async def put(cluster: Ruling, *users: tuple[str, int, int]) -> None:
    """Make credentials of these users, mechanisms and iterations."""
    upsertions = [
        ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=b"p")
        for name, mechanism, iterations in users
    ]
    answer = await cluster.ask(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)
    assert {row.error_code for row in answer.results} == {0}


async def describe(cluster: Ruling, users: Sequence[str] | None, **how: object) -> DescribeUserScramCredentialsResponse:
    named = None if users is None else [UserName(name=name) for name in users]
    answer: DescribeUserScramCredentialsResponse = await cluster.ask(
        DescribeUserScramCredentialsRequest(users=named), 0, **how
    )
    return answer


async def described(cluster: Ruling, users: Sequence[str] | None) -> dict[str, list[tuple[int, int]]]:
    """The mechanisms and iterations of each user."""
    answer = await describe(cluster, users)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {row.user: [(info.mechanism, info.iterations) for info in row.credential_infos] for row in answer.results}


@pytest.mark.parametrize(
    ("users", "rows"),
    [
        (["nope"], [("nope", 91, "Attempt to describe a user credential that does not exist: nope")]),
        ([""], [("", 91, "Username must not be empty")]),
        (["", ""], [("", 91, "Username must not be empty")]),
        (
            ["zoe", "nope", "adam", "adam", "adam"],
            [
                ("zoe", 0, ""),
                ("nope", 91, "Attempt to describe a user credential that does not exist: nope"),
                ("adam", 92, "Cannot describe SCRAM credentials for the same user twice in a single request: adam"),
            ],
        ),
    ],
)
async def test_users_are_described_as_in_kafka(
    users: list[str], rows: list[tuple[str, int, str]], autojump_clock: object
) -> None:
    """In the order of the request, each once."""
    async with ruling() as cluster:
        await put(cluster, ("zoe", SHA256, 4096), ("adam", SHA256, 4096))
        answer = await describe(cluster, users)
        assert [(row.user, row.error_code, row.error_message) for row in answer.results] == rows
        assert all(bool(row.credential_infos) == (row.error_code == 0) for row in answer.results)


@pytest.mark.parametrize("users", [None, []])
async def test_all_users_are_described_in_order(users: list[str] | None, autojump_clock: object) -> None:
    """Those that have a credential, whatever quotas others have."""
    async with ruling() as cluster:
        await put(cluster, ("zoe", SHA512, 16384), ("adam", SHA256, 4096), ("adam", SHA512, 5000))
        assert await described(cluster, users) == {"adam": [(1, 4096), (2, 5000)], "zoe": [(2, 16384)]}


async def test_only_those_who_may_describe_the_cluster_learn_of_users(autojump_clock: object) -> None:
    """Others get the error for the request as a whole, and no row, also where Kafka answers nothing
    at all.
    """
    async with ruling() as cluster:
        await put(cluster, ("adam", SHA256, 4096))
        for authorization, code in ((allowing(), 31), (allowing((CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE)), 0)):
            for users in (["adam"], None):
                answer = await describe(cluster, users, principal="User:alice", authorization=authorization)
                assert (answer.error_code, len(answer.results)) == (code, 1 if code == 0 else 0)
