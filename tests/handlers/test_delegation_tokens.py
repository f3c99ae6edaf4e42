"""The four APIs of delegation tokens, as a real Kafka 3.9.1 with SASL and AclAuthorizer answered:
who may ask, in which order that is checked, and what becomes of a token.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from immutables import Map

from minicontroller.audit.event import Decision, Effect
from minicontroller.clock import Clock, now_ms
from minicontroller.cluster.cache import ImageChanges
from minicontroller.cluster.entities import TokenInformation
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import tokens
from minicontroller.cluster.znodes.tokens import token_path
from minicontroller.controller.broker.delegation_tokens import MAX_CHARACTERS, DelegationTokens
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.header import RequestOrigin
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from minicontroller.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from minicontroller.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from minicontroller.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from minicontroller.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from minicontroller.security.caller import Caller, Listener
from minicontroller.security.credentials import PlainCredentials, ScramCredentials
from minicontroller.security.delegation_tokens import TokenKey, token_password
from minicontroller.security.sasl import Challenge, Proved
from minicontroller.security.scram_credentials import derived_credential
from minicontroller.security.scram_server import scram_mechanism
from tests.audit.logs import decisions_in, events_in
from tests.handlers.asking import Client
from tests.handlers.ruling import Ruling, ruling
from tests.handlers.test_authorization import allowing

KEY = "the-key-of-the-tokens"
SHA256 = "SCRAM-SHA-256"
DAY_MS = 24 * 60 * 60 * 1000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
REQUESTS = (
    (CreateDelegationTokenRequest(), 3),
    (RenewDelegationTokenRequest(hmac=b"x"), 2),
    (ExpireDelegationTokenRequest(hmac=b"x"), 2),
    (DescribeDelegationTokenRequest(owners=None), 3),
)


@asynccontextmanager
async def cluster_with_tokens(**settings: str) -> AsyncIterator[Ruling]:
    async with ruling({"delegation.token.secret.key": KEY, **settings}) as cluster:
        yield cluster


async def create(client: Client, **wanted: Any) -> CreateDelegationTokenResponse:
    answer: CreateDelegationTokenResponse = await client.ask(CreateDelegationTokenRequest(**wanted), 3)
    return answer


def renewers(*names: str, kind: str = "User") -> list[CreatableRenewers]:
    return [CreatableRenewers(principal_type=kind, principal_name=name) for name in names]


async def seen(client: Client, owners: Sequence[str] | None = None) -> list[str]:
    """Return the ids of the tokens that a client is shown."""
    named = None if owners is None else [DescribeDelegationTokenOwner("User", name) for name in owners]
    answer = await client.ask(DescribeDelegationTokenRequest(owners=named), 3)
    assert answer.error_code == 0
    return [token.token_id for token in answer.tokens]


async def expired(cluster: Ruling, client: Client) -> CreateDelegationTokenResponse:
    """Return a token that has expired."""
    made = await create(client)
    answer = await client.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=0), 2)
    assert answer.error_code == 0
    while now_ms() <= answer.expiry_timestamp_ms:
        await trio.lowlevel.checkpoint()
    return made


# ------------------------------------------------------------------ who may ask


@pytest.mark.parametrize("how", [{}, {"principal": ALICE, "by_token": True}], ids=["anonymous", "by a token"])
async def test_some_connections_may_not_ask(how: dict[str, Any]) -> None:
    """A client that has not authenticated, or only by a token, is refused before all else, and the
    answer names whom the request names.
    """
    async with ruling() as cluster:
        client = cluster.client(**how)
        for request, version in REQUESTS:
            assert (await client.ask(request, version)).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        answer = await create(client, owner_principal_type="User", owner_principal_name="x")
        assert (answer.principal_type, answer.principal_name) == ("User", "x")
        requester = (answer.token_requester_principal_type, answer.token_requester_principal_name)
        assert ":".join(requester) == how.get("principal", "User:ANONYMOUS")
        times = (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms)
        assert (times, answer.token_id, answer.hmac) == ((-1, -1, -1), "", b"")


async def test_the_controller_checks_it_again() -> None:
    """A node that forwards says how the client was authenticated, and the controller checks it."""
    async with cluster_with_tokens() as cluster:
        client = cluster.client(peer=True)
        for by_token, code in ((True, 64), (False, 0)):
            origin = RequestOrigin(ALICE, "10.0.0.1", received_node=2, by_token=by_token)
            answer = await client.ask(CreateDelegationTokenRequest(), 3, origin=origin)
            assert answer.error_code == code


async def test_without_a_key_there_are_no_tokens() -> None:
    """Nodes without a key answer DELEGATION_TOKEN_AUTH_DISABLED, after they have checked who asks
    for what.
    """
    async with ruling() as cluster:
        client = cluster.client(principal=ALICE)
        for request, version in REQUESTS:
            assert (await client.ask(request, version)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        answer = await create(client, renewers=renewers("x", kind="Group"))
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def test_the_older_name_of_the_key() -> None:
    """`delegation.token.master.key` is read where `delegation.token.secret.key` is not set."""
    async with ruling({"delegation.token.master.key": KEY}) as cluster:
        made = await create(cluster.client(principal=ALICE))
        assert made.hmac == TokenKey(KEY).hmac(made.token_id)


# ------------------------------------------------------------------ create


async def test_a_token_of_ones_own() -> None:
    """A token is owned by the client that asks for it where it names nobody, and is written with
    Kafka's times; its HMAC follows from its id.
    """
    async with cluster_with_tokens() as cluster:
        request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
        for made in [await cluster.ask(request, version, principal=ALICE) for version in range(4)]:
            assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
            assert made.expiry_timestamp_ms - made.issue_timestamp_ms == DAY_MS
            assert made.max_timestamp_ms - made.issue_timestamp_ms == 7 * DAY_MS
            assert made.hmac == TokenKey(KEY).hmac(made.token_id)
            assert len(made.token_id) == 22
            entry = await cluster.store.get(tokens.token_path(made.token_id))
            assert entry is not None
            written = tokens.decode_token(made.token_id, entry.data, 0)
            assert (written.owner, written.requester, written.renewers) == (ALICE, ALICE, ())
            assert written.expires_ms == made.expiry_timestamp_ms


@pytest.mark.parametrize(("wanted", "lifetime", "expiry"), [(1000, 1000, 1000), (2**63 - 1, 7 * DAY_MS, DAY_MS)])
async def test_the_lifetime_has_a_maximum(wanted: int, lifetime: int, expiry: int) -> None:
    """A shorter lifetime may be asked for, and a longer one is cut to the configured maximum."""
    async with cluster_with_tokens() as cluster:
        made = await create(cluster.client(principal=ALICE), max_lifetime_ms=wanted)
        assert made.max_timestamp_ms - made.issue_timestamp_ms == lifetime
        assert made.expiry_timestamp_ms - made.issue_timestamp_ms == expiry


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("User", "bob", 65),
        ("User", " ", 65),
        ("user", "alice", 65),
        ("Group", "x", 65),
        ("", "bob", 65),
        ("User", "", 0),
        (None, None, 0),
        ("User", None, 0),
        ("User", "alice", 0),
    ],
)
async def test_tokens_for_others_need_a_permission(kind: str | None, name: str | None, code: int) -> None:
    """Whoever is not the owner needs CreateTokens on the owner; an empty name is the client's."""
    async with cluster_with_tokens() as cluster:
        answer = await create(
            cluster.client(principal=ALICE, authorization=allowing()),
            owner_principal_type=kind,
            owner_principal_name=name,
        )
        assert answer.error_code == code
        assert (answer.principal_type or "", answer.principal_name) == (
            (kind or "", name) if code else ("User", "alice")
        )


