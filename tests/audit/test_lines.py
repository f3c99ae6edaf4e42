"""No line of the audit log is longer than its readers take, whatever is asked for and however large
the cluster is.
"""

from pathlib import Path

import pytest

from minicontroller.admin.recording.log import AuditLog, AuditSettings
from minicontroller.admin.recording.recorder import AuditRecorder
from minicontroller.admin.recording.records import EventOrigin
from minicontroller.audit.event import MAX_LINE_BYTES, Decision, Dropped, Observed, SnapshotTopics, decode
from minicontroller.audit.lines import DROPPED_AS_TOO_LONG, encode_line
from minicontroller.cluster.entities import Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.audit.logs import CLUSTER, a_creation, a_state, decisions_in, events_in, found, stamp
from tests.handlers.altering import BROKER, TOPIC
from tests.handlers.ruling import ruling, wanted

LONG = 32_000
"""Characters of a name."""


@pytest.mark.parametrize("kind", [TOPIC, BROKER])
async def test_no_change_is_too_large_to_read(kind: int, tmp_path: Path) -> None:
    """A change beside hundreds of very long names is refused, so that it cannot take effect
    unrecorded; with a few long names everything is recorded.
    """
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await cluster.make(wanted("t", 1, 1))
        for count, code in ((600, ErrorCode.INVALID_REQUEST), (20, ErrorCode.NONE)):
            configs = [IncrementalAlterableConfig(name="retention.ms", value="1")] if kind == TOPIC else []
            configs += [
                IncrementalAlterableConfig(name=f"{number}{'x' * LONG}", config_operation=1, value=None)
                for number in range(count)
            ]
            resource = IncrementalAlterConfigsResource(
                resource_type=kind, resource_name="t" if kind == TOPIC else "", configs=configs
            )
            answer = await cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            assert answer.responses[0].error_code == code
        stored = await cluster.configs("topics/t")
    assert (stored or {}) == ({"retention.ms": "1"} if kind == TOPIC else {})
    last = decisions_in(tmp_path)[-1]
    assert last.config_operations is not None
    assert len(last.config_operations) == 20 + (kind == TOPIC)
    assert found(tmp_path) == []


def test_a_decision_that_is_too_large_is_told_without_what_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    """An event that is too large is written without the request, with principal, effect and states,
    and the node logs it.
    """
    whole = a_creation(7, config_operations={"\0" * MAX_LINE_BYTES: None}, after=a_state())
    told = decode(encode_line(whole))
    assert isinstance(told, Decision)
    assert (told.principal, told.effect, told.after) == (whole.principal, whole.effect, whole.after)
    assert (told.config_operations, told.requested, told.asked_ms) == (None, None, None)
    assert "what was asked is left out" in caplog.text


def test_what_is_too_large_even_so_is_told_as_dropped() -> None:
    """An event that is too large even without its request is replaced by a note that it was
    dropped.
    """
    huge = a_state(configs={"x": "x" * MAX_LINE_BYTES})
    for event in (a_creation(7, after=huge), Observed(**stamp(7), topic="t", before=None, after=huge)):
        told = decode(encode_line(event))
        assert isinstance(told, Dropped)
        assert (told.sequence, told.first_sequence, told.last_sequence) == (event.sequence,) * 3
        assert told.reason == DROPPED_AS_TOO_LONG


async def test_a_snapshot_of_large_topics_has_more_chunks(tmp_path: Path) -> None:
    """However many partitions and configs topics have, every chunk is read."""
    partitions = (Partition(replicas=(100_001, 100_002, 100_003)),) * 5_000
    topics = [Topic(name=f"t{number:03}", partitions=partitions) for number in range(180)]
    topics += [
        Topic(name=f"u{number:03}", partitions=partitions[:1], configs={"x": "\0" * 90_000}) for number in range(5)
    ]
    log = AuditLog(AuditSettings(folder=tmp_path), cluster_id=CLUSTER, node=1)
    AuditRecorder(log, EventOrigin(CLUSTER, 1, 1)).reloaded(Image().with_topics(topics))
    await log.close()
    chunks = [event for event in events_in(tmp_path) if isinstance(event, SnapshotTopics)]
    assert [each.topic for chunk in chunks for each in chunk.topics] == [topic.name for topic in topics]
    assert found(tmp_path) == []
