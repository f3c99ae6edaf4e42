"""Rule files in the hands of editors, copiers and accidents: at no moment does a request pass that
old and new rules forbid.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicontroller.admin.policy.rule_files import RuleFiles
from minicontroller.admin.policy.runner import PolicyRefusal, PolicyRunner
from minicontroller.process.settings.watched_files import WatchedFiles
from tests.policies.asking import cluster, create
from tests.rules.reading import mistake, rules
from tests.rules.test_rule_files import settled, write

FORBIDDEN = create(replicas=[[1]] * 7)
FILLER, FIVE, SIX = "[[replication]]\nmax = 9\n", "[[partitions]]\nmax = 5\n", "[[partitions]]\nmax = 6\n"
OLD, NEW = FILLER + FIVE, FILLER + SIX

Steps = Iterator[None]
"""The steps that damage files; it yields wherever somebody may look."""
Damage = Callable[[Path, Path], Steps]


async def forbidden(runner: PolicyRunner) -> bool:
    try:
        await runner.judge(FORBIDDEN, cluster())
    except PolicyRefusal:
        return True
    return False


# ------------------ in passing: shorter than the time between two looks


def truncated_and_written(one: Path, two: Path) -> Steps:
    for path, text in ((one, NEW), (two, "[[deletion_age]]\nmin = '2h'\n")):
        with path.open("w") as file:
            yield
            file.write(text)


def cut_off_between_two_rules(one: Path, _two: Path) -> Steps:
    with one.open("w") as file:
        file.write(FILLER)
        file.flush()
        yield
        file.write(SIX)


def written_byte_by_byte(one: Path, _two: Path) -> Steps:
    with one.open("w", buffering=1) as file:
        for character in NEW:
            file.write(character)
            file.flush()
            yield


def one_after_the_other(one: Path, two: Path) -> Steps:
    """The rule moves from one file to the other."""
    write(one, FILLER)
    yield
    write(two, SIX)


def removed_and_made_anew(one: Path, _two: Path) -> Steps:
    one.unlink()
    yield
    one.write_text(FILLER)
    yield
    one.write_text(NEW)


def a_replaced_link(one: Path, two: Path) -> Steps:
    """As Kubernetes replaces a ConfigMap: files are links into ..data, which is a link to a folder
    that is replaced by renaming.
    """
    for path in (one, two):
        folder = path.parent / "..2024_1"
        folder.mkdir(exist_ok=True)
        path.rename(folder / path.name)
        path.symlink_to(Path("..data") / path.name)
    data = one.parent / "..data"
    data.symlink_to("..2024_1")
    yield
    newer = one.parent / "..2024_2"
    newer.mkdir()
    (newer / one.name).write_text(NEW)
    (newer / two.name).write_text(two.read_text())
    aside = one.parent / "..data_tmp"
    aside.symlink_to("..2024_2")
    aside.replace(data)
    yield
    shutil.rmtree(one.parent / "..2024_1")


PASSING = (
    truncated_and_written, cut_off_between_two_rules, written_byte_by_byte, one_after_the_other, removed_and_made_anew, a_replaced_link,
)  # fmt: skip


@pytest.mark.parametrize("damage", PASSING)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(looks=st.lists(st.booleans(), max_size=60))
async def test_nothing_passes_while_files_change(
    tmp_path_factory: pytest.TempPathFactory, damage: Damage, looks: list[bool]
) -> None:
    """Whenever the node looks, requests are judged by whole rules, the old or the new; at rest the
    new ones are in force.
    """
    folder = tmp_path_factory.mktemp("rules")
    one, two = write(folder / "one.toml", OLD), write(folder / "two.toml", "[[deletion_age]]\nmin = '1h'\n")
    runner = PolicyRunner()
    files = RuleFiles([one, two], runner, interval_ms=1000)
    files.load()
    before = runner.policy_hash
    for number, _ in enumerate(damage(one, two)):
        if number < len(looks) and looks[number]:
            await files.look()
        assert await forbidden(runner)
    await settled(files)
    assert await forbidden(runner)
    assert files.mistake is None
    assert runner.policy_hash != before


# ------------------ for good: until somebody mends it


def emptied(path: Path, _aside: Path) -> Steps:
    path.write_text("")
    yield


def emptied_but_for_a_comment(path: Path, _aside: Path) -> Steps:
    path.write_text("# nothing\nrule = []\n")
    yield


def emptied_and_then_mistaken(path: Path, _aside: Path) -> Steps:
    path.write_text("")
    yield
    path.write_text("[[partitions]]\nmaks = 9\n")
    yield
    path.write_text("")
    yield


def removed(path: Path, _aside: Path) -> Steps:
    path.unlink()
    yield


def a_directory(path: Path, _aside: Path) -> Steps:
    path.unlink()
    path.mkdir()
    yield
    path.rmdir()


def a_fifo(path: Path, _aside: Path) -> Steps:
    path.unlink()
    os.mkfifo(path)
    yield
    path.unlink()


def a_link_to_nowhere(path: Path, aside: Path) -> Steps:
    path.unlink()
    path.symlink_to(aside / "nosuch")
    yield
    path.unlink()


def a_link_to_itself(path: Path, _aside: Path) -> Steps:
    path.unlink()
    path.symlink_to(path)
    yield
    path.unlink()


def unreadable(path: Path, aside: Path) -> Steps:
    """Whoever runs the tests may be root, whom no mode stops: a folder that is a file stops
    everybody.
    """
    folder = path.parent
    folder.rename(aside)
    folder.write_text("no folder")
    yield
    folder.unlink()
    aside.rename(folder)


def too_large(path: Path, _aside: Path) -> Steps:
    path.write_text("#" * 1_000_001)
    yield


LASTING = (
    emptied, emptied_but_for_a_comment, emptied_and_then_mistaken, removed, a_directory, a_fifo, a_link_to_nowhere, a_link_to_itself,
    unreadable, too_large,
)  # fmt: skip


@pytest.mark.parametrize("damage", LASTING)
async def test_nothing_passes_while_files_are_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Damage
) -> None:
    """Rules that were good stay in force for as long as the files are not, whatever comes after;
    the log says so once for each mistake.
    """
    folder = tmp_path / "rules"
    folder.mkdir()
    path = write(folder / "rules.toml", OLD)
    runner = PolicyRunner()
    files = RuleFiles([path], runner, interval_ms=1000)
    files.load()
    for number, _ in enumerate(damage(path, tmp_path / "aside"), 1):
        for _ in range(5):
            await files.look()
            assert await forbidden(runner)
        assert files.mistake is not None
        assert caplog.text.count("those in force stay") == files.failures == number
    write(path, NEW)
    await settled(files)
    assert await forbidden(runner)
    assert (files.mistake, files.loads) == (None, 2)


async def test_an_unreadable_file_in_a_set(tmp_path: Path) -> None:
    """One file that is gone keeps all files' rules as they were."""
    one, two = write(tmp_path / "one.toml", FIVE), write(tmp_path / "two.toml", FILLER)
    runner = PolicyRunner()
    files = RuleFiles([one, two], runner, interval_ms=1000)
    files.load()
    one.write_text("")
    two.write_text("[[replication]]\nmax = 8\n")
    await settled(files)
    assert await forbidden(runner)
    assert files.loads == 1


