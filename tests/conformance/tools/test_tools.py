"""Kafka's own command-line tools against our nodes: what they write and how they end is what they
write, and how they end, against a real Kafka 3.9.1.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.conformance.scenario import SECURED_SETTINGS, login
from tests.conformance.tools import plain, secured
from tests.conformance.tools.call import CLASSES, Call
from tests.conformance.tools.differences import DIFFERENCES, Difference, expected
from tests.conformance.tools.running import Outcome, by_part, recorded, run
from tests.support.cluster import Cluster, running_cluster
from tests.support.maven import needs_maven, time_to_download

DOCUMENT = Path(__file__).parents[3] / "docs" / "conformance.md"
EVERY = plain.PLAIN | secured.SECURED

Found = dict[str, list[Outcome]]


@pytest.fixture(scope="module")
def of_plain(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The output of the tools at a cluster in which everybody may do everything."""
    with running_cluster() as cluster:
        return written(cluster, plain.PLAIN, plain.FILES, tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def of_secured(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The output of the tools at a cluster whose clients log in and need ACLs."""
    with running_cluster(settings=SECURED_SETTINGS, login=login("admin")) as cluster:
        return written(cluster, secured.SECURED, secured.FILES, tmp_path_factory.mktemp("tools"))


def written(cluster: Cluster, parts: Mapping[str, Sequence[Call]], files: Mapping[str, str], folder: Path) -> Found:
    calls = [call for each in parts.values() for call in each]
    return by_part(parts, run(calls, files, cluster.addresses, folder))


@pytest.mark.slow
@time_to_download
@needs_maven
@pytest.mark.parametrize("part", plain.PLAIN)
def test_the_tools_write_what_they_write_with_kafka(of_plain: Found, part: str) -> None:
    """Each call ends with the same code after the same output, or differs as docs/conformance.md
    says.
    """
    holds(part, of_plain)


@pytest.mark.slow
@time_to_download
@needs_maven
@pytest.mark.parametrize("part", secured.SECURED)
def test_the_tools_of_users_write_what_they_write_with_kafka(of_secured: Found, part: str) -> None:
    """Outputs are Kafka's where users log in and have rights."""
    holds(part, of_secured)


def holds(part: str, found: Found) -> None:
    wanted = [str(expected(each)) for each in recorded(part)]
    assert [str(each) for each in found[part]] == wanted


@pytest.mark.parametrize("part", EVERY)
def test_every_call_is_recorded(part: str) -> None:
    """A recording has exactly the calls of its part, in their order."""
    assert [each.line for each in recorded(part)] == [call.line for call in EVERY[part]]


def test_every_tool_is_called() -> None:
    """Each of Kafka's tools for administrators is called."""
    assert {call.tool for calls in EVERY.values() for call in calls} == set(CLASSES)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_differences_of_tools_are_documented(difference: Difference) -> None:
    """A difference concerns a recorded call and changes it, and docs/conformance.md gives its
    reason.
    """
    outcomes = [each for part in EVERY for each in recorded(part) if re.fullmatch(difference.lines, each.line)]
    assert any(difference.adapt(each.text) != each.text for each in outcomes)
    assert f"### {difference.name}" in DOCUMENT.read_text()
