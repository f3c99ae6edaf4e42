"""Long requests under a slow policy: other clients are served in between, no limit is evaded, and
elements past the timeout are not begun.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.controller.active import jobs
from minicontroller.controller.active.jobs import Draft
from minicontroller.policies.states import VersionedCluster
from minicontroller.policies.verdict import Verdict
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.audit.logs import decisions_in
from tests.handlers.altering import TOPIC
from tests.handlers.ruling import PATIENT_MS, Ruling, codes, creating, ruling, wanted
from tests.rules.reading import rules

if TYPE_CHECKING:
    from minicontroller.admin.description import RequestDescription

LAST = 7
JUDGED_SECONDS = 0.2
"""An element, by the tests' clock."""
TIMED_OUT, VIOLATION = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.POLICY_VIOLATION


class Slow(PolicyRunner):
    """Rules that take their time."""

    async def judge(
        self,
        request: Any,
        cluster: VersionedCluster,
        context: "RequestDescription | None" = None,
        *,
        is_enforced: bool = True,
    ) -> Verdict:
        await trio.sleep(JUDGED_SECONDS)
        return await super().judge(request, cluster, context, is_enforced=is_enforced)


@asynccontextmanager
async def slowly_ruling(text: str = "[[partitions]]\nmax = 100") -> AsyncIterator[Ruling]:
    async with ruling() as cluster:
        policy = cluster.node.port.policy = Slow(rules=rules(text))
        yield cluster
        await policy.close()


def batch(prefix: str, count: int, **how: Any) -> Any:
    return creating(*(wanted(f"{prefix}.{number}", 1, 1) for number in range(count)), **how)


async def test_others_have_their_turns(autojump_clock: MockClock) -> None:
    """While a hundred topics are judged for 20 s, another client's topic is made, and an election
    held, within a part and an element.
    """
    async with slowly_ruling() as cluster, trio.open_nursery() as nursery:
        answers: list[Any] = []

        async def ask_for_many() -> None:
            answers.append(await cluster.ask(batch("long", 100, timeout_ms=60_000), LAST))

        async def elect(_draft: Draft) -> None:
            await trio.lowlevel.checkpoint()

        nursery.start_soon(ask_for_many)
        for number in range(5):
            await trio.sleep(1.05)
            began = trio.current_time()
            await cluster.controller.writer.write(elect, urgent=True)
            assert trio.current_time() - began <= JUDGED_SECONDS
            await cluster.make(wanted(f"short-{number}", 1, 1))
            assert trio.current_time() - began <= 4 * JUDGED_SECONDS
            assert not answers
    assert codes(answers[0]) == [0] * 100


@pytest.mark.parametrize("validate_only", [False, True])
async def test_no_quota_is_passed_by_asking_beside_each_other(autojump_clock: MockClock, validate_only: bool) -> None:
    """K201-3: each topic counts for all that are judged after it, of its own request and of others;
    of a dry run for its own request.
    """
    async with slowly_ruling("[[quota]]\nowned = 'a.*'\nmax_topics = 6") as cluster:
        answers: list[Any] = []

        async def ask(prefix: str) -> None:
            answers.append(await cluster.ask(batch(prefix, 8, validate_only=validate_only), LAST))

        async with trio.open_nursery() as nursery:
            for prefix in ("a.x", "a.y", "a.z"):
                nursery.start_soon(ask, prefix)
        accepted = [codes(answer).count(0) for answer in answers]
        assert {code for answer in answers for code in codes(answer)} == {0, VIOLATION}
        if validate_only:
            assert accepted == [6, 6, 6]
        else:
            assert sum(accepted) == len(cluster.image.topics) == 6
            assert min(accepted) > 0, "they did not take turns"


async def test_what_is_late_is_not_begun(autojump_clock: MockClock) -> None:
    """K4-C7: at the timeout what was carried out carries no error; the others carry
    REQUEST_TIMED_OUT, and are not made later.
    """
    async with slowly_ruling() as cluster, trio.open_nursery() as nursery:
        nursery.start_soon(cluster.ask, batch("beside", 20, timeout_ms=60_000), LAST)
        answer = await cluster.ask(batch("long", 20, timeout_ms=2_000), LAST)
        await trio.sleep(60)
        made = [row.name for row in answer.topics if row.error_code == 0]
        assert 0 < len(made) < 20
        assert codes(answer) == [0] * len(made) + [TIMED_OUT] * (20 - len(made))
        assert {name for name in cluster.image.topics if name.startswith("long.")} == set(made)
        assert len([name for name in cluster.image.topics if name.startswith("beside.")]) == 20


async def test_a_controller_that_goes_between_two_parts(autojump_clock: MockClock) -> None:
    """Elements carried out before the controller resigned succeed; the rest are not begun and are
    answered REQUEST_TIMED_OUT, so that no node sends the whole request again.
    """
    async with slowly_ruling() as cluster, trio.open_nursery() as nursery:
        nursery.start_soon(cluster.ask, batch("beside", 20), LAST)
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await cluster.ask(batch("long", 20), LAST))

        nursery.start_soon(ask)
        await trio.sleep(3.1)
        cluster.controller.step_down()
        await trio.sleep(60)
        made = [row.name for row in answers[0].topics if row.error_code == 0]
        assert 0 < len(made) < 20
        assert codes(answers[0]) == [0] * len(made) + [TIMED_OUT] * (20 - len(made))
        known = cluster.nodes[1].cache.image.topics
        assert {name for name in known if name.startswith("long.")} == set(made)


