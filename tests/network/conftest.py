"""The transports by which the tests of connections talk to their servers."""

from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.small_server import FixedTls, Transports


@cache
def fixed_tls() -> FixedTls:
    return FixedTls()


@pytest.fixture(params=["plain", "tls"])
def each_transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test runs twice: once without TLS, and once with it at every listener."""
    Transports.tls = fixed_tls() if request.param == "tls" else None
    yield
    Transports.tls = None