async def test_a_token_for_another_user() -> None:
    """With the permission a token is made for its owner; the one who asked for it sees it, and
    cannot renew it.
    """
    async with cluster_with_tokens() as cluster:
        allowed = allowing((AclResourceType.USER, BOB, AclOperation.CREATE_TOKENS))
        alice = cluster.client(principal=ALICE, authorization=allowed)
        made = await create(alice, owner_principal_type="User", owner_principal_name="bob")
        assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "bob", "alice")
        assert await seen(alice) == [made.token_id] == await seen(alice, ["alice"])
        assert (await alice.ask(RenewDelegationTokenRequest(hmac=made.hmac), 2)).error_code == 63
        bob = cluster.client(principal=BOB, authorization=allowing())
        assert (await bob.ask(RenewDelegationTokenRequest(hmac=made.hmac), 2)).error_code == 0


@pytest.mark.parametrize("wanted", [{"renewers": renewers("x", kind="Group")}, {"owner_principal_name": "bob"}])
async def test_principals_have_types(wanted: dict[str, Any]) -> None:
    """A renewer that is no user, and an owner without a type, are refused."""
    async with cluster_with_tokens() as cluster:
        answer = await create(cluster.client(principal=ALICE), **wanted)
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def many_renewers(count: int = 600) -> list[CreatableRenewers]:
    return renewers(*(f"{number:0100}" for number in range(count)))


