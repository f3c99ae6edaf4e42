"""Rules in a node: in force from the start, replaced as a whole, and never let go by a mistake."""

import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from minicontroller.admin.policy.loading import load_policy, load_rules
from minicontroller.admin.policy.rule_files import RuleFiles
from minicontroller.admin.policy.runner import PolicyRefusal, PolicyRunner
from minicontroller.policies.load_errors import PolicyLoadError
from minicontroller.policies.verdict import PolicyOutcome, RuleAction
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.error_codes import ErrorCode
from tests.policies.asking import cluster, create
from tests.policies.in_place import InPlace
from tests.policies.misbehaving import Doing, raising, refusal
from tests.rules.reading import rules

FIVE, NINE = "[[partitions]]\nmax = 5\n", "[[partitions]]\nmax = 9\n"
SEVEN_PARTITIONS = create(replicas=[[1]] * 7)


def write(path: Path, text: str) -> Path:
    """As careful editors do it: a new file in the place of the old one."""
    aside = path.with_suffix(".new")
    aside.write_text(text)
    return aside.replace(path)


def watching(*paths: Path) -> tuple[RuleFiles, PolicyRunner]:
    runner = PolicyRunner()
    files = RuleFiles(paths, runner, interval_ms=1000)
    files.load()
    return files, runner


async def settled(files: RuleFiles) -> None:
    """Looked at until what the files hold has been the same twice."""
    await files.look()
    await files.look()


async def passes(runner: PolicyRunner) -> bool:
    try:
        return (await runner.judge(SEVEN_PARTITIONS, cluster())).decision is PolicyOutcome.ALLOWED
    except PolicyRefusal:
        return False


async def test_a_changed_file_comes_in_force(tmp_path: Path) -> None:
    """From the next request on; a file that has only been touched, or got a comment, changes
    nothing.
    """
    path = write(tmp_path / "rules.toml", FIVE)
    files, runner = watching(path)
    assert not await passes(runner)
    before, first = runner.policy_hash, files.loaded_at
    write(path, NINE)
    await settled(files)
    assert await passes(runner)
    assert (files.loads, files.failures, files.mistake) == (2, 0, None)
    assert runner.policy_hash != before
    os.utime(path, ns=(1, 1))
    await settled(files)
    write(path, f"# nine\n{NINE}")
    await settled(files)
    assert files.loads == 2
    assert files.loaded_at > first


