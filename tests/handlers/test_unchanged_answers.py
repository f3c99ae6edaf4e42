"""Answers about everything are encoded once: a client that asks again while nothing changes gets
the bytes that were kept.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

from minicontroller.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from minicontroller.protocol.messages.metadata import MetadataRequest
from tests.handlers.acl_requests import ACLS_DECIDE, ADMIN, acl, create, finding
from tests.handlers.ruling import ruling, wanted

MANY = 300
EVERYTHING = (
    (MetadataRequest(topics=None), 12),
    (finding(), 3),
    (DescribeLogDirsRequest(topics=None), 4),
)


async def calls_for(answer: Callable[[], bytes | Awaitable[bytes]]) -> tuple[bytes, int]:
    """Return an answer, and how many functions were called for it."""
    calls = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        made = answer()
        return made if isinstance(made, bytes) else await made, calls
    finally:
        sys.setprofile(before)


async def test_an_unchanged_answer_about_everything_is_not_encoded_again() -> None:
    """The second answer is equal and takes less than a call for each topic or pattern, until one
    changes.
    """
    names = [f"t{number:03}" for number in range(MANY)]
    async with ruling() as cluster:
        await cluster.make(*(wanted(name, 1, 3) for name in names))
        await create(cluster, *map(acl, names))
        client = cluster.client(principal=ADMIN, authorization=ACLS_DECIDE)

        async def asked(request: Any, version: int) -> tuple[bytes, int]:
            frame = client.frame(request, version)
            return await calls_for(lambda: client.answer_to(frame))

        for request, version in EVERYTHING:
            first, to_make = await asked(request, version)
            again, to_repeat = await asked(request, version)
            assert again == first
            assert to_repeat < MANY < to_make, type(request).__name__
        await cluster.make(wanted("new", 1, 3))
        await create(cluster, acl("new"))
        for request, version in EVERYTHING:
            changed, _ = await asked(request, version)
            assert b"new" in changed