# ------------------ what is seen


async def test_the_same_size_and_time_is_another_content(tmp_path: Path) -> None:
    """A file counts by what it holds: one that was rewritten with equal size and
    time is noticed.
    """
    path = tmp_path / "rules.toml"
    path.write_text(SIX)
    runner = PolicyRunner()
    files = RuleFiles([path], runner, interval_ms=1000)
    files.load()
    seen = path.stat()
    path.write_text("[[partitions]]\nmax = 7\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (seen.st_size, seen.st_mtime_ns)
    await settled(files)
    assert not await forbidden(runner)


async def test_whoever_means_no_rules_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`rule_count = 0` opens what rules had closed, and that set is then the last good one; it may
    also start a node.
    """
    path = write(tmp_path / "rules.toml", OLD)
    runner = PolicyRunner()
    files = RuleFiles([path], runner, interval_ms=1000)
    files.load()
    write(path, "rule_count = 0\n")
    await settled(files)
    assert not await forbidden(runner)
    assert (files.mistake, files.loads) == (None, 2)
    RuleFiles([path], runner, interval_ms=1000).load()
    assert not await forbidden(runner)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "rules.toml:1:1: the file has no rules; if that is intended, add rule_count = 0"),
        ("rule = []\n", "rules.toml:1:1: the file has no rules; if that is intended, add rule_count = 0"),
        (f"\nrule_count = 2\n{FILLER}", "rules.toml:2:1: rule_count is 2, but the file has 1: is it cut off?"),
        (f"rule_count = 0\n{FILLER}", "rules.toml:1:1: rule_count is 0, but the file has 1: is it cut off?"),
        (f"rule_count = 'two'\n{FILLER}", "rules.toml:1:1: rule_count is a string, but must be a whole number"),
        (f"rule_count = -1\n{FILLER}", "rules.toml:1:1: rule_count is -1, but must be at least 0"),
    ],
)
def test_a_file_says_how_many_rules_it_has(text: str, said: str) -> None:
    """A file that is not whole cannot be taken for one, in a node and in `policy check` alike."""
    assert mistake(text) == said


def test_a_count_that_fits() -> None:
    """The count changes nothing where it is right."""
    assert len(rules(f"rule_count = 2\n{OLD}").rules) == 2


async def test_contents_are_given_once(tmp_path: Path) -> None:
    """All files together, when they were the same twice, and not again until they change; back and
    forth is a change, too.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    files = WatchedFiles([one, two], max_bytes=3)
    held: Mapping[Path, bytes | None] = {each.path: each.data for each in files.read()}
    assert held == {one: b"1", two: None}
    two.write_bytes(b"22222")
    assert await files.look() is None
    given = await files.look()
    assert given is not None
    assert [each.data for each in given] == [b"1", b"2222"]
    assert [await files.look() for _ in range(3)] == [None] * 3
    one.write_bytes(b"2")
    assert await files.look() is None
    one.write_bytes(b"1")
    assert [await files.look() for _ in range(3)] == [None] * 3  # never at rest with anything else