async def test_a_mistake_keeps_the_old_rules(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All or nothing over all files; the log tells the mistake once, and the mended file comes in
    force.
    """
    one, two = write(tmp_path / "one.toml", FIVE), write(tmp_path / "two.toml", "[[replication]]\nmax = 9\n")
    files, runner = watching(one, two)
    write(one, NINE)
    write(two, "[[replication]]\nmaks = 9\n")
    for _ in range(3):
        await settled(files)
    assert not await passes(runner)
    assert (files.loads, files.failures) == (1, 1)
    assert files.mistake is not None and f"{two}:2:1: maks is unknown" in files.mistake
    assert caplog.text.count("maks is unknown") == 1
    write(two, "[[replication]]\nmax = 3\n")
    await settled(files)
    assert await passes(runner)
    assert (files.loads, files.failures) == (2, 1)


async def test_rules_are_counted_while_they_are_in_force(tmp_path: Path) -> None:
    """All that a rule has against requests is counted, whatever comes of it; of a rule that files
    no longer name nothing is left.
    """
    noting = '[[partitions]]\nname = "{}"\nmax = 5\naction = "{}"\n'
    path = write(tmp_path / "rules.toml", FIVE + noting.format("wide", "warn") + noting.format("broad", "audit"))
    files, runner = watching(path)
    for _ in range(3):
        await passes(runner)
    assert +runner.metrics.findings == {("partitions", "deny"): 3, ("wide", "warn"): 3, ("broad", "audit"): 3}
    assert runner.metrics.findings.keys() > {("wide", "failed"), ("partitions", "failed")}
    for number in range(50):
        write(path, noting.format("broad", "audit") + noting.format(f"wide-{number}", "warn"))
        await settled(files)
        await passes(runner)
    assert +runner.metrics.findings == {("broad", "audit"): 53, ("wide-49", "warn"): 1}
    assert {rule for rule, _ in runner.metrics.findings} == {"broad", "wide-49"}
    assert {rule for _, rule, _ in runner.metrics.verdicts} == {"", "broad", "wide-49"}


async def test_a_file_that_disappears_keeps_its_rules(tmp_path: Path) -> None:
    """A deleted file does not open the gate."""
    path = write(tmp_path / "rules.toml", FIVE)
    files, runner = watching(path)
    path.unlink()
    await settled(files)
    assert not await passes(runner)
    assert files.mistake is not None and "the file cannot be read: No such file" in files.mistake
    write(path, NINE)
    await settled(files)
    assert await passes(runner)


def reloaded(files: RuleFiles, times: int) -> bool:
    return files.loads == times


async def until(done: Callable[[], bool]) -> None:
    """Turn after turn, on the tests' clock, which runs on while a thread looks."""
    for _ in range(1_000_000):
        if done():
            return
        await trio.sleep(0.5)


async def test_it_looks_again_and_again(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Every `policy.rules.reload.interval.ms`, until it is cancelled."""
    path = write(tmp_path / "rules.toml", FIVE)
    files, runner = watching(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(files.run)
        for text, count in ((NINE, 2), (FIVE, 3)):
            write(path, text)
            await until(partial(reloaded, files, count))
            assert files.loads == count
        nursery.cancel_scope.cancel()
    assert runner.rules is not None
    assert runner.rules.name == str(path)
    assert autojump_clock.current_time() > 0


async def test_an_interval_of_zero_looks_never(tmp_path: Path) -> None:
    """With an interval of zero the rules are those of the start."""
    runner = PolicyRunner()
    await RuleFiles([tmp_path / "nosuch.toml"], runner, interval_ms=0).run()


# ------------------------------------------------------------------ configuration


async def started(settings: Mapping[str, str]) -> PolicyRunner | None:
    config = config_from_mapping({"broker.id": "1", **settings})
    runner = await load_policy(config)
    load_rules(config, runner)
    return runner


@pytest.mark.parametrize(
    "settings",
    [
        {"policy.rules.files": "{0},{1}"},
        {"topic.management.policy.class.name": "{0}", "policy.rules.files": "{1}"},
        {"topic.management.policy.class.name": "{0}", "policy.rules.files": "{0},{1}"},
    ],
)
async def test_files_add_up(tmp_path: Path, settings: Mapping[str, str]) -> None:
    """Either key takes rule files, and one that is named twice is one."""
    one, two = write(tmp_path / "one.toml", FIVE), write(tmp_path / "two.toml", "[[replication]]\nmax = 9\n")
    runner = await started({key: value.format(one, two) for key, value in settings.items()})
    assert runner is not None
    assert runner.rules is not None
    assert tuple(runner.rules.rule_actions) == ("partitions", "replication")
    assert runner.name == f"{one}, {two}"


async def test_two_files_may_not_have_rules_of_one_name(tmp_path: Path) -> None:
    """A name says which rule it was."""
    one, two = write(tmp_path / "one.toml", FIVE), write(tmp_path / "two.toml", NINE)
    with pytest.raises(PolicyLoadError, match=f"{two}:1:1: there is a rule partitions already, in {one}"):
        await started({"policy.rules.files": f"{one},{two}"})


async def test_a_mistake_ends_the_start(tmp_path: Path) -> None:
    """A node does not serve with rules that it cannot read."""
    with pytest.raises(PolicyLoadError, match=r"nosuch\.toml:1:1: the file cannot be read"):
        await started({"policy.rules.files": str(tmp_path / "nosuch.toml")})


async def test_no_rules_no_policy() -> None:
    """Where nothing is configured nobody is asked."""
    assert await started({}) is None


# ------------------------------------------------------------------ with a policy in Python


async def test_rules_and_a_class_are_all_asked() -> None:
    """The first that denies gives the answer, the rules coming first; the class is asked all the
    same.
    """
    asked: list[str] = []
    policy = Doing(lambda request: asked.append(request.topic))
    runner = PolicyRunner(InPlace(policy), rules=rules(FIVE))
    refused = await refusal(runner, SEVEN_PARTITIONS)
    assert (refused.code, refused.message) == (ErrorCode.POLICY_VIOLATION, "7 partitions are more than 5.")
    assert (refused.verdict.rule, refused.verdict.policy) == ("partitions", "Doing and rules.toml")
    assert asked == [SEVEN_PARTITIONS.topic]
    await runner.close()


async def test_a_class_refuses_what_the_rules_allow() -> None:
    """Both must consent, and each alone may be broken: that refuses (K201-11)."""
    runner = PolicyRunner(InPlace(raising(ValueError("a bug"))), rules=rules(NINE))
    refused = await refusal(runner, SEVEN_PARTITIONS)
    assert (refused.code, refused.verdict.rule) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    await runner.close()


async def test_a_verdict_tells_all(caplog: pytest.LogCaptureFixture) -> None:
    """Warnings stand in the log and let the request pass, audits stand in the verdict alone, with
    the policy that was in force.
    """
    text = "".join(
        f"[[rule]]\nname = '{name}'\noperations = 'create'\ncondition = 'false'\nmessage = 'tsk'\naction = '{name}'\n"
        for name in ("warn", "audit")
    )
    runner = PolicyRunner(rules=rules(text))
    with caplog.at_level(logging.INFO, "minicontroller.policy"):
        verdict = await runner.judge(create("orders"), cluster())
    assert (verdict.decision, verdict.rule, verdict.policy_hash) == (PolicyOutcome.ALLOWED, "", runner.policy_hash)
    assert [(found.rule, found.action, found.message) for found in verdict.findings] == [
        ("warn", RuleAction.WARN, "tsk"), ("audit", RuleAction.AUDIT, "tsk")
    ]  # fmt: skip
    [record] = caplog.records
    assert record.getMessage() == "CreateTopics of topic orders by User:alice would be refused by the rule warn: tsk"
    await runner.close()


async def test_a_rule_that_fails_refuses(caplog: pytest.LogCaptureFixture) -> None:
    """With POLICY_VIOLATION and the rule's name for the caller, and the reason in the log, whatever
    its action is (K201-11).
    """
    text = (
        "[[rule]]\nname = 'it'\noperations = 'create'\naction = 'audit'\ncondition = 'int(after.configs[\"x\"]) > 1'\n"
    )
    runner = PolicyRunner(rules=rules(text))
    refused = await refusal(runner, create("orders"))
    assert (refused.code, refused.verdict.rule) == (ErrorCode.POLICY_VIOLATION, "it")
    assert refused.message == "The rule it could not be evaluated on this request, which is therefore refused."
    assert (
        'The rule it failed on CreateTopics of topic orders by User:alice: AbsentFieldError: after.configs["x"] is not there'
        in caplog.text
    )
    await runner.close()


class Panic(BaseException):
    """None of Exception's."""


class Panicking:
    """A cluster that cannot be looked at."""

    cluster_size = 3
    versions: Mapping[str, object] = {}

    def topic_state(self, topic: str) -> None:
        raise Panic(topic)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        raise Panic(include_internal, include_marked_for_deletion)


async def test_not_even_a_panic_passes() -> None:
    """What is none of Exception's refuses with a server error, and does not end the
    node (K201-11).
    """
    runner = PolicyRunner(rules=rules("[[quota]]\nowned = '*'\nmax_topics = 1"))
    with pytest.raises(PolicyRefusal) as refused:
        await runner.judge(create(), Panicking())
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    await runner.close()


async def test_a_policys_hash_is_of_its_source_and_its_rules() -> None:
    """Either change makes another policy."""
    only_class = PolicyRunner(InPlace(Doing(lambda _: None)))
    both = PolicyRunner(InPlace(Doing(lambda _: None)), rules=rules(FIVE))
    other = PolicyRunner(InPlace(Doing(lambda _: None)), rules=rules(NINE))
    assert len({only_class.policy_hash, both.policy_hash, other.policy_hash}) == 3
    assert all(len(runner.policy_hash) == 64 for runner in (only_class, both, other))