@pytest.mark.parametrize("count", [600, 650, 9_000, 20_000])
async def test_a_token_has_room_for_so_many_renewers(count: int) -> None:
    """More renewers than a token or the audit log takes are refused."""
    async with cluster_with_tokens() as cluster:
        client = cluster.client(principal=ALICE)
        made = await create(client, renewers=many_renewers(count))
        assert made.error_code == (ErrorCode.NONE if count == 600 else ErrorCode.INVALID_REQUEST)
        assert len(await seen(client)) == (1 if count == 600 else 0)


async def test_nobody_fills_the_memory_of_the_cluster_with_tokens() -> None:
    """All tokens that somebody has created, renewed or not, have a bound, which others do not
    share and which an expired token makes room under.
    """
    async with cluster_with_tokens() as cluster:
        alice, bob = cluster.client(principal=ALICE), cluster.client(principal=BOB)
        made = [await create(alice, renewers=many_renewers())]
        await alice.ask(RenewDelegationTokenRequest(hmac=made[0].hmac, renew_period_ms=DAY_MS // 2), 2)
        while made[-1].error_code == ErrorCode.NONE:
            made.append(await create(alice, renewers=many_renewers()))
        assert made[-1].error_code == ErrorCode.INVALID_REQUEST
        assert len(made) == MAX_CHARACTERS // 63_270 + 1
        assert (await create(bob, renewers=many_renewers())).error_code == ErrorCode.NONE
        await alice.ask(ExpireDelegationTokenRequest(hmac=made[0].hmac, expiry_time_period_ms=-1), 2)
        assert (await create(alice, renewers=many_renewers())).error_code == ErrorCode.NONE


# ------------------------------------------------------------------ renew and expire


async def test_a_token_is_renewed_until_its_end() -> None:
    """Its owner and its renewers may renew a token, for the time that they name or the configured
    one, never beyond its maximum lifetime.
    """
    async with cluster_with_tokens() as cluster:
        alice, bob, carol = (cluster.client(principal=each) for each in (ALICE, BOB, CAROL))
        made = await create(alice, renewers=renewers("bob", "bob"), max_lifetime_ms=2 * DAY_MS)
        for client, period, left in ((alice, -5, DAY_MS), (bob, 5000, 5000), (alice, 2**63 - 1, 2 * DAY_MS)):
            before = now_ms()
            answer = await client.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=period), 2)
            assert answer.error_code == 0
            most = min(now_ms() + left, made.max_timestamp_ms)
            assert min(before + left, made.max_timestamp_ms) <= answer.expiry_timestamp_ms <= most
        for request in (RenewDelegationTokenRequest, ExpireDelegationTokenRequest):
            assert (await carol.ask(request(hmac=made.hmac), 2)).error_code == 63
            unknown = await alice.ask(request(hmac=made.hmac[:-1]), 2)
            assert (unknown.error_code, unknown.expiry_timestamp_ms) == (62, -1)


async def test_an_expired_token_can_only_be_removed() -> None:
    """An expired token is listed until it is removed, and cannot be renewed."""
    async with cluster_with_tokens() as cluster:
        alice = cluster.client(principal=ALICE)
        made = await expired(cluster, alice)
        assert (await alice.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=9), 2)).error_code == 66
        again = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=9)
        assert (await alice.ask(again, 2)).error_code == 66
        assert await seen(alice) == [made.token_id]
        removal = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
        before = now_ms()
        answer = await alice.ask(removal, 2)
        assert answer.error_code == 0
        assert before <= answer.expiry_timestamp_ms <= now_ms()
        assert await seen(alice) == []
        assert (await alice.ask(removal, 2)).error_code == 62


