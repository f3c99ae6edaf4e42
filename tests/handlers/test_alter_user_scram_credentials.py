"""AlterUserScramCredentials: every code and text as a Kafka 3.9.1 answered them, and what ZooKeeper
and the audit log then have.
"""

import hashlib
import logging
from pathlib import Path

import pytest

from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from minicontroller.security.scram_credentials import derived_credential, parse_credential
from tests.audit.logs import decisions_in
from tests.handlers.ruling import Ruling, ruling
from tests.handlers.test_authorization import allowing
from tests.handlers.test_describe_user_scram_credentials import described

SHA256, SHA512, OTHER = 1, 2, 9
SALT, PASSWORD = b"salt", "planted"
CLUSTER = AclResourceType.CLUSTER
ALICE = "User:alice"

EMPTY = (93, "Username must not be empty")
UNKNOWN = (33, "Unknown SCRAM mechanism")
FEW, MANY = (93, "Too few iterations"), (93, "Too many iterations")
TWICE = (92, "A user credential cannot be altered twice in the same request")
ABSENT = (91, "Attempt to delete a user credential that does not exist")
DONE = (0, "")


def put(
    name: str, mechanism: int = SHA256, iterations: int = 4096, salt: bytes = SALT, salted: bytes | None = None
) -> ScramCredentialUpsertion:
    hash_name = "sha512" if mechanism == SHA512 else "sha256"
    derived = hashlib.pbkdf2_hmac(hash_name, PASSWORD.encode(), salt, max(1, iterations)) if salted is None else salted
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=derived
    )


def drop(name: str, mechanism: int = SHA256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


Alteration = ScramCredentialUpsertion | ScramCredentialDeletion


async def alter(cluster: Ruling, *alterations: Alteration, **how: object) -> list[tuple[str, tuple[int, str | None]]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in alterations if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in alterations if isinstance(each, ScramCredentialUpsertion)],
    )
    answer: AlterUserScramCredentialsResponse = await cluster.ask(request, 0, **how)
    return [(row.user, (row.error_code, row.error_message)) for row in answer.results]


@pytest.mark.parametrize(
    ("alterations", "answers"),
    [
        ([], []),
        ([put("")], [("", EMPTY)]),
        ([drop("")], [("", EMPTY)]),
        ([put("", OTHER)], [("", EMPTY)]),
        ([put("u", 0)], [("u", UNKNOWN)]),
        ([put("u", 3)], [("u", UNKNOWN)]),
        ([drop("u", -1)], [("u", UNKNOWN)]),
        ([put("u", OTHER, 1)], [("u", UNKNOWN)]),
        ([put("u", SHA256, 4095)], [("u", FEW)]),
        ([put("u", SHA256, -5)], [("u", FEW)]),
        ([put("u", SHA256, 16385)], [("u", MANY)]),
        ([put("u"), put("u")], [("u", TWICE)]),
        ([put("u"), drop("u")], [("u", TWICE)]),
        ([drop("u"), drop("u")], [("u", TWICE)]),
        ([put("u", OTHER), put("u", OTHER)], [("u", UNKNOWN)]),
        ([put("u", SHA256, 1), put("u", SHA256, 1)], [("u", FEW)]),
        ([drop("u")], [("u", ABSENT)]),
        ([drop("zoe", SHA512)], [("zoe", ABSENT)]),
        ([drop("u", SHA512), put("u", SHA256, 1)], [("u", FEW)]),
        ([drop("zoe", SHA512), put("zoe")], [("zoe", ABSENT)]),
        ([put("mix", SHA256, 1), put("mix", SHA512)], [("mix", FEW)]),
        ([put("bad", SHA256, 1), put("good")], [("bad", FEW), ("good", DONE)]),
        ([drop("zoe"), put("q", OTHER)], [("q", UNKNOWN), ("zoe", DONE)]),
        ([put("m"), put("b"), drop("a"), drop("z")], [("a", ABSENT), ("z", ABSENT), ("m", DONE), ("b", DONE)]),
        ([put("r"), put("r", SHA512)], [("r", DONE)]),
        ([drop("zoe"), put("zoe", SHA512)], [("zoe", DONE)]),
        ([put("x", SHA256, 16384, b"")], [("x", DONE)]),
        ([put("x", salted=b"a")], [("x", DONE)]),
        ([put("<default>"), put("a/b c,\u00e9\u2028%"), put("a\0b")], [
            ("<default>", DONE), ("a/b c,\u00e9\u2028%", DONE), ("a\0b", DONE)
        ]),
        # Kafka's own server errors, with codes here
        ([put("x", salted=b"")], [("x", (93, "The salted password is empty."))]),
        ([put("x", salt=bytes(1025))], [("x", (93, "The salt has more than 1024 bytes."))]),
        ([put("..")], [("..", (93, "ZooKeeper can hold no user of this name."))]),
    ],
)  # fmt: skip
async def test_alterations_are_checked_as_in_kafka(
    alterations: list[Alteration], answers: list[tuple[str, tuple[int, str]]], autojump_clock: object
) -> None:
    """One bad item fails all of its user's; failures come first. Only what was answered with
    success is then described.
    """
    async with ruling() as cluster:
        assert await alter(cluster, put("zoe")) == [("zoe", DONE)]
        assert await alter(cluster, *alterations) == answers
        done = {user for user, answer in answers if answer == DONE}
        wanted: dict[str, list[tuple[int, int]]] = {each.name: [] for each in alterations if each.name in done}
        wanted.setdefault("zoe", [(SHA256, 4096)])
        for each in alterations:
            if each.name in done and isinstance(each, ScramCredentialUpsertion):
                wanted[each.name].append((each.mechanism, each.iterations))
        assert await described(cluster, None) == {user: infos for user, infos in sorted(wanted.items()) if infos}


