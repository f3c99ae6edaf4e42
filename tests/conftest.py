"""Fixtures for every test."""

import atexit
import gc
from collections.abc import Generator, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from minicontroller.clock import Clock
from tests.support.clock import JumpingClock
from tests.support.secured_zookeeper import SecuredZooKeeper
from tests.support.zookeeper import ZooKeeperServer

# A property holds or not, however long a busy machine takes to try it. Each run tries other
# examples; `make properties` tries many more of them than people would wait for.
ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("busy machine", ANY_TIME, max_examples=50)
settings.register_profile("deep", ANY_TIME, max_examples=2_000)
settings.load_profile("busy machine")

TESTS = Path(__file__).parent
SHARED = {
    "browser": "browser",
    "spark": "spark",
    "ensemble": "ensemble",
    "kafka": "kafka",
    "java": "java",
    "zookeeper": "zookeeper",
    "secured": "zookeeper",
}
"""Fixtures that start a large program, and the group of the tests that share it."""
LONG_GROUPS = ("spark", "ensemble", "zookeeper", "browser", "kafka", "java")
"""The groups that take minutes, the longest first. They begin first, so that no process is left
with one of them while the others have nothing more to do.
"""
SHOWN_GROUPS = 8
"""The number of groups that the summary of a run names."""
SLOW_FOLDERS = frozenset({"browser", "command_line", "pipeline"})
"""The folders whose tests run commands, browsers and Spark, and so are slow."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what stays for as long as the process lasts, thousands
    of tests and hundreds of modules: it would take half of the time of collecting them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Look once for what the last tests left. pytest looks five more times, each of which takes a
    second unless what is alive is kept away; when the process ends it is given back, because DuckDB
    counts what it leaves.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses and before tests are dealt out to processes
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have all tests that need the same large program run in one process, which starts it once, and
    the other tests of a file, too, which share what their file starts. `make check` leaves out
    those that need a large program.
    """
    places = []
    for item in items:
        group = group_of(item)
        item.add_marker(pytest.mark.xdist_group(group or item.path.name))
        if group is not None or folder_of(item.path) in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)
        places.append(place_of(group or item.path.name))
    items[:] = [item for _, _, item in sorted(zip(places, range(len(items)), items, strict=True))]


@cache  # there are many more tests than files
def folder_of(path: Path) -> str:
    """Return the folder in tests/ that a file stands in."""
    return path.relative_to(TESTS).parts[0]


def place_of(group: str) -> int:
    """Return the place of a group in the order in which groups begin."""
    return LONG_GROUPS.index(group) if group in LONG_GROUPS else len(LONG_GROUPS)


def group_of(item: pytest.Item) -> str | None:
    """Return the group of a test, from its fixtures, the parameters that choose one of them, and
    its folder, so that all tests of tests/browser share their pages.
    """
    fixtures = getattr(item, "fixturenames", ())
    chosen = item.name.partition("[")[2].removesuffix("]").split("-")
    named = {*fixtures, *chosen, folder_of(item.path)}
    return next((group for name, group in SHARED.items() if name in named), None)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One ZooKeeper server for all tests: whoever uses it takes a chroot of his own."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """One ZooKeeper server with TLS and SASL for all tests."""
    with SecuredZooKeeper(tmp_path_factory.mktemp("secured")) as server:
        yield server


@pytest.fixture(name="chroot")
def chroot_fixture(request: pytest.FixtureRequest) -> str:
    """A chroot for this test alone."""
    return "/" + "".join(c if c.isalnum() else "-" for c in request.node.name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show figures that tests recorded about themselves, and when the longest groups ran: a group
    runs in one process, so that the longest is the least that all tests can take.
    """
    times: dict[str, list[float]] = {}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and "@" in report.nodeid:
            times.setdefault(report.nodeid.rpartition("@")[2], []).extend([report.start, report.stop])
    began = min(map(min, times.values()), default=0.0)
    longest = sorted(times, key=lambda group: min(times[group]) - max(times[group]))[:SHOWN_GROUPS]
    for group in longest:
        terminalreporter.write_line(
            f"{group} ran from {min(times[group]) - began:.0f} s to {max(times[group]) - began:.0f} s"
        )
    for report in terminalreporter.getreports("passed"):
        if report.when == "call" and report.user_properties:
            figures = ", ".join(f"{name} {value}" for name, value in report.user_properties)
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {figures}")


@pytest.fixture
def clock() -> Clock:
    """The clock on which a test runs that asks for it: it moves as real time does, and the test may
    advance it.
    """
    return Clock()


@pytest.fixture
def jumping_clock() -> JumpingClock:
    return JumpingClock()