async def test_the_controller_removes_expired_tokens(jumping_clock: Clock) -> None:
    """The active controller removes expired tokens from the store, and only these."""
    async with cluster_with_tokens(**{"delegation.token.expiry.check.interval.ms": "60000"}) as cluster:
        alice = cluster.client(principal=ALICE)
        kept, gone = await create(alice), await create(alice, max_lifetime_ms=DAY_MS // 2)
        jumping_clock.advance(DAY_MS / 2 / 1000)
        assert await seen(alice) == [kept.token_id, gone.token_id]
        await trio.sleep(60)
        await trio.testing.wait_all_tasks_blocked()
        assert await cluster.store.get(tokens.token_path(gone.token_id)) is None
        assert await seen(alice) == [kept.token_id]
        assert await cluster.store.get(tokens.token_path(kept.token_id)) is not None


# ------------------------------------------------------------------ describe


async def test_who_sees_a_token() -> None:
    """Owners and renewers see a token, others with one of two permissions; an empty list of owners
    asks for none, and a renewer's name finds the token, too.
    """
    async with cluster_with_tokens() as cluster:
        made = await create(cluster.client(principal=BOB), renewers=renewers("carol"))
        other = await create(cluster.client(principal="User:dora"))
        for principal, granted, ids in (
            (BOB, None, {made.token_id}),
            (CAROL, None, {made.token_id}),
            (ALICE, None, set[str]()),
            (ALICE, (AclResourceType.DELEGATION_TOKEN, other.token_id, AclOperation.DESCRIBE), {other.token_id}),
            (ALICE, (AclResourceType.USER, BOB, AclOperation.DESCRIBE_TOKENS), {made.token_id}),
        ):
            authorization = allowing() if granted is None else allowing(granted)
            client = cluster.client(principal=principal, authorization=authorization)
            assert set(await seen(client)) == ids
            assert await seen(client, []) == []
            assert set(await seen(client, ["bob"])) == ids - {other.token_id}
            assert set(await seen(client, ["carol", "x"])) == ids - {other.token_id}


async def test_a_token_is_described_in_all_versions() -> None:
    """A row has the token's people, times and HMAC."""
    async with cluster_with_tokens() as cluster:
        alice = cluster.client(principal=ALICE)
        made = await create(alice, renewers=renewers("bob", "a,b:c é"))
        for version in range(4):
            (row,) = (await alice.ask(DescribeDelegationTokenRequest(owners=None), version)).tokens
            assert (row.token_id, row.hmac, row.principal_name) == (made.token_id, made.hmac, "alice")
            assert row.token_requester_principal_name == ("alice" if version == 3 else "")
            assert [each.principal_name for each in row.renewers] == ["bob", "a,b:c é"]
            assert row.expiry_timestamp == made.expiry_timestamp_ms


# ------------------------------------------------------------------ logging in


def publish(known: DelegationTokens, **tokens: TokenInformation | None) -> None:
    """Publish an image with these tokens, by their ids, instead of one with another token."""
    there = {token_id: token for token_id, token in tokens.items() if token is not None}
    before, after = Image(tokens=Map({"another": token()})), Image(tokens=Map(there))
    changes = ImageChanges(entities={token_path(token_id): each for token_id, each in tokens.items()})
    known.publish(before, after, changes)


def token(owner: str = ALICE, expires_ms: int = 2_000) -> TokenInformation:
    return TokenInformation("id", owner, owner, (), 0, expires_ms, max(expires_ms, 9_000))


async def test_a_token_is_a_credential_while_it_is_valid(clock: Clock) -> None:
    """A known token that has not expired can be logged in with, by its HMAC in base64."""
    known, expires_ms = DelegationTokens(TokenKey(KEY)), now_ms() + 60_000
    publish(known, id=token(expires_ms=expires_ms))
    found = known.credential("id", "SCRAM-SHA-512")
    assert found is not None
    assert (found.owner, found.expires_ms) == ("alice", expires_ms)
    password = token_password(TokenKey(KEY).hmac("id"))
    assert found.credential == derived_credential("SCRAM-SHA-512", password, salt=found.credential.salt)
    assert known.credential("id", "SCRAM-SHA-512") == found
    assert known.credential("other", "SCRAM-SHA-512") is None
    clock.advance(61)
    assert known.credential("id", "SCRAM-SHA-512") is None
    publish(known, id=token(expires_ms=expires_ms + 60_000))
    assert known.credential("id", "SCRAM-SHA-256") is not None
    publish(known, id=None)
    publish(known, never_known=None)
    assert known.credential("id", "SCRAM-SHA-256") is None
    assert known.with_hmac(TokenKey(KEY).hmac("id")) is None


@pytest.mark.parametrize("owner", ["Group:alice", "user:alice", "User:", ":alice"])
def test_only_users_log_in(owner: str) -> None:
    """A token of a group makes nobody the user of the same name."""
    known = DelegationTokens(TokenKey(KEY))
    publish(known, id=token(owner, now_ms() + 60_000))
    assert known.credential("id", "SCRAM-SHA-256") is None


@pytest.mark.parametrize("by_token", [False, True])
async def test_a_token_makes_nobody_a_node(by_token: bool) -> None:
    """Whoever has a token of the brokers' user is no broker, by its name or by an ACL."""
    listener = Listener(name="PLAINTEXT", inter_broker=True, sasl=True, node_user=PlainCredentials("broker", "secret"))
    caller = Caller(listener, "10.0.0.9", 50_000)
    caller.authenticated_as(Proved("broker", by_token=by_token))
    assert caller.from_peer is not by_token
    async with ruling() as cluster:
        allowed = allowing((AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION))
        client = cluster.client(principal=ALICE, by_token=by_token, authorization=allowed, inter_broker=True)
        answer = await client.ask(ControlledShutdownRequest(broker_id=9), 3)
        assert (answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED) is by_token


@pytest.mark.parametrize(("configured", "least", "most"), [(0, 59_000, 60_000), (5_000, 5_000, 5_000)])
async def test_a_session_ends_with_its_token(configured: int, least: int, most: int) -> None:
    """A client that logs in by a token is its owner until the token expires, or until the
    configured time if that is sooner. When the token is removed, the next request ends the
    connection.
    """
    known = DelegationTokens(TokenKey(KEY))
    publish(known, id=token(expires_ms=now_ms() + 60_000))
    mechanism = scram_mechanism(SHA256, Tokens(known), lambda: b"")
    listener = Listener(name="L", sasl=True, mechanisms={SHA256: mechanism}, reauthenticate_ms={SHA256: configured})
    caller = Caller(listener, "10.0.0.9", 50_000)
    assert caller.sasl is not None
    assert caller.sasl.handshake(SHA256, raw_tokens=False)
    login = ScramCredentials("id", token_password(TokenKey(KEY).hmac("id")), SHA256, by_token=True).exchange()
    challenge = caller.sasl.authenticate(next(login))
    assert isinstance(challenge, Challenge)
    proved = caller.sasl.authenticate(login.send(challenge.token))
    assert isinstance(proved, Proved)
    assert least <= caller.authenticated_as(proved) <= most
    assert (caller.principal, caller.by_token) == (ALICE, True)
    async with cluster_with_tokens() as cluster:
        client = cluster.client(caller=caller)
        assert (await client.ask(CreateDelegationTokenRequest(), 3)).error_code == 64
        publish(known, id=None)
        with pytest.raises(ProtocolError, match="after the client's delegation token was removed"):
            await client.ask(CreateDelegationTokenRequest(), 3)


class Tokens:
    """A source of credentials that has tokens alone."""

    def __init__(self, known: DelegationTokens) -> None:
        self.token_credential = known.credential

    def scram_credential(self, _user: str, _mechanism: str) -> None:
        return None


def test_another_key_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """A node that gets a new token with another HMAC than its own key makes says so once, without
    the HMAC.
    """
    known = DelegationTokens(TokenKey("another"))
    theirs = TokenKey(KEY).hmac("id")
    known.compare_keys("id", TokenKey("another").hmac("id"))
    assert caplog.messages == []
    known.compare_keys("id", theirs)
    known.compare_keys("id", theirs)
    (line,) = caplog.messages
    assert "another delegation.token.secret.key" in line
    assert token_password(theirs) not in line
    DelegationTokens(None).compare_keys("id", theirs)
    assert "has none" in caplog.messages[-1]


# ------------------------------------------------------------------ what is recorded


async def test_the_audit_log_names_tokens_and_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each request is one event with the token's id and what was asked; neither the audit log, the
    log nor the page has an HMAC or the key.
    """
    async with cluster_with_tokens(**{"audit.dir": str(tmp_path)}) as cluster:
        alice = cluster.client(principal=ALICE, authorization=allowing())
        made = await create(alice, renewers=renewers("bob"), max_lifetime_ms=5000)
        await create(alice, owner_principal_type="User", owner_principal_name="bob")
        await alice.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=9), 2)
        await alice.ask(ExpireDelegationTokenRequest(hmac=made.hmac + b"x", expiry_time_period_ms=8), 2)
        await alice.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2)
        await create(cluster.client(principal=BOB, by_token=True))
        decisions = [str(each) for each in cluster.node.recent_decisions]
    check_events(decisions_in(tmp_path), made.token_id)
    for place in (*map(str, events_in(tmp_path)), caplog.text, *decisions):
        assert not any(secret in place for secret in (KEY, token_password(made.hmac), made.hmac.hex(), repr(made.hmac)))


def check_events(events: Sequence[Decision], token_id: str) -> None:
    """Check the events of the requests above."""
    assert [(each.operation, each.name) for each in events] == [
        ("create_delegation_token", token_id),
        ("create_delegation_token", ""),
        ("renew_delegation_token", token_id),
        ("expire_delegation_token", ""),
        ("expire_delegation_token", token_id),
        ("create_delegation_token", ""),
    ]
    assert [each.effect is Effect.APPLIED for each in events] == [True, False, True, False, True, False]
    assert events[0].config_operations == {"max_lifetime_ms": "5000", "renewers": BOB}
    assert events[1].config_operations == {"max_lifetime_ms": "0", "owner": BOB}
