"""Delegation tokens: who may create, renew, expire and see them, and logging in by them."""

from collections.abc import Iterable, Mapping

from tests.conformance.case import Case, ScramFinal, ScramFirst, TokenHmacOf, TokenIdOf, each_version
from tests.conformance.cases.acl_requests import (
    ADMIN,
    ALICE,
    BOB,
    CAROL,
    DELEGATION_TOKEN,
    DESCRIBE,
    EVERYTHING,
    USER,
    acl,
    by,
    created,
    removed,
)

CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


def principals(*names: str, kind: str = "User") -> list[dict[str, str]]:
    return [{"principal_type": kind, "principal_name": name} for name in names]


def new(name: str, *, lifetime_ms: int = -1, renewers: Iterable[Mapping[str, str]] = (), **owner: str | None) -> Case:
    """In the newest version; `kind` and `owner` are those of another owner."""
    body = {
        "owner_principal_type": owner.get("kind", "" if "owner" not in owner else "User"),
        "owner_principal_name": owner.get("owner", ""),
        "renewers": list(renewers),
        "max_lifetime_ms": lifetime_ms,
    }
    return Case(name, "CreateDelegationToken", 3, body)


def renewed(name: str, hmac: TokenHmacOf | bytes, period_ms: int = -1) -> Case:
    return Case(f"renew {name}", "RenewDelegationToken", 2, {"hmac": hmac, "renew_period_ms": period_ms})


def expired(name: str, hmac: TokenHmacOf | bytes, period_ms: int = HOUR_MS) -> Case:
    return Case(f"expire {name}", "ExpireDelegationToken", 2, {"hmac": hmac, "expiry_time_period_ms": period_ms})


def seen(name: str, *owners: str) -> Case:
    return Case(f"tokens of {name}", "DescribeDelegationToken", 3, {"owners": principals(*owners) if owners else None})


FIRST = TokenHmacOf("alice: new v3")
OTHERS_TOKEN = TokenHmacOf("bob: own v3")

CREATED = [
    *by(
        ALICE,
        [
            *each_version("new", "CreateDelegationToken", {"renewers": principals("bob"), "max_lifetime_ms": -1}),
            new("no renewers"),
            new("lifetime of an hour", lifetime_ms=HOUR_MS),
            new("lifetime of two days", lifetime_ms=2 * DAY_MS),
            new("lifetime of eight days", lifetime_ms=8 * DAY_MS),
            new("lifetime of nothing", lifetime_ms=0),
            new("negative lifetime", lifetime_ms=-5),
            new("longest lifetime", lifetime_ms=2**63 - 1),
            new("two renewers", renewers=principals("bob", "carol")),
            new("renewer twice", renewers=principals("bob", "bob")),
            new("a group renews", renewers=principals("admins", kind="Group")),
            new("a kind in small letters renews", renewers=principals("bob", kind="user")),
            new("nobody renews", renewers=principals("")),
            new("for herself", owner="alice"),
            new("for nobody", owner="", kind="User"),
            new("for null", owner=None, kind=None),
            new("for bob", owner="bob"),
            new("for a group", owner="admins", kind="Group"),
        ],
    ),
    *by(BOB, [new("own")]),
    *by(ADMIN, [new("for bob", owner="bob"), new("for somebody unknown", owner="nobody-knows")]),
    *by(ADMIN, created("may create for bob", acl(CREATE_TOKENS, USER, "User:bob", principal="User:carol"))),
    *by(CAROL, [new("for bob", owner="bob"), new("for alice", owner="alice")]),
]

CHANGED = [
    *by(
        ALICE,
        [
            renewed("for nothing of a token", TokenHmacOf("alice: new v0"), 0),
            *each_version("renew", "RenewDelegationToken", {"hmac": FIRST, "renew_period_ms": -1}),
            *each_version("expire", "ExpireDelegationToken", {"hmac": FIRST, "expiry_time_period_ms": HOUR_MS}),
            renewed("for two days", FIRST, 2 * DAY_MS),
            renewed("for eight days", FIRST, 8 * DAY_MS),
            expired("in eight days", FIRST, 8 * DAY_MS),
            expired("at once", TokenHmacOf("alice: new v1"), 0),
            expired("by removal", TokenHmacOf("alice: new v2"), -1),
            expired("what is removed", TokenHmacOf("alice: new v2")),
            renewed("what is removed", TokenHmacOf("alice: new v2")),
            renewed("unknown", b"unknown"),
            renewed("empty", b""),
            expired("unknown", b"unknown"),
            renewed("of bob", OTHERS_TOKEN),
            expired("of bob", OTHERS_TOKEN),
            renewed("after it expired", TokenHmacOf("alice: new v0")),
            expired("after it expired", TokenHmacOf("alice: new v0")),
            renewed("of a short life", TokenHmacOf("alice: lifetime of an hour v3"), 2 * HOUR_MS),
        ],
    ),
    *by(BOB, [renewed("as a renewer", FIRST), expired("as a renewer", FIRST)]),
    *by(
        CAROL,
        [
            renewed("as a stranger", FIRST),
            expired("as a stranger", FIRST),
            renewed("as who asked for it", TokenHmacOf("carol: for bob v3")),
        ],
    ),
    *by(ADMIN, [renewed("as a super user", FIRST), expired("as a super user", FIRST)]),
]


