"""Logins by SASL that succeed or fail, by mechanism, and what is asked at the wrong moment.

Each dialogue has a connection of its own. A login that failed is followed by a question that shows
whether the connection is still there.
"""

import struct
from collections.abc import Sequence
from typing import Any

from tests.conformance.case import Case, ScramFinal, ScramFirst
from tests.conformance.cases.acl_requests import ADMIN, by
from tests.conformance.logins import salted_password

PLAIN, SHA_256, SHA_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
SALT, ITERATIONS, PASSWORD = b"0123456789abcdef", 4096, "dave-secret"
MECHANISMS = {1: SHA_256, 2: SHA_512}

Step = tuple[str, int, dict[str, Any]]


def handshake(mechanism: str, version: int = 1) -> Step:
    return ("SaslHandshake", version, {"mechanism": mechanism})


def authenticate(token: bytes | ScramFirst | ScramFinal, version: int = 2) -> Step:
    return ("SaslAuthenticate", version, {"auth_bytes": token})


ALIVE: Step = ("ApiVersions", 0, {})
WHO: Step = ("Metadata", 12, {"topics": None, "include_topic_authorized_operations": True})
RIGHT = b"\0alice\0alice-secret"


def dialogue(name: str, *steps: Step, **first: Any) -> list[Case]:
    return [
        Case(f"{name}, step {number}", *step, dialogue=name, **(first if number == 1 else {}))
        for number, step in enumerate(steps, start=1)
    ]


def plain(name: str, token: bytes, version: int = 2, then: Sequence[Step] = (ALIVE,)) -> list[Case]:
    return dialogue(f"PLAIN {name}", handshake(PLAIN), authenticate(token, version), *then)


def scram(name: str, *messages: ScramFirst | ScramFinal | bytes, mechanism: str = SHA_256) -> list[Case]:
    return dialogue(f"{mechanism} {name}", handshake(mechanism), *map(authenticate, messages), WHO)


def raw(name: str, frame: bytes, *then: Step) -> list[Case]:
    """Bytes that are no request, after the handshake in its first version."""
    begun = dialogue(name, handshake(PLAIN, 0))
    sent = Case(f"{name}, bytes", "SaslAuthenticate", 0, dialogue=name, frame=sized(frame), raw=True)
    return [*begun, sent, *(Case(f"{name}, after", *step, dialogue=name) for step in then)]


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def framed(name: str, api: str, frame: bytes) -> list[Case]:
    """A request that no codec would write, as the first one on its connection."""
    return [
        Case(f"{name}, bytes", api, 0, dialogue=name, frame=frame, raw=True),
        Case(f"{name}, after", *ALIVE, dialogue=name),
    ]


USERS = by(
    ADMIN,
    [
        Case(
            "user for logins",
            "AlterUserScramCredentials",
            0,
            {
                "deletions": [],
                "upsertions": [
                    {
                        "name": "dave",
                        "mechanism": number,
                        "iterations": ITERATIONS,
                        "salt": SALT,
                        "salted_password": salted_password(mechanism, PASSWORD.encode(), SALT, ITERATIONS),
                    }
                    for number, mechanism in MECHANISMS.items()
                ],
            },
        )
    ],
)

HANDSHAKES = [
    *(
        case
        for version in (0, 1)
        for mechanism in ("nonsense", "", "GSSAPI", "plain", "OAUTHBEARER", "SCRAM-SHA-1")
        for case in dialogue(f"handshake v{version} {mechanism!r}", handshake(mechanism, version), ALIVE)
    ),
    *(
        case
        for version in (0, 1)
        for mechanism in (PLAIN, SHA_256, SHA_512)
        for case in dialogue(f"handshake v{version} {mechanism!r}", handshake(mechanism, version))
    ),
    *dialogue("handshake twice", handshake(PLAIN), handshake(PLAIN), ALIVE),
]

WITH_PLAIN = [
    *(case for version in range(3) for case in plain(f"right v{version}", RIGHT, version, (WHO,))),
    *(case for version in range(3) for case in plain(f"wrong password v{version}", b"\0alice\0wrong", version)),
    *plain("unknown user", b"\0nobody\0alice-secret"),
    *plain("empty password", b"\0alice\0"),
    *plain("empty user", b"\0\0alice-secret"),
    *plain("for herself", b"alice\0alice\0alice-secret", then=(WHO,)),
    *plain("for another", b"bob\0alice\0alice-secret"),
    *plain("one part", b"alice"),
    *plain("two parts", b"alice\0alice-secret"),
    *plain("four parts", b"\0alice\0alice-secret\0"),
    *plain("nothing", b""),
    *plain("no text", b"\0alice\0\xff\xfe"),
    *plain("twice", RIGHT, then=(authenticate(RIGHT), handshake(PLAIN), handshake("nonsense"), WHO)),
]