@pytest.mark.parametrize("timeout_ms", [100, 1])
async def test_timed_out_means_not_done(autojump_clock: MockClock, timeout_ms: int) -> None:
    """A deletion and a creation that wait behind a slow request until their time is over do not
    happen afterwards.
    """
    async with slowly_ruling() as cluster:
        await cluster.make(wanted("kept", 1, 1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.ask, batch("long", 3), LAST)
            await trio.sleep(0.01)
            deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="kept")], timeout_ms=timeout_ms)
            assert [row.error_code for row in (await cluster.ask(deletion, 6)).responses] == [TIMED_OUT]
            assert codes(await cluster.ask(batch("late", 1, timeout_ms=timeout_ms), LAST)) == [TIMED_OUT]
        await trio.sleep(10)
        assert not cluster.topic("kept").marked_for_deletion
        assert "late.0" not in cluster.image.topics


async def test_a_trigger_is_carried_out(autojump_clock: MockClock) -> None:
    """K4-C6: a request with a timeout of 0 is carried out even if its client disconnects before it
    begins.
    """
    async with slowly_ruling() as cluster, trio.open_nursery() as nursery:
        nursery.start_soon(cluster.ask, batch("long", 3), LAST)
        await trio.sleep(0.01)
        with trio.move_on_after(0.01):
            await cluster.ask(batch("soon", 1, timeout_ms=0), LAST)
        with trio.move_on_after(0.01):
            await cluster.ask(batch("gone", 1), LAST)
        await trio.sleep(10)
        assert set(cluster.image.topics) == {"long.0", "long.1", "long.2", "soon.0"}


async def test_every_api_goes_on_where_it_stopped(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that are cut after each element are answered as if they were not, in the order of
    their elements.
    """
    monkeypatch.setattr(jobs, "PART_SECONDS", 0.0)
    names = [f"t.{number}" for number in range(6)]
    change = [IncrementalAlterableConfig(name="retention.ms", value="1")]
    altered = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=change)
            for name in [*names, "no"]
        ]
    )
    grown = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ["twice", *names, "no", "twice"]
        ],
        timeout_ms=PATIENT_MS,
    )
    deleted = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in ["t.0", *names, "no", "t.5"]], timeout_ms=PATIENT_MS
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with slowly_ruling() as cluster, trio.open_nursery() as nursery:

        async def ask_without_end() -> None:
            while True:
                await cluster.ask(batch("dry", 1, validate_only=True), LAST)

        for _ in range(2):
            nursery.start_soon(ask_without_end)
        assert codes(await cluster.ask(batch("t", 6), LAST)) == [0] * 6
        assert [row.error_code for row in (await cluster.ask(altered, 1)).responses] == [*[0] * 6, unknown]
        answer = await cluster.ask(grown, 3)
        assert [(row.name, row.error_code) for row in answer.results] == [
            *((name, 0) for name in names), ("no", unknown), ("twice", ErrorCode.INVALID_REQUEST),
        ]  # fmt: skip
        assert {len(cluster.topic(name).partitions) for name in names} == {2}
        assert [row.error_code for row in (await cluster.ask(deleted, 6)).responses] == [*[0] * 7, unknown, 0]
        nursery.cancel_scope.cancel()


async def test_parts_are_one_request_in_the_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element is recorded once, under its own number, and all know how many there are."""
    monkeypatch.setattr(jobs, "PART_SECONDS", 0.0)
    async with ruling({"audit.dir": str(tmp_path), "audit.flush": "always"}) as cluster, trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(cluster.ask, batch(f"r{number}", 5, validate_only=number == 3), LAST)
    elements: dict[int, list[tuple[int, int]]] = defaultdict(list)
    names: dict[int, list[str]] = defaultdict(list)
    for each in decisions_in(tmp_path):
        elements[each.request].append((each.element, each.elements))
        names[each.request].append(each.name[:2])
    assert list(elements.values()) == [[(number, 5) for number in range(5)]] * 4
    assert all(len(set(prefixes)) == 1 for prefixes in names.values())
    order = [each.request for each in decisions_in(tmp_path)]
    assert order != sorted(order), "they were not cut"


async def test_a_deletion_that_is_named_twice_in_a_long_request(autojump_clock: MockClock) -> None:
    """K4-D1b: a topic named in one part and given by id in a later part is deleted once, and both
    rows have the result.
    """
    async with slowly_ruling() as cluster, trio.open_nursery() as nursery:
        await cluster.make(*(wanted(f"t{number}", 1, 1) for number in range(10)))
        topics = list(cluster.image.topics.values())
        by_name = [DeleteTopicState(name=topic.name) for topic in topics]
        by_id = [DeleteTopicState(name=None, topic_id=topic.topic_id) for topic in topics]
        nursery.start_soon(cluster.ask, batch("beside", 20, timeout_ms=60_000), LAST)
        answer = await cluster.ask(DeleteTopicsRequest(topics=by_name + by_id, timeout_ms=60_000), 6)
        assert [row.error_code for row in answer.responses] == [0] * 20
        assert [row.name for row in answer.responses] == [topic.name for topic in topics] * 2
