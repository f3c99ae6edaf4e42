"""A real Chromium (`make chromium` puts one on the machine), and a cluster to look at."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.cluster import MiniCluster, running_cluster
from tests.support.http import create
from tests.support.waiting import PATIENCE_SECONDS

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
            executable_path=program, timeout=PATIENCE_SECONDS * 1000, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


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
def open_page(browser: Browser, cluster: MiniCluster) -> Iterator[Page]:
    """The page, opened; at the end nothing may have gone wrong in it."""
    page, faults = browser.new_page(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(cluster.http)
    page.wait_for_selector("#topics tr")
    yield page
    page.close()
    assert faults == []
