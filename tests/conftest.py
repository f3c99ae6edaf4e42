"""Fixtures for every test."""

from collections.abc import Iterator

import pytest

from tests.support.zookeeper import ZooKeeperServer


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One ZooKeeper server for all tests: whoever uses it takes a chroot of his own."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(name="chroot")
def chroot_fixture(request: pytest.FixtureRequest) -> str:
    """A chroot for this test alone."""
    return "/" + "".join(c if c.isalnum() else "-" for c in request.node.name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Figures that tests recorded about themselves."""
    for report in terminalreporter.getreports("passed"):
        if report.when == "call" and report.user_properties:
            figures = ", ".join(f"{name} {value}" for name, value in report.user_properties)
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {figures}")