def looked_at(state: str, *users: str) -> list[Case]:
    return [
        case
        for user in users
        for case in by(
            user,
            [
                seen(f"everybody, {state}"),
                seen(f"alice, {state}", "alice"),
                seen(f"bob and carol, {state}", "bob", "carol"),
            ],
        )
    ]


ONE = acl(DESCRIBE, DELEGATION_TOKEN, principal="User:carol") | {"resource_name": TokenIdOf("alice: new v3")}
ALL = acl(DESCRIBE, DELEGATION_TOKEN, "*", principal="User:carol")
OF_ALICE = acl(DESCRIBE_TOKENS, USER, "User:alice", principal="User:carol")

SEEN = [
    *by(ALICE, each_version("tokens", "DescribeDelegationToken", {"owners": None})),
    *by(ALICE, each_version("tokens of nobody", "DescribeDelegationToken", {"owners": []})),
    *by(ALICE, [seen("zzz", "zzz")]),
    *looked_at("no ACLs", ALICE, BOB, CAROL, ADMIN),
    *by(ADMIN, created("may see one", ONE)),
    *looked_at("one shown", CAROL),
    *by(ADMIN, [*removed("tokens", EVERYTHING), *created("may see the tokens of alice", OF_ALICE)]),
    *looked_at("those of alice shown", CAROL),
    *by(ADMIN, [*removed("tokens of alice", EVERYTHING), *created("may see all", ALL)]),
    *looked_at("all shown", CAROL),
    *by(ADMIN, removed("all tokens", EVERYTHING)),
]


def dialogue(name: str, user: str, mechanism: str, first: ScramFirst, final: ScramFinal | None) -> list[Case]:
    """A login with SCRAM, in the newest versions."""
    steps = [
        Case(f"{name}, handshake", "SaslHandshake", 1, {"mechanism": mechanism}, dialogue=name, user=user),
        Case(f"{name}, first", "SaslAuthenticate", 2, {"auth_bytes": first}, dialogue=name, user=user),
    ]
    if final is not None:
        steps.append(Case(f"{name}, final", "SaslAuthenticate", 2, {"auth_bytes": final}, dialogue=name, user=user))
    return steps


def by_token(name: str, token: str, mechanism: str = SHA_256, more: str = ",tokenauth=true") -> list[Case]:
    first = ScramFirst(TokenIdOf(token), more=more)
    return dialogue(name, "", mechanism, first, ScramFinal(mechanism, TokenHmacOf(token)))


def asked_by_token(name: str) -> list[Case]:
    """Return the cases on the connection of that dialogue."""
    body = {"topics": None, "include_topic_authorized_operations": True}
    cases = [
        new("create"),
        renewed("itself", FIRST),
        expired("itself", FIRST),
        seen("everybody"),
        Case("topics", "Metadata", 12, body),
        Case("cluster", "DescribeCluster", 1, {"include_cluster_authorized_operations": True}),
    ]
    return [Case(f"{name}, {case.name}", case.api, case.version, case.body, dialogue=name) for case in cases]


LOGINS = [
    *by_token("by token", "alice: new v3"),
    *asked_by_token("by token"),
    *by_token("by token and the other mechanism", "alice: no renewers v3", SHA_512),
    *asked_by_token("by token and the other mechanism"),
    *dialogue(
        "by token with another's HMAC",
        "",
        SHA_256,
        ScramFirst(TokenIdOf("alice: new v3"), more=",tokenauth=true"),
        ScramFinal(SHA_256, OTHERS_TOKEN),
    ),
    *dialogue(
        "by an unknown token",
        "",
        SHA_256,
        ScramFirst("unknown", more=",tokenauth=true"),
        ScramFinal(SHA_256, "guessed"),
    ),
    *dialogue(
        "by a token that is no user",
        "",
        SHA_256,
        ScramFirst(TokenIdOf("alice: new v3")),
        ScramFinal(SHA_256, "guessed"),
    ),
    *dialogue(
        "by tokenauth=false",
        "",
        SHA_256,
        ScramFirst(TokenIdOf("alice: new v3"), more=",tokenauth=false"),
        ScramFinal(SHA_256, "guessed"),
    ),
    *dialogue(
        "by a removed token",
        "",
        SHA_256,
        ScramFirst(TokenIdOf("alice: new v2"), more=",tokenauth=true"),
        ScramFinal(SHA_256, "guessed"),
    ),
    *by_token("by an expired token", "alice: new v0"),
    Case("by an expired token, topics", "Metadata", 12, {"topics": None}, dialogue="by an expired token"),
    *by(ADMIN, [new("for a group", owner="admins", kind="Group")]),
    *by_token("by the token of a group", "admin: for a group v3"),
    *by_token("by the token of somebody unknown", "admin: for somebody unknown v3"),
    *asked_by_token("by the token of somebody unknown"),
]

LONGEST_MS = 2**63 - 1
STRANGE = [
    *by(
        ALICE,
        [
            renewed("for ever", TokenHmacOf("alice: no renewers v3"), LONGEST_MS),
            expired("never", TokenHmacOf("alice: for herself v3"), LONGEST_MS),
        ],
    ),
    *by(ADMIN, [new("for bob of no kind", owner="bob", kind=""), new("for bob of null", owner="bob", kind=None)]),
]

CASES = [*CREATED, *CHANGED, *SEEN, *LOGINS, *STRANGE]