async def test_the_keys_are_stored_and_the_password_is_not(autojump_clock: object) -> None:
    """In Kafka's form, beside the user's quotas, with its notification; a user without configs has
    no znode.
    """
    async with ruling() as cluster:
        await alter(cluster, put("al=ice"), put("al=ice", SHA512))
        stored = await cluster.configs("users/al%3Dice")
        assert stored is not None
        assert {name: parse_credential(text) for name, text in stored.items()} == {
            "SCRAM-SHA-256": derived_credential("SCRAM-SHA-256", PASSWORD, salt=SALT),
            "SCRAM-SHA-512": derived_credential("SCRAM-SHA-512", PASSWORD, salt=SALT),
        }
        assert await cluster.notifications() == [("users", "al%3Dice")]
        await alter(cluster, drop("al=ice"))
        assert list(await cluster.configs("users/al%3Dice") or {}) == ["SCRAM-SHA-512"]
        await alter(cluster, drop("al=ice", SHA512))
        assert await cluster.configs("users/al%3Dice") is None


async def test_a_credential_counts_on_the_node_that_was_asked(autojump_clock: object) -> None:
    """From its answer on."""
    async with ruling() as cluster:
        await alter(cluster, put("alice"))
        credential = cluster.node.security.scram_credential("alice", "SCRAM-SHA-256")
        assert credential == derived_credential("SCRAM-SHA-256", PASSWORD, salt=SALT)


async def test_only_those_who_may_alter_the_cluster_make_users(autojump_clock: object) -> None:
    """Without Alter on the cluster every user of the request has the error."""
    async with ruling() as cluster:
        nobody = {"principal": ALICE, "authorization": allowing()}
        # a refused request has one row for each user, sorted
        twice: list[Alteration] = [put("b"), drop("b"), put("c"), drop("a")]
        assert await alter(cluster, *twice, **nobody) == [(user, (31, None)) for user in "abc"]
        rights = allowing((CLUSTER, CLUSTER_NAME, AclOperation.ALTER))
        somebody = {"principal": ALICE, "authorization": rights}
        assert await alter(cluster, put("b"), **somebody) == [("b", DONE)]


def text_of(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.iterdir()).decode()


async def test_the_audit_log_has_the_change_and_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who was changed, by which mechanism, and what came of it; neither salt nor password nor keys,
    there or in the log.
    """
    caplog.set_level(logging.DEBUG)
    salted = b"planted-salted-password"
    async with ruling({"audit.dir": str(tmp_path), "audit.flush": "always"}) as cluster:
        await alter(cluster, put("alice", salt=b"planted-salt", salted=salted), drop("bob", SHA512))
        keys = parse_credential((await cluster.configs("users/alice") or {})["SCRAM-SHA-256"])
    decisions = decisions_in(tmp_path)
    assert {each.name: each.error for each in decisions} == {"alice": "NONE", "bob": "RESOURCE_NOT_FOUND"}
    assert {each.operation for each in decisions} == {"alter_user_scram_credentials"}
    written = text_of(tmp_path) + caplog.text
    assert "SCRAM-SHA-256" in written
    assert "planted" not in written
    assert all(key.hex() not in written for key in (keys.stored_key, keys.server_key))
    assert "stored_key" not in written