DAVE = ScramFirst("dave")
WITH_SCRAM = [
    *(
        case
        for mechanism in (SHA_256, SHA_512)
        for case in (
            *scram("right", DAVE, ScramFinal(mechanism, PASSWORD), mechanism=mechanism),
            *scram("wrong password", DAVE, ScramFinal(mechanism, "wrong"), mechanism=mechanism),
            *scram("unknown user", ScramFirst("nobody"), ScramFinal(mechanism, PASSWORD), mechanism=mechanism),
            *scram("no text", b"\xff\xfe", mechanism=mechanism),
        )
    ),
    *scram("user of PLAIN", ScramFirst("alice"), ScramFinal(SHA_256, "alice-secret")),
    *scram("for herself", ScramFirst("dave", header="n,a=dave,"), ScramFinal(SHA_256, PASSWORD, "bixhPWRhdmUs")),
    *scram("for another", ScramFirst("dave", header="n,a=alice,")),
    *scram("no channel binding", ScramFirst("dave", header="y,,")),
    *scram("channel binding", ScramFirst("dave", header="p=tls-unique,,")),
    *scram("another binding", DAVE, ScramFinal(SHA_256, PASSWORD, "eSws")),
    *scram("another nonce", DAVE, ScramFinal(SHA_256, PASSWORD, nonce="another")),
    *scram("an extension", ScramFirst("dave", more=",strange=1"), ScramFinal(SHA_256, PASSWORD)),
    *scram("an empty name", ScramFirst("")),
    *scram("a comma in the name", ScramFirst("da=2Cve"), ScramFinal(SHA_256, PASSWORD)),
    *scram("a wrong escape", ScramFirst("da=zzve")),
    *scram("nothing", b""),
    *scram("a final message first", b"c=biws,r=conformance,p=AAAA"),
    *scram("no proof", DAVE, b"c=biws,r=conformance"),
    *scram("a proof that is none", DAVE, b"c=biws,r=conformance,p=%%%"),
]

AT_THE_WRONG_MOMENT = [
    *dialogue("without a handshake", authenticate(RIGHT), ALIVE),
    *dialogue("before the login", WHO, ALIVE),
    *dialogue("topics before the login", ("CreateTopics", 7, {"topics": [], "timeout_ms": 1000}), ALIVE),
    *(
        case
        for version in range(5)
        for case in dialogue(
            f"versions v{version} first",
            ("ApiVersions", version, {"client_software_name": "a", "client_software_version": "1"} if version > 2 else {}),
            handshake(PLAIN),
            authenticate(RIGHT),
        )
    ),
    *dialogue("versions twice", ALIVE, ALIVE, handshake(PLAIN), authenticate(RIGHT), WHO),
    *dialogue("versions after the handshake", handshake(PLAIN), ALIVE, ALIVE),
    *dialogue("topics after the handshake", handshake(PLAIN), WHO, ALIVE),
    *dialogue("versions of a strange client", ("ApiVersions", 3, {"client_software_name": "a b"}), ALIVE),
    *raw("bare token", RIGHT, WHO),
    *raw("bare wrong token", b"\0alice\0wrong", ALIVE),
    *raw("bare nothing", b"", ALIVE),
    *framed("handshake of the future", "SaslHandshake", sized(struct.pack(">hhih5sh5s", 17, 2, 1, 5, b"wired", 5, b"PLAIN"))),
    *framed("unknown API", "SaslHandshake", sized(struct.pack(">hhih", 999, 0, 1, -1))),
    *framed("half a header", "SaslHandshake", sized(b"\0")),
    *framed("negative size", "SaslHandshake", struct.pack(">i", -1)),
    *framed("too long", "SaslHandshake", struct.pack(">i", 524_289)),
    *dialogue("the end", handshake(SHA_256), authenticate(DAVE), authenticate(ScramFinal(SHA_256, PASSWORD)), WHO),
]  # fmt: skip

CASES = [*USERS, *HANDSHAKES, *WITH_PLAIN, *WITH_SCRAM, *AT_THE_WRONG_MOMENT]
