"""A recording: what a real Kafka 3.9.1 answered to the cases of one scenario, byte by byte, and who
it was.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conformance.case import Case
from tests.conformance.logins import Token
from tests.support.wire import Body

RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Recorded:
    """A recorded outcome: an answer, or how the connection ended without one."""

    request: bytes
    response: bytes | None
    ended: str

    def answer(self, case: Case) -> Body | None:
        return None if self.response is None else case.answer(self.response)


@dataclass(frozen=True)
class Recording:
    addresses: dict[int, str]
    topic_ids: dict[str, str]
    tokens: dict[str, Token]
    """Delegation tokens, by the case that made them."""
    outcomes: dict[str, Recorded]
    """By the key of the case."""


@cache  # it is asked for with each case
def read_recording(scenario: str) -> Recording:
    document = json.loads((RECORDINGS / f"{scenario}.json").read_text())
    return Recording(
        addresses={int(number): address for number, address in document["addresses"].items()},
        topic_ids=document["topic_ids"],
        tokens={name: Token(**token) for name, token in document.get("tokens", {}).items()},
        outcomes={
            row["case"]: Recorded(
                request=bytes.fromhex(row["request"]),
                response=bytes.fromhex(row["response"]) if "response" in row else None,
                ended=row.get("ended", ""),
            )
            for row in document["outcomes"]
        },
    )
