"""A real Chromium (`make chromium` puts one on the machine), and a cluster to look at."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from tests.support.cluster import MiniCluster, running_cluster
from tests.support.http import create
from tests.support.waiting import PATIENCE_SECONDS

SCREEN: ViewportSize = {"width": 1280, "height": 720}
POLICY = """
from minicontroller.policies import PolicyViolation, TopicManagementPolicy


class Teams(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if request.topic.startswith("orders"):
            raise PolicyViolation("A topic begins with <b>its team</b>: team-orders.")
"""


@pytest.fixture(name="browser", scope="session")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "the page is tested in Chromium: make chromium"
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)  # its own are 5 s, which a busy machine needs itself
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, timeout=PATIENCE_SECONDS * 1000, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def only_tab(browser: Browser) -> Page:
    return browser.new_page()


@pytest.fixture(name="tab")
def empty_tab(only_tab: Page) -> Iterator[Page]:
    """The tab of all tests, which costs a second to open, as a new one would be."""
    yield only_tab
    only_tab.unroute_all()
    only_tab.goto("about:blank")
    only_tab.set_viewport_size(SCREEN)
    only_tab.emulate_media(media="screen", color_scheme="light")


@contextmanager
def heard(tab: Page, event: Any, listener: Callable[[Any], None]) -> Iterator[None]:
    """Hear of events of the tab within the block."""
    tab.on(event, listener)
    try:
        yield
    finally:
        tab.remove_listener(event, listener)


RULES = """
[[partitions]]
name = "small"
max = 4
action = "warn"

[[replication]]
name = "never fires"
max = 9
"""


@pytest.fixture(name="cluster", scope="module")
def with_ten_thousand_topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniCluster]:
    file = tmp_path_factory.mktemp("policy") / "teams.py"
    file.write_text(POLICY)
    file.with_name("rules.toml").write_text(RULES)
    settings = {
        "topic.management.policy.class.name": f"{file}:Teams",
        "policy.rules.files": str(file.with_name("rules.toml")),
        "audit.dir": str(tmp_path_factory.mktemp("audit")),
        "audit.flush.interval.ms": "3600000",  # nothing is in the files because some time has passed
    }
    with running_cluster(settings=settings) as cluster:
        for first in range(0, 10_000, 2_000):
            create(cluster, *(f"topic-{number:05}" for number in range(first, first + 2_000)), partitions=3)
        yield cluster


@pytest.fixture(name="page")
def open_page(tab: Page, cluster: MiniCluster) -> Iterator[Page]:
    """The page, opened; at the end nothing may have gone wrong in it."""
    faults: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    with heard(tab, "pageerror", lambda error: faults.append(str(error))), heard(tab, "console", note):
        tab.goto(cluster.http)
        tab.wait_for_selector("#topics tr")
        yield tab
    assert faults == []
