# ruff: noqa: B023, PLR0917 - steps read best in one line each, and run within their loop
"""Sequences of requests of records, groups and transactions, right and wrong, for any cluster."""

import struct
import time
from collections.abc import Callable
from typing import Any

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.legacy import LegacyMessage, written
from tests.records.made import NOW, changed, made
from tests.records.side import Side

Sequence = Callable[[Side], None]
SEQUENCES: dict[str, Sequence] = {}
PRODUCE_VERSIONS = (0, 1, 2, 3, 5, 7, 8, 9, 11)
FETCH_VERSIONS = (0, 1, 2, 3, 4, 5, 7, 9, 11, 12, 13, 15, 16, 17)


def sequence(run: Sequence) -> Sequence:
    SEQUENCES[run.__name__] = run
    return run


def topic(side: Side, name: str = "t", partitions: int = 1, **configs: str) -> str:
    """Make a topic that keeps what is old, and return its name."""
    whole = side.name(name)
    given = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in configs.items()}
    asked = {
        "name": whole,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": key, "value": value} for key, value in given.items()],
    }
    answer = side.quiet(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=30_000)
    assert answer["topics"][0]["error_code"] == 0, answer
    side.topics[whole] = answer["topics"][0]["topic_id"]
    for _ in range(200):
        seen = side.quiet(ApiKey.METADATA, 9, topics=[{"name": whole}])["topics"][0]
        if not seen["error_code"] and all(
            each["leader_id"] >= 0 and not each["error_code"] for each in seen["partitions"]
        ):
            break
        time.sleep(0.02)
    return whole


def put(
    side: Side,
    label: str,
    name: str,
    records: bytes | None,
    version: int = 9,
    *,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
    loud: bool = True,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "acks": acks,
        "timeout_ms": 5000,
        "topic_data": [{"name": name, "partition_data": [{"index": partition, "records": records}]}],
    }
    if transactional_id is not None:
        body["transactional_id"] = transactional_id
    if loud:
        return side.ask(label, ApiKey.PRODUCE, version, **body)
    return side.quiet(ApiKey.PRODUCE, version, **body)


def get(
    side: Side,
    label: str,
    name: str,
    offset: int = 0,
    version: int = 12,
    *,
    max_wait_ms: int = 100,
    min_bytes: int = 0,
    max_bytes: int = 1 << 20,
    isolation: int = 0,
    via: str = "",
    more: dict[str, Any] | None = None,
    **partition: Any,
) -> dict[str, Any]:
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20} | partition
    place = {"topic": name} if version < 13 else {"topic_id": side.topics.get(name, b"\x01" * 16)}
    body: dict[str, Any] = {
        "max_wait_ms": max_wait_ms,
        "min_bytes": min_bytes,
        "topics": [{**place, "partitions": [asked]}],
        **(more or {}),
    }
    if version >= 3:
        body["max_bytes"] = max_bytes
    if version >= 4:
        body["isolation_level"] = isolation
    return side.ask(label, ApiKey.FETCH, version, via=via, **body)


def legacy(values: list[bytes | None], magic: int, codec: int = 0, key: bytes | None = b"k") -> bytes:
    stamp = NOW if magic else -1
    return written(
        [LegacyMessage(at, magic, codec, stamp + at if magic else -1, key, value) for at, value in enumerate(values)],
        codec,
    )


def with_crc(data: bytes, crc: int) -> bytes:
    return data[:17] + struct.pack(">I", crc) + data[21:]


def at(data: bytes, place: int, value: bytes) -> bytes:
    """The same bytes with others at a place, whatever the checksum says."""
    return data[:place] + value + data[place + len(value) :]


# ---------------------------------------------------------------------- Produce


def odd_batches() -> dict[str, bytes | None]:
    """Records by what is odd about them."""
    good = made([b"a", b"b"])
    return {
        "empty": b"",
        "one byte": b"\0",
        "sixteen bytes": good[:16],
        "a cut header": good[:40],
        "a cut batch": good[:-3],
        "a tail": good + b"\0" * 5,
        "a cut second": good + good[:-1],
        "two batches": good + good,
        "a bad checksum": with_crc(good, 1),
        "magic 0": legacy([b"a", b"b"], 0),
        "magic 1": legacy([b"a", b"b"], 1),
        "magic 1, no key": legacy([b"a", None], 1, key=None),
        "magic 1, gzip": legacy([b"a", b"b"], 1, 1),
        "magic 0, gzip": legacy([b"a", b"b"], 0, 1),
        "magic 1, bad checksum": at(legacy([b"a"], 1), 12, b"\0\0\0\1"),
        "magic 3": at(good, 16, b"\3"),
        "magic -1": at(good, 16, b"\xff"),
        "magic 1 after 2": good + legacy([b"a"], 1),
        "codec 5": changed(good, attributes=5),
        "codec 7": changed(good, attributes=7),
        "zstd": made([b"a"], codec=4),
        "gzip": made([b"a", b"b"], codec=1),
        "snappy": made([b"a", b"b"], codec=2),
        "lz4": made([b"a", b"b"], codec=3),
        "gzip of nonsense": changed(good, attributes=1),
        "snappy of nonsense": changed(good, attributes=2),
        "lz4 of nonsense": changed(good, attributes=3),
        "zstd of nonsense": changed(good, attributes=4),
        "LogAppendTime": changed(good, attributes=8),
        "control": changed(good, attributes=0x20),
        "transactional, no producer": changed(good, attributes=0x10),
        "delete horizon": changed(good, attributes=0x40),
        "all unused bits": changed(good, attributes=0x7F80),
        "no records": changed(good, content=b"", count=0, last_offset_delta=0),
        "count 0": changed(good, count=0),
        "count 1 of 2": changed(good, count=1, last_offset_delta=0),
        "count 3 of 2": changed(good, count=3, last_offset_delta=2),
        "count -1": changed(good, count=-1),
        "a huge count": changed(good, count=2**31 - 1, last_offset_delta=2**31 - 2),
        "last offset 5": changed(good, last_offset_delta=5),
        "last offset -1": changed(good, last_offset_delta=-1),
        "base offset 7": changed(good, base_offset=7),
        "base offset -1": changed(good, base_offset=-1),
        "leader epoch 9": changed(good, leader_epoch=9),
        "max timestamp of its own": changed(good, max_timestamp=NOW + 5),
        "no timestamps": changed(good, base_timestamp=-1, max_timestamp=-1),
        "negative timestamps": changed(good, base_timestamp=-5, max_timestamp=-5),
        "far future": changed(good, base_timestamp=2**62, max_timestamp=2**62),
        "nonsense records": changed(good, content=b"\xff" * 20),
        "zero records": changed(good, content=b"\0" * 20),
        "a record too long": changed(good, content=good[61:-1]),
        "a tail of records": changed(good, content=good[61:] + b"x"),
        "length -1": at(good, 8, b"\xff\xff\xff\xff"),
        "length 0": at(good, 8, b"\0\0\0\0"),
        "length 20": at(good, 8, b"\0\0\0\x14"),
        "length huge": at(good, 8, b"\x7f\xff\xff\xff"),
        "sequence, no epoch": changed(good, base_sequence=3),
        "producer, no sequence": changed(good, producer_id=990, producer_epoch=0),
        "producer, no epoch": changed(good, producer_id=991, base_sequence=0),
        "producer -2": changed(good, producer_id=-2, base_sequence=0, producer_epoch=0),
        "offsets from 1": made_with_offsets([1, 2]),
        "offsets 0 0": made_with_offsets([0, 0]),
        "offsets 0 2": made_with_offsets([0, 2]),
    }


def made_with_offsets(offsets: list[int]) -> bytes:
    from minicontroller.records.records import Head, Record, built

    return built(Head(base_timestamp=NOW), [Record(each, 0, b"k", b"v") for each in offsets]).data


@sequence
def produce_odd_batches(side: Side) -> None:
    for version in PRODUCE_VERSIONS:
        name = topic(side, f"odd{version}", max_message_bytes="1000")
        for label, data in odd_batches().items():
            put(side, label, name, data, version)
        get(side, "all of them", name, version=12)


@sequence
def produce_places(side: Side) -> None:
    find(side, "the internal topics")
    good, name = made([b"a", b"b"]), topic(side)
    for version in PRODUCE_VERSIONS:
        data = legacy([b"a"], 1) if version < 3 else good
        put(side, "right", name, data, version)
        put(side, "unknown partition", name, data, version, partition=3)
        put(side, "partition -1", name, data, version, partition=-1)
        put(side, "unknown topic", "nobody-knows", data, version)
        put(side, "no name", "", data, version)
        put(side, "impossible name", "a b", data, version)
        put(side, "internal", "__consumer_offsets", data, version)
        put(side, "acks 5", name, data, version, acks=5)
        put(side, "acks 5, unknown topic", "nobody-knows", data, version, acks=5)
        put(side, "acks -2", name, data, version, acks=-2)
        side.ask("nothing", ApiKey.PRODUCE, version, acks=1, timeout_ms=1)
        side.ask("no partitions", ApiKey.PRODUCE, version, acks=1, timeout_ms=1, topic_data=[{"name": name}])
        twice = [{"index": 0, "records": data}, {"index": 0, "records": data}]
        side.ask(
            "a partition twice", ApiKey.PRODUCE, version, acks=1, topic_data=[{"name": name, "partition_data": twice}]
        )
        one = {"name": name, "partition_data": twice[:1]}
        side.ask("a topic twice", ApiKey.PRODUCE, version, acks=1, topic_data=[one, one])
        for label, wrong in (("acks 0", name), ("acks 0, unknown", "nobody-knows")):
            place = {"name": wrong, "partition_data": twice[:1]}
            side.send(ApiKey.PRODUCE, version, acks=0, topic_data=[place])
            try:
                side.ask(f"after {label}", ApiKey.API_VERSIONS, 0)["api_keys"].clear()
            except Exception as error:  # noqa: BLE001
                side.note(f"after {label} | {type(error).__name__}")
            side.lines[-1] = side.lines[-1][:60]
    get(side, "all", name)


@sequence
def produce_configured(side: Side) -> None:
    topics = {
        "compact": topic(side, "compact", cleanup_policy="compact"),
        "both": topic(side, "both", cleanup_policy="compact,delete"),
        "append time": topic(side, "append", message_timestamp_type="LogAppendTime"),
        "bounds": topic(
            side, "bounds", message_timestamp_before_max_ms="100000", message_timestamp_after_max_ms="100000"
        ),
        "small": topic(side, "small", max_message_bytes="100"),
        "segments": topic(side, "segments", segment_bytes="120"),
        **{
            codec: topic(side, codec, compression_type=codec)
            for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")
        },
    }
    good, now = made([b"a", b"b"]), int(time.time() * 1000)
    batches: dict[str, bytes] = {
        "right": good,
        "no key": made([b"a", b"b"], key=None),
        "second without key": made([b"a", b"b"], keys=[b"k", None]),
        "tombstone": made([None]),
        "now": changed(good, base_timestamp=now, max_timestamp=now),
        "later": changed(good, base_timestamp=now + 500_000, max_timestamp=now + 500_000),
        "second old": changed(
            made([b"a", b"b"], timestamps=[0, 500_000]), base_timestamp=now - 500_000, max_timestamp=now
        ),
        "LogAppendTime": changed(good, attributes=8),
        "long": made([b"x" * 500]),
        "long zeros in gzip": made([b"x" * 500], codec=1),
        "lz4": made([b"a", b"b"], codec=3),
        "zstd": made([b"a", b"b"], codec=4),
        "magic 1": legacy([b"a", b"b"], 1),
        "magic 0": legacy([b"a", b"b"], 0),
        "magic 1, no key": legacy([b"a", b"b"], 1, key=None),
        "magic 1, gzip": legacy([b"a", b"b"], 1, 1),
    }
    for version in (2, 3, 8, 11):
        for what, name in topics.items():
            for label, data in batches.items():
                is_old = label.startswith("magic")
                if is_old == (version == 2) and not (label == "zstd" and version < 7):
                    put(side, f"{label} to {what}", name, data, version)
    for what, name in topics.items():
        for version in (12, 9, 4) if what in ("snappy", "lz4") else (12, 9, 4, 2, 1, 0):
            get(side, what, name, version=version)


@sequence
def produce_sequences(side: Side) -> None:
    name = topic(side)
    for version in (3, 7, 11):
        answer = side.ask("a producer", ApiKey.INIT_PRODUCER_ID, 1, transactional_id=None, transaction_timeout_ms=1000)
        producer = answer["producer_id"]

        def send(label: str, first: int, count: int = 1, epoch: int = 0, id_: int = producer, **more: Any) -> None:
            data = made([b"v"] * count, producer_id=id_, producer_epoch=epoch, base_sequence=first)
            put(side, label, name, changed(data, **more) if more else data, version)

        send("begin with 5", 5)
        send("0-1", 0, 2)
        send("0-1 again", 0, 2)
        send("2", 2)
        send("0-1 again", 0, 2)
        send("4 with a gap", 4)
        send("1", 1)
        send("0-0, a part", 0)
        send("0-2, more", 0, 3)
        for each in range(3, 9):
            send(f"{each}", each)
        send("2 again, too long ago", 2)
        send("4 again", 4)
        send("8 again", 8)
        send("epoch 2 from 5", 5, epoch=2)
        send("epoch 2 from 0", 0, epoch=2)
        send("epoch 1", 1, epoch=1)
        send("epoch 2, 1", 1, epoch=2)
        send("epoch -2", 1, epoch=-2)
        send("unknown producer from 7", 7, id_=123_456_789 + version)
        send("unknown producer from 0", 0, id_=123_456_790 + version)
        send("the last sequence", 2**31 - 1, id_=223_456_790 + version)
        send("wraps", 0, id_=223_456_790 + version)
        send("transactional", 2, epoch=2, attributes=0x10)
        send("control", 2, epoch=2, attributes=0x20)
        data = made([b"v"], producer_id=producer, producer_epoch=2, base_sequence=2)
        put(side, "two batches of a producer", name, data + data, version)
        put(side, "and one without", name, data + made([b"v"]), version)
    producers(side, "at the end", name)
    get(side, "all", name, version=12)


def producers(side: Side, label: str, name: str, *partitions: int) -> None:
    side.ask(
        label, ApiKey.DESCRIBE_PRODUCERS, 0, topics=[{"name": name, "partition_indexes": list(partitions or (0,))}]
    )


# ---------------------------------------------------------------------- Fetch


@sequence
def fetch_offsets(side: Side) -> None:
    name = topic(side)
    topic(side, "empty")
    for _ in range(4):
        put(side, "", name, made([b"v" * 40] * 3), loud=False)
    get(side, "empty", side.name("empty"))
    for version in FETCH_VERSIONS:
        for offset in (-2, -1, 0, 1, 2, 3, 11, 12, 13, 2**40):
            get(side, f"from {offset}", name, offset, version)
        for size in (-1, 0, 1, 50, 100, 250, 400, 2**31 - 1):
            get(side, f"a partition's {size} bytes", name, 1, version, partition_max_bytes=size)
            if version >= 3:
                get(side, f"{size} bytes", name, 1, version, max_bytes=size)
        get(side, "empty, from 1", side.name("empty"), 1, version)
        get(side, "unknown topic", "nobody-knows", 0, version)
        get(side, "no name", "", 0, version)
        get(side, "unknown partition", name, 0, version, partition=7)
        get(side, "partition -1", name, 0, version, partition=-1)
        side.ask("nothing", ApiKey.FETCH, version, max_wait_ms=10, min_bytes=0)
        side.ask("nothing, with min_bytes", ApiKey.FETCH, version, max_wait_ms=10, min_bytes=5)
        if version >= 9:
            for epoch in (-2, -1, 0, 1, 100):
                get(side, f"leader epoch {epoch}", name, 0, version, current_leader_epoch=epoch)
        if version >= 12:
            for epoch in (-2, -1, 0, 1, 100):
                get(side, f"last epoch {epoch}", name, 5, version, last_fetched_epoch=epoch)
                get(side, f"last epoch {epoch} behind the end", name, 20, version, last_fetched_epoch=epoch)
        if version >= 4:
            get(side, "isolation 1", name, 0, version, isolation=1)
            get(side, "isolation 2", name, 0, version, isolation=2)
        if version >= 11:
            get(side, "a rack", name, 0, version, more={"rack_id": "r"})
    for low in (5, -1):
        asked = {"name": name, "partitions": [{"partition_index": 0, "offset": low}]}
        side.ask(f"delete before {low}", ApiKey.DELETE_RECORDS, 2, topics=[asked], timeout_ms=5000)
        for version in FETCH_VERSIONS:
            for offset in (0, 4, 5, 6, 11, 12):
                get(side, f"from {offset} after {low}", name, offset, version)
            if version >= 12:
                get(side, "last epoch 0, before the start", name, 3, version, last_fetched_epoch=0)


@sequence
def fetch_several(side: Side) -> None:
    first, second = topic(side, "a", 3), topic(side, "b", 2)
    for name, index in ((first, 0), (first, 2), (second, 1)):
        put(side, "", name, made([b"v" * 100]), partition=index, loud=False)
    for version in FETCH_VERSIONS:
        for size in (0, 1, 200, 400, 1 << 20):
            topics = [
                {
                    **({"topic": name} if version < 13 else {"topic_id": side.topics[name]}),
                    "partitions": [{"partition": each, "partition_max_bytes": 1 << 20} for each in range(count)],
                }
                for name, count in ((first, 3), (second, 2), ("x", 1) if version < 13 else (first, 1))
            ]
            more: dict[str, Any] = {"max_bytes": size} if version >= 3 else {}
            side.ask(f"{size} bytes", ApiKey.FETCH, version, max_wait_ms=10, min_bytes=0, topics=topics, **more)


@sequence
def fetch_waits(side: Side) -> None:
    name = topic(side)
    put(side, "", name, made([b"v" * 40]), loud=False)
    for version in (0, 3, 4, 12, 17):
        for label, offset, least, wait, low, high in (
            ("enough", 0, 10, 500, 0, 0.3),
            ("too little", 0, 10_000, 500, 0.45, 1.2),
            ("at the end", 1, 1, 500, 0.45, 1.2),
            ("at the end, min_bytes 0", 1, 0, 500, 0, 0.3),
            ("out of range", 9, 1, 500, 0, 0.3),
            ("no wait", 1, 1, 0, 0, 0.3),
            ("negative", 1, 1, -1, 0, 0.3),
        ):
            begun = time.monotonic()
            get(side, label, name, offset, version, min_bytes=least, max_wait_ms=wait)
            side.timed(label, begun, low, high)


@sequence
def fetch_sessions(side: Side) -> None:
    names = [topic(side, each, 2) for each in ("a", "b")]
    for name in names:
        put(side, "", name, made([b"v"]), loud=False)

    def asked(name: str, version: int, *partitions: int, offset: int = 0) -> dict[str, Any]:
        place = {"topic": name} if version < 13 else {"topic_id": side.topics[name]}
        rows = [{"partition": each, "fetch_offset": offset, "partition_max_bytes": 1 << 20} for each in partitions]
        return {**place, "partitions": rows}

    for version in (7, 9, 12, 13, 17):

        def step(label: str, id_: int, epoch: int, *topics: Any, forgotten: Any = (), version: int = version) -> int:
            answer = side.ask(
                label,
                ApiKey.FETCH,
                version,
                max_wait_ms=10,
                min_bytes=0,
                session_id=id_,
                session_epoch=epoch,
                topics=list(topics),
                forgotten_topics_data=list(forgotten),
            )
            return int(answer.get("session_id", 0))

        a, b = names
        step("without", 0, -1, asked(a, version, 0))
        step("final of none", 0, -1)
        step("epoch 1 of none", 0, 1, asked(a, version, 0))
        step("unknown", 12_345, 1, asked(a, version, 0))
        step("unknown, epoch 0", 12_345, 0, asked(a, version, 0))
        step("unknown, final", 12_346, -1, asked(a, version, 0))
        step("of nothing", 0, 0)
        id_ = step("begin", 0, 0, asked(a, version, 0, 1), asked(b, version, 0))
        step("nothing new", id_, 1)
        step("again", id_, 1)
        step("too early", id_, 7)
        step("negative", id_, -5)
        step("a further one", id_, 2, asked(b, version, 1))
        step("at the end", id_, 3, asked(a, version, 0, offset=1))
        put(side, "", a, made([b"w"]), loud=False)
        step("something new", id_, 4)
        place = {"topic": a} if version < 13 else {"topic_id": side.topics[a]}
        step("forget", id_, 5, forgotten=[{**place, "partitions": [0]}])
        step("without it", id_, 6)
        step("forget what is not there", id_, 7, forgotten=[{**place, "partitions": [0, 9]}])
        step("forget and add", id_, 8, asked(a, version, 0), forgotten=[{**place, "partitions": [0]}])
        step("after", id_, 9)
        step("an unknown partition", id_, 10, asked(a, version, 8))
        step("still unknown", id_, 11)
        step("out of range", id_, 12, asked(a, version, 0, offset=99))
        step("still", id_, 13)
        if version >= 13:
            step("an unknown id", id_, 14, {"topic_id": b"\x07" * 16, "partitions": [{"partition": 0}]})
            step("still there", id_, 15)
            step("names after ids", id_, 16, version=12)
            step("after the names", id_, 17)
        else:
            step("ids after names", id_, 14, version=13)
        step("new in its place", id_, 0, asked(a, version, 0))
        step("the former", id_, 18)
        other = step("another", 0, 0, asked(a, version, 0))
        step("close", other, -1)
        step("is closed", other, 1)


@sequence
def fetch_transactions(side: Side) -> None:
    name = topic(side, "t", 2)
    find(side, "tx")

    def begin(transactional_id: str) -> tuple[int, int]:
        answer = side.quiet(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        producer = answer["producer_id"], answer["producer_epoch"]
        side.quiet(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[{"name": name, "partitions": [0]}],
        )
        return producer

    def write(label: str, transactional_id: str, producer: tuple[int, int], sequence_: int) -> None:
        data = made([b"v"], bits=0x10, producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence_)
        put(side, label, name, data, 9, transactional_id=transactional_id)

    def look(label: str) -> None:
        for version in FETCH_VERSIONS:
            for isolation in (0, 1) if version >= 4 else (0,):
                for offset in (0, 2, 3):
                    get(side, f"{label}, isolation {isolation}", name, offset, version, isolation=isolation)
        for version in (1, 2, 5, 9):
            for isolation in (0, 1) if version >= 2 else (0,):
                for timestamp in (-1, -2, NOW, NOW + 1) + ((-3,) if version >= 7 else ()):
                    offsets(side, f"{label}, isolation {isolation}", name, timestamp, version, isolation=isolation)
        producers(side, label, name)

    def end(transactional_id: str, producer: tuple[int, int], commits: bool) -> None:
        side.ask(
            f"end {commits}",
            ApiKey.END_TXN,
            3,
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commits,
        )
        time.sleep(0.3)

    first, second = (begin(side.name(each)) for each in ("one", "two"))
    put(side, "without", name, made([b"p"]))
    write("one", side.name("one"), first, 0)
    write("two", side.name("two"), second, 0)
    put(side, "without", name, made([b"p"]))
    look("open")
    end(side.name("two"), second, commits=False)
    look("one open, two aborted")
    end(side.name("one"), first, commits=True)
    look("one committed, two aborted")
    put(side, "without", name, made([b"p"]))
    begun = begin(side.name("one"))
    write("one again", side.name("one"), begun, 1)
    look("one open again")
    side.quiet(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=side.name("one"), transaction_timeout_ms=60_000)
    time.sleep(0.5)
    look("fenced")
    asked = {"name": name, "partitions": [{"partition_index": 0, "offset": 4}]}
    side.ask("delete before 4", ApiKey.DELETE_RECORDS, 2, topics=[asked], timeout_ms=5000)
    look("after deletion")


def find(side: Side, key: str) -> None:
    """Make the topics of both coordinators, and wait for them."""
    for kind in (0, 1):
        for _ in range(300):
            answer = side.quiet(ApiKey.FIND_COORDINATOR, 3, key=side.name(key), key_type=kind)
            if not answer["error_code"]:
                break
            time.sleep(0.05)
    for _ in range(200):
        answer = side.quiet(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=side.name("ready"), transaction_timeout_ms=60_000
        )
        fetched = side.quiet(ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": side.name("ready"), "topics": None}])
        if not answer["error_code"] and not fetched["groups"][0]["error_code"]:
            return
        time.sleep(0.05)


# ---------------------------------------------------------------------- offsets and epochs


def offsets(
    side: Side, label: str, name: str, timestamp: int, version: int, *, isolation: int = 0, **partition: Any
) -> None:
    asked = {"partition_index": 0, "timestamp": timestamp} | partition
    body: dict[str, Any] = {"replica_id": -1, "topics": [{"name": name, "partitions": [asked]}]}
    if version >= 2:
        body["isolation_level"] = isolation
    side.ask(f"{label}, at {timestamp}", ApiKey.LIST_OFFSETS, version, **body)


LIST_VERSIONS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
TIMES = (-6, -5, -4, -3, -2, -1, 0, NOW - 1, NOW, NOW + 1, NOW + 5, NOW + 10, NOW + 20, NOW + 21, 2**60)


@sequence
def list_offsets(side: Side) -> None:
    name, empty = topic(side), topic(side, "empty")
    zipped = topic(side, "zipped", compression_type="gzip")
    stamped = topic(side, "stamped", message_timestamp_type="LogAppendTime")
    for each in (name, zipped, stamped):
        put(side, "", each, made([b"a", b"b", b"c"], timestamps=[0, 10, 5]), loud=False)
        time.sleep(0.01)
        put(side, "", each, made([b"a", b"b"], timestamps=[20, 3]), loud=False)
        time.sleep(0.01)
        put(side, "", each, made([b"a"], timestamps=[7]), loud=False)
    for version in LIST_VERSIONS:
        for label, each in (("plain", name), ("gzip", zipped), ("empty", empty), ("unknown", "nobody-knows")):
            for timestamp in TIMES:
                offsets(side, label, each, timestamp, version)
        for timestamp in (-3, -2, -1, NOW, 2**60):
            offsets(side, "stamped", stamped, timestamp, version)
        offsets(side, "partition 9", name, -1, version, partition_index=9)
        offsets(side, "partition -1", name, -1, version, partition_index=-1)
        if version >= 4:
            for epoch in (-2, -1, 0, 1, 99):
                offsets(side, f"epoch {epoch}", name, -1, version, current_leader_epoch=epoch)
        if not version:
            for number in (-1, 0, 1, 2, 10):
                offsets(side, f"{number} offsets", name, -1, 0, max_num_offsets=number)
                offsets(side, f"{number} offsets", name, -2, 0, max_num_offsets=number)
        row = {"partition_index": 0, "timestamp": -1}
        side.ask(
            "a partition twice",
            ApiKey.LIST_OFFSETS,
            version,
            replica_id=-1,
            topics=[{"name": name, "partitions": [row, {**row, "timestamp": -2}]}],
        )
        for replica in (-2, 1, 5):
            topics = [{"name": name, "partitions": [row]}]
            side.ask(f"replica {replica}", ApiKey.LIST_OFFSETS, version, replica_id=replica, topics=topics)
    asked = {"name": name, "partitions": [{"partition_index": 0, "offset": 4}]}
    side.ask("delete before 4", ApiKey.DELETE_RECORDS, 2, topics=[asked], timeout_ms=5000)
    for version in LIST_VERSIONS:
        for timestamp in TIMES:
            offsets(side, "deleted", name, timestamp, version)


@sequence
def epochs(side: Side) -> None:
    name = topic(side)
    for label in ("empty", "with records"):
        for version in range(5):
            for current in (-2, -1, 0, 1) if version >= 2 else (-1,):
                for epoch in (-2, -1, 0, 1, 99):
                    row = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": current}
                    body: dict[str, Any] = {"topics": [{"topic": name, "partitions": [row]}]}
                    side.ask(f"{label}, {current}, {epoch}", ApiKey.OFFSET_FOR_LEADER_EPOCH, version, **body)
            rows = [{"partition": each, "leader_epoch": 0} for each in (5, -1)]
            for other in (name, "nobody-knows", ""):
                body = {"topics": [{"topic": other, "partitions": rows}]}
                side.ask("unknown", ApiKey.OFFSET_FOR_LEADER_EPOCH, version, **body)
            if version >= 3:
                for replica in (-2, -1, 1, 5):
                    row = {"partition": 0, "leader_epoch": 0}
                    body = {"replica_id": replica, "topics": [{"topic": name, "partitions": [row]}]}
                    side.ask(f"replica {replica}", ApiKey.OFFSET_FOR_LEADER_EPOCH, version, **body)
        put(side, "", name, made([b"a"]), loud=False)


# ---------------------------------------------------------------------- groups

JOIN_VERSIONS, SYNC_VERSIONS, BEAT_VERSIONS, LEAVE_VERSIONS = (
    (0, 1, 3, 4, 5, 7, 9),
    (0, 2, 3, 5),
    (0, 2, 3, 4),
    (0, 2, 3, 4, 5),
)
PROTOCOLS = [{"name": "range", "metadata": b"r"}, {"name": "robin", "metadata": b"o"}]


def join(
    side: Side, label: str, group: str, version: int = 5, *, via: str = "", sent: bool = False, **given: Any
) -> dict[str, Any]:
    """Join, again with the id that a group gives if it wants one."""
    body: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": PROTOCOLS,
        "member_id": "",
        **given,
    }
    if version >= 1:
        body.setdefault("rebalance_timeout_ms", 3000)
    if sent:
        side.send(ApiKey.JOIN_GROUP, version, via=via, **body)
        return body
    return side.ask(label, ApiKey.JOIN_GROUP, version, via=via, **body)


def member(side: Side, label: str, group: str, version: int = 5, **given: Any) -> tuple[str, int]:
    """Join as a client does, and return the id and the generation."""
    answer = join(side, label, group, version, **given)
    if answer.get("error_code") == ErrorCode.MEMBER_ID_REQUIRED:
        answer = join(side, f"{label} with its id", group, version, **{**given, "member_id": answer["member_id"]})
    return answer.get("member_id", ""), answer.get("generation_id", -1)


def sync(
    side: Side, label: str, group: str, who: str, generation: int, version: int = 3, **given: Any
) -> dict[str, Any]:
    body: dict[str, Any] = {"group_id": group, "generation_id": generation, "member_id": who, **given}
    if version >= 5:
        body = {"protocol_type": "consumer", "protocol_name": "range"} | body
    return side.ask(label, ApiKey.SYNC_GROUP, version, **body)


def beat(side: Side, label: str, group: str, who: str, generation: int, version: int = 3, **given: Any) -> None:
    side.ask(label, ApiKey.HEARTBEAT, version, group_id=group, member_id=who, generation_id=generation, **given)


def leave(side: Side, label: str, group: str, *who: tuple[str, str | None], version: int = 3) -> None:
    if version < 3:
        side.ask(label, ApiKey.LEAVE_GROUP, version, group_id=group, member_id=who[0][0])
    else:
        members = [{"member_id": each, "group_instance_id": instance} for each, instance in who]
        side.ask(label, ApiKey.LEAVE_GROUP, version, group_id=group, members=members)


def look_at(side: Side, label: str, *groups: str, versions: tuple[int, ...] = (0, 3, 4, 5)) -> None:
    for version in versions:
        more: dict[str, Any] = {"include_authorized_operations": True} if version >= 3 else {}
        side.ask(label, ApiKey.DESCRIBE_GROUPS, version, groups=list(groups), **more)


def commit(
    side: Side, label: str, group: str, name: str, version: int = 5, who: str = "", generation: int = -1, **given: Any
) -> None:
    row = {"partition_index": 0, "committed_offset": 3, "committed_metadata": "m"} | given.pop("row", {})
    body: dict[str, Any] = {"group_id": group, "topics": [{"name": name, "partitions": [row]}], **given}
    if version >= 1:
        body |= {"member_id": who, "generation_id_or_member_epoch": generation}
    side.ask(label, ApiKey.OFFSET_COMMIT, version, **body)


def committed(side: Side, label: str, group: str, *names: str, versions: tuple[int, ...] = (1, 2, 5, 7, 8, 9)) -> None:
    topics = [{"name": each, "partition_indexes": [0, 1]} for each in names] if names else None
    for version in versions:
        if version >= 8:
            for stable in (False, True):
                asked = [{"group_id": group, "topics": topics}]
                side.ask(label, ApiKey.OFFSET_FETCH, version, groups=asked, require_stable=stable)
        elif topics is not None or version >= 2:
            more: dict[str, Any] = {"require_stable": True} if version == 7 else {}
            side.ask(label, ApiKey.OFFSET_FETCH, version, group_id=group, topics=topics, **more)


LISTINGS: list[tuple[int, dict[str, Any]]] = [
    *((version, {}) for version in (0, 3)),
    *((version, {"states_filter": states}) for version in (4, 5) for states in (["Stable"], ["stable", "Empty", "x"])),
    *((5, {"types_filter": [kind]}) for kind in ("classic", "consumer", "x", "Classic")),
]


@sequence
def group_joins(side: Side) -> None:
    find(side, "g")
    for version in JOIN_VERSIONS:
        group = side.name(f"g{version}")
        join(side, "no group", "", version)
        join(side, "unknown member", group, version, member_id="somebody")
        join(side, "timeout too short", group, version, session_timeout_ms=5999)
        join(side, "timeout too long", group, version, session_timeout_ms=1_800_001)
        join(side, "negative timeout", group, version, session_timeout_ms=-1)
        join(side, "no protocols", group, version, protocols=[])
        join(side, "no protocol type", group, version, protocol_type="")
        join(side, "no protocol type or protocols", group, version, protocol_type="", protocols=[])
        look_at(side, "after these", group)
        who, generation = member(side, "right", group, version)
        look_at(side, "joined", group)
        for each in SYNC_VERSIONS:
            sync(side, "a wrong member", group, "x", generation, each)
            sync(side, "a wrong generation", group, who, generation + 1, each)
            sync(side, "no group", "", who, generation, each)
            sync(side, "an unknown group", "nobody", who, generation, each)
            if each >= 5:
                sync(side, "another type", group, who, generation, each, protocol_type="connect")
                sync(side, "another protocol", group, who, generation, each, protocol_name="robin")
                sync(side, "no protocol", group, who, generation, each, protocol_name=None)
                sync(side, "no type", group, who, generation, each, protocol_type=None)
        beat(side, "before sync", group, who, generation)
        for each in SYNC_VERSIONS:
            assignments = [{"member_id": who, "assignment": b"first"}, {"member_id": "x", "assignment": b"y"}]
            sync(side, "right", group, who, generation, each, assignments=assignments)
            sync(side, "again without", group, who, generation, each)
        look_at(side, "stable", group)
        for each in BEAT_VERSIONS:
            beat(side, "right", group, who, generation, each)
            beat(side, "wrong generation", group, who, generation + 1, each)
            beat(side, "old generation", group, who, generation - 1, each)
            beat(side, "wrong member", group, "x", generation, each)
            beat(side, "no member", group, "", generation, each)
            beat(side, "no group", "", who, generation, each)
            beat(side, "unknown group", "nobody", who, generation, each)
            if each >= 3:
                beat(side, "an instance", group, who, generation, each, group_instance_id="i")
        join(side, "another type", group, version, protocol_type="connect")
        join(side, "another protocol", group, version, protocols=[{"name": "odd", "metadata": b""}])
        who, generation = member(side, "again", group, version, member_id=who)
        for each in LEAVE_VERSIONS:
            leave(side, "wrong", group, ("x", None), version=each)
            leave(side, "no group", "", (who, None), version=each)
            leave(side, "unknown group", "nobody", (who, None), version=each)
            if each >= 3:
                leave(side, "nobody", group, version=each)
                leave(side, "two", group, ("x", None), ("", "i"), version=each)
        leave(side, "right", group, (who, None), version=LEAVE_VERSIONS[version % 5])
        look_at(side, "left", group)
        beat(side, "left", group, who, generation)
        sync(side, "left", group, who, generation)
        join(side, "left", group, version, member_id=who)
        side.ask("delete", ApiKey.DELETE_GROUPS, 2, groups_names=[group, group, "nobody"])
        look_at(side, "deleted", group)


@sequence
def group_rebalances(side: Side) -> None:
    find(side, "g")
    for version in (3, 5, 9):
        group = side.name(f"g{version}")
        leader, generation = member(side, "the first", group, version, rebalance_timeout_ms=8000)
        sync(side, "the first", group, leader, generation, assignments=[{"member_id": leader, "assignment": b"1"}])
        answer = None
        if version >= 4:
            answer = join(side, "second", group, version, via="second")
        given = {"member_id": answer["member_id"]} if answer else {}
        join(side, "second", group, version, via="second", sent=True, protocols=PROTOCOLS[1:], **given)
        time.sleep(0.3)
        look_at(side, "preparing", group)
        beat(side, "preparing", group, leader, generation)
        sync(side, "preparing", group, leader, generation)
        commit(side, "preparing", group, "nobody-knows", 7, leader, generation)
        leader, generation = member(side, "the first again", group, version, member_id=leader)
        second = side.later("the second", ApiKey.JOIN_GROUP, version, via="second")["member_id"]
        look_at(side, "completing", group)
        beat(side, "completing", group, leader, generation)
        commit(side, "completing", group, "nobody-knows", 7, leader, generation)
        side.send(ApiKey.SYNC_GROUP, 3, via="second", group_id=group, generation_id=generation, member_id=second)
        time.sleep(0.1)
        rows = [{"member_id": leader, "assignment": b"1"}, {"member_id": second, "assignment": b"2"}]
        sync(side, "the first", group, leader, generation, assignments=rows)
        side.later("the second", ApiKey.SYNC_GROUP, 3, via="second")
        look_at(side, "stable", group)
        join(side, "the second, the same", group, version, member_id=second, protocols=PROTOCOLS[1:])
        side.ask("list", ApiKey.LIST_GROUPS, 4, states_filter=["Nonsense"])
        side.ask("delete", ApiKey.DELETE_GROUPS, 2, groups_names=[group])
        leave(side, "the leader leaves", group, (leader, None))
        beat(side, "rebalances", group, second, generation)
        begun = time.monotonic()
        second, generation = member(
            side, "the second joins", group, version, member_id=second, rebalance_timeout_ms=2000
        )
        side.timed("alone", begun, 0, 0.4)
        sync(side, "the second", group, second, generation, assignments=[{"member_id": second, "assignment": b"3"}])
        third = join(side, "third", group, version, via="third") if version >= 4 else {"member_id": ""}
        join(side, "third", group, version, via="third", sent=True, member_id=third["member_id"])
        begun = time.monotonic()
        side.later("the third waits for the timeout", ApiKey.JOIN_GROUP, version, via="third")
        side.timed("the timeout", begun, 1.5, 3.2)
        beat(side, "the second is out", group, second, generation)
        look_at(side, "the third alone", group)


@sequence
def group_static(side: Side) -> None:
    find(side, "g")
    for version in (5, 7, 8, 9):
        group = side.name(f"g{version}")
        first, generation = member(side, "static", group, version, group_instance_id="a")
        sync(
            side,
            "static",
            group,
            first,
            generation,
            group_instance_id="a",
            assignments=[{"member_id": first, "assignment": b"1"}],
        )
        look_at(side, "static", group)
        join(side, "empty instance", group, version, group_instance_id="")
        join(side, "a wrong id", group, version, group_instance_id="a", member_id="x")
        join(side, "unknown instance, known id", group, version, group_instance_id="b", member_id=first)
        again, generation = member(side, "replaces", group, version, group_instance_id="a")
        look_at(side, "replaced", group)
        beat(side, "the old one", group, first, generation, 3, group_instance_id="a")
        beat(side, "the old one without", group, first, generation, 3)
        beat(side, "the new one", group, again, generation, 3, group_instance_id="a")
        sync(side, "the old one", group, first, generation, 5, group_instance_id="a")
        sync(side, "the new one", group, again, generation, 5, group_instance_id="a")
        commit(side, "the old one", group, "nobody-knows", 7, first, generation, group_instance_id="a")
        _, generation = member(
            side, "replaces with others", group, version, group_instance_id="a", protocols=PROTOCOLS[1:]
        )
        look_at(side, "other protocols", group)
        leave(side, "wrong id", group, ("x", "a"))
        leave(side, "unknown instance", group, ("", "zzz"))
        leave(side, "by instance", group, ("", "a"), version=4)
        look_at(side, "left", group)


@sequence
def group_offsets(side: Side) -> None:
    find(side, "g")
    name = topic(side, "t", 2)
    for version in (0, 1, 2, 4, 5, 6, 7, 8, 9):
        if not version:
            continue  # Kafka keeps these in ZooKeeper
        group = side.name(f"g{version}")
        committed(side, "an unknown group", group, name)
        committed(side, "an unknown group, all", group)
        commit(side, "no group", "", name, version)
        commit(side, "no topic", group, "nobody-knows", version)
        commit(side, "no partition", group, name, version, row={"partition_index": 9})
        commit(side, "member without group", group, name, version, "x", 1)
        commit(side, "generation without member", group, name, version, "", 1)
        commit(side, "long metadata", group, name, version, row={"committed_metadata": "x" * 4097})
        commit(side, "longest metadata", group, name, version, row={"committed_metadata": "é" * 4096})
        commit(side, "no metadata", group, name, version, row={"committed_metadata": None})
        commit(side, "negative offset", group, name, version, row={"committed_offset": -5})
        side.ask("nothing", ApiKey.OFFSET_COMMIT, version, group_id=group)
        if version >= 6:
            commit(side, "with an epoch", group, name, version, row={"committed_leader_epoch": 7})
        commit(side, "right", group, name, version)
        committed(side, "right", group, name, "nobody-knows")
        committed(side, "right, all", group)
        look_at(side, "of nobody", group)
        who, generation = member(side, "a member", group, 5, protocol_type="consumer")
        commit(side, "before sync", group, name, version, who, generation)
        sync(side, "a member", group, who, generation, assignments=[{"member_id": who, "assignment": b"1"}])
        commit(side, "of the member", group, name, version, who, generation)
        commit(side, "of an old generation", group, name, version, who, generation - 1)
        commit(side, "of a further generation", group, name, version, who, generation + 1)
        commit(side, "of another member", group, name, version, "x", generation)
        commit(side, "of nobody", group, name, version)
        if version >= 7:
            commit(side, "of an instance", group, name, version, who, generation, group_instance_id="i")
        asked = [{"name": name, "partitions": [{"partition_index": each} for each in (0, 1, 9)]}]
        for each in (group, "nobody", ""):
            side.ask("delete offsets", ApiKey.OFFSET_DELETE, 0, group_id=each, topics=asked)
        side.ask("delete", ApiKey.DELETE_GROUPS, 1, groups_names=[group])
        leave(side, "leaves", group, (who, None))
        committed(side, "after", group, name)
        side.ask("delete offsets", ApiKey.OFFSET_DELETE, 0, group_id=group, topics=asked)
        look_at(side, "without offsets", group)
        side.ask("delete", ApiKey.DELETE_GROUPS, 1, groups_names=[group])
        committed(side, "deleted", group, name)
    group = side.name("subscribed")
    subscription = struct.pack(">hi", 1, 1) + struct.pack(">h", len(name)) + name.encode() + struct.pack(">ii", -1, 0)
    who, generation = member(side, "subscribed", group, protocols=[{"name": "range", "metadata": subscription}])
    sync(side, "subscribed", group, who, generation, assignments=[{"member_id": who, "assignment": b"1"}])
    commit(side, "subscribed", group, name, 7, who, generation)
    asked = [{"name": each, "partitions": [{"partition_index": 0}]} for each in (name, "nobody-knows")]
    side.ask("subscribed", ApiKey.OFFSET_DELETE, 0, group_id=group, topics=asked)
    committed(side, "subscribed", group, name)
    side.ask("subscribed", ApiKey.DELETE_GROUPS, 2, groups_names=[group])
    for version, given in LISTINGS:
        answer = side.quiet(ApiKey.LIST_GROUPS, version, **given)
        answer["groups"] = sorted((each for each in answer["groups"] if side.run in each["group_id"]), key=str)
        side.note(f"list {given} | LIST_GROUPS v{version} | {side.shown(answer)}")


@sequence
def group_sessions(side: Side) -> None:
    find(side, "g")
    group = side.name("g")
    who, generation = member(side, "a member", group, session_timeout_ms=6000)
    sync(side, "a member", group, who, generation, assignments=[{"member_id": who, "assignment": b"1"}])
    time.sleep(4)
    beat(side, "in time", group, who, generation)
    time.sleep(4)
    beat(side, "in time again", group, who, generation)
    time.sleep(7)
    look_at(side, "too late", group)
    beat(side, "too late", group, who, generation)


# ---------------------------------------------------------------------- transactions


def init(side: Side, label: str, transactional_id: str | None, version: int = 4, **given: Any) -> tuple[int, int]:
    body: dict[str, Any] = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000, **given}
    answer = side.quiet(ApiKey.INIT_PRODUCER_ID, version, **body)
    while answer["error_code"] == ErrorCode.CONCURRENT_TRANSACTIONS:  # until the former is aborted
        time.sleep(0.05)
        answer = side.quiet(ApiKey.INIT_PRODUCER_ID, version, **body)
    side.note(f"{label} | INIT_PRODUCER_ID v{version} | {side.shown(answer)}")
    return answer["producer_id"], answer["producer_epoch"]


def add(side: Side, label: str, transactional_id: str, who: tuple[int, int], *topics: Any, version: int = 3) -> None:
    rows = [{"name": name, "partitions": list(partitions)} for name, *partitions in topics]
    if version >= 4:
        one = {"transactional_id": transactional_id, "producer_id": who[0], "producer_epoch": who[1], "topics": rows}
        for verify in (True, False, True):
            body: dict[str, Any] = {"transactions": [{**one, "verify_only": verify}]}
            side.ask(f"{label}, verify {verify}", ApiKey.ADD_PARTITIONS_TO_TXN, version, **body)
        return
    side.ask(
        label,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        version,
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=rows,
    )


def end(
    side: Side, label: str, transactional_id: str, who: tuple[int, int], version: int = 3, commits: bool = True
) -> None:
    body: dict[str, Any] = {"transactional_id": transactional_id, "producer_id": who[0], "producer_epoch": who[1]}
    side.ask(label, ApiKey.END_TXN, version, committed=commits, **body)
    time.sleep(0.25)


def add_offsets(
    side: Side, label: str, transactional_id: str, who: tuple[int, int], group: str, version: int = 3
) -> None:
    body: dict[str, Any] = {
        "transactional_id": transactional_id,
        "producer_id": who[0],
        "producer_epoch": who[1],
        "group_id": group,
    }
    side.ask(label, ApiKey.ADD_OFFSETS_TO_TXN, version, **body)


def commit_within(
    side: Side,
    label: str,
    transactional_id: str,
    who: tuple[int, int],
    group: str,
    name: str,
    version: int = 3,
    **given: Any,
) -> None:
    row = {"partition_index": 0, "committed_offset": 3, "committed_metadata": "m"} | given.pop("row", {})
    body: dict[str, Any] = {
        "transactional_id": transactional_id,
        "producer_id": who[0],
        "producer_epoch": who[1],
        "group_id": group,
        "topics": [{"name": name, "partitions": [row]}],
        **given,
    }
    side.ask(label, ApiKey.TXN_OFFSET_COMMIT, version, **body)


def transactions(side: Side, label: str, *ids: str) -> None:
    side.ask(label, ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=list(ids))


@sequence
def transaction_producers(side: Side) -> None:
    find(side, "x")
    for version in (0, 1, 2, 3, 4, 5):
        tid = side.name(f"x{version}")
        init(side, "no id", None, version)
        init(side, "an empty id", "", version)
        init(side, "timeout 0", tid, version, transaction_timeout_ms=0)
        init(side, "timeout -1", tid, version, transaction_timeout_ms=-1)
        init(side, "timeout too long", tid, version, transaction_timeout_ms=900_001)
        init(side, "timeout 0 without an id", None, version, transaction_timeout_ms=0)
        transactions(side, "nothing yet", tid, "", "nobody", tid)
        first = init(side, "first", tid, version)
        transactions(side, "empty", tid)
        second = init(side, "second", tid, version)
        if version >= 3:

            def as_(label: str, producer: int, epoch: int) -> tuple[int, int]:
                return init(side, label, tid, version, producer_id=producer, producer_epoch=epoch)

            as_("as the first", *first)
            third = as_("as the second", *second)
            as_("as the second again", *second)
            as_("as the third", *third)
            as_("as somebody", 987_654, 0)
            as_("with a future epoch", third[0], 99)
            as_("an id without epoch", third[0], -1)
            as_("an epoch without id", -1, 3)
            init(side, "no transactional id, a producer", None, version, producer_id=third[0], producer_epoch=0)
            as_("unknown, an id", *third)
            init(side, "new id as somebody", side.name(f"new{version}"), version, producer_id=5, producer_epoch=3)


@sequence
def transaction_steps(side: Side) -> None:
    find(side, "x")
    name = topic(side, "t", 3)
    for version in range(5):
        tid, group = side.name(f"x{version}"), side.name(f"g{version}")
        adding, ending, offsetting, within = min(version, 3), min(version, 4), min(version, 4), min(version, 4)
        add(side, "unknown id", tid, (1, 0), (name, 0), version=adding)
        end(side, "unknown id", tid, (1, 0), ending)
        add_offsets(side, "unknown id", tid, (1, 0), group, offsetting)
        commit_within(side, "unknown id", tid, (1, 0), group, name, within)
        who = init(side, "first", tid)
        end(side, "nothing to commit", tid, who, ending)
        end(side, "nothing to abort", tid, who, ending, commits=False)
        for label, wrong in (
            ("producer", (who[0] + 999, who[1])),
            ("old epoch", (who[0], who[1] - 1)),
            ("new epoch", (who[0], who[1] + 1)),
        ):
            add(side, f"wrong {label}", tid, wrong, (name, 0), version=adding)
            end(side, f"wrong {label}", tid, wrong, ending)
            add_offsets(side, f"wrong {label}", tid, wrong, group, offsetting)
            commit_within(side, f"wrong {label}", tid, wrong, group, name, within)
        for label, odd in (("no id", ""),):
            add(side, label, odd, who, (name, 0), version=adding)
            end(side, label, odd, who, ending)
            add_offsets(side, label, odd, who, group, offsetting)
            commit_within(side, label, odd, who, group, name, within)
        add(side, "unknown topic", tid, who, (name, 0), ("nobody-knows", 0), version=adding)
        add(side, "unknown partition", tid, who, (name, 0, 9), version=adding)
        add(side, "no topics", tid, who, version=adding)
        add(side, "no partitions", tid, who, (name,), version=adding)
        transactions(side, "nothing added", tid)
        data = made([b"v"], bits=0x10, producer_id=who[0], producer_epoch=who[1], base_sequence=0)
        for each in (3, 8, 9, 10, 11):
            put(side, "not added", name, data, each, transactional_id=tid)
            put(side, "without id", name, data, each)
            put(side, "another id", name, data, each, transactional_id="another")
        add(side, "right", tid, who, (name, 0, 1), version=adding)
        add(side, "twice", tid, who, (name, 0), version=adding)
        transactions(side, "ongoing", tid)
        put(side, "right", name, data, 9, transactional_id=tid)
        put(side, "of the other partition", name, data, 9, partition=2, transactional_id=tid)
        put(
            side,
            "not transactional",
            name,
            made([b"v"], producer_id=who[0], producer_epoch=who[1], base_sequence=1),
            9,
            transactional_id=tid,
        )
        producers(side, "ongoing", name, 0, 1, 9)
        commit_within(side, "offsets not added", tid, who, group, name, within)
        add_offsets(side, "no group", tid, who, "", offsetting)
        add_offsets(side, "right", tid, who, group, offsetting)
        commit_within(side, "right", tid, who, group, name, within)
        commit_within(side, "another group", tid, who, side.name("another"), name, within)
        commit_within(side, "no group", tid, who, "", name, within)
        commit_within(side, "unknown topic", tid, who, group, "nobody-knows", within)
        commit_within(side, "long metadata", tid, who, group, name, within, row={"committed_metadata": "x" * 5000})
        if within >= 3:
            commit_within(side, "a generation", tid, who, group, name, within, generation_id=3)
            commit_within(side, "a member", tid, who, group, name, within, member_id="x", generation_id=3)
            commit_within(side, "an instance", tid, who, group, name, within, group_instance_id="x")
        transactions(side, "with offsets", tid)
        committed(side, "pending", group, name)
        committed(side, "pending, all", group)
        look_at(side, "pending", group)
        side.ask("pending", ApiKey.DELETE_GROUPS, 2, groups_names=[group])
        for more in ({}, {"state_filters": ["Ongoing", "x"]}, {"producer_id_filters": [who[0]]}):
            listed(side, f"ongoing {sorted(more)}", **more)
        end(side, "commit" if version % 2 else "abort", tid, who, ending, commits=bool(version % 2))
        transactions(side, "ended", tid)
        end(side, "again", tid, who, ending, commits=bool(version % 2))
        end(side, "the other way", tid, who, ending, commits=not version % 2)
        producers(side, "ended", name, 0, 1)
        committed(side, "ended", group, name)
        put(
            side,
            "after the end",
            name,
            made([b"v"], bits=0x10, producer_id=who[0], producer_epoch=who[1], base_sequence=1),
            9,
            transactional_id=tid,
        )
        commit_within(side, "after the end", tid, who, group, name, within)
        again = init(side, "again", tid)
        add(side, "fenced", tid, who, (name, 0), version=adding)
        end(side, "fenced", tid, who, ending)
        add_offsets(side, "fenced", tid, who, group, offsetting)
        commit_within(side, "fenced", tid, who, group, name, within)
        put(
            side,
            "fenced",
            name,
            made([b"v"], bits=0x10, producer_id=who[0], producer_epoch=who[1], base_sequence=1),
            9,
            transactional_id=tid,
        )
        add(side, "by brokers", tid, again, (name, 0), version=4)
        add(side, "by brokers", tid, again, (name, 0), ("nobody-knows", 1), version=5)
        add(side, "by brokers, unknown", "nobody", again, (name, 0), version=4)
        end(side, "by brokers", tid, again, ending)
    listed(side, "at the end")
    get(side, "all", name, isolation=1)


def listed(side: Side, label: str, version: int = 1, **given: Any) -> None:
    answer = side.quiet(ApiKey.LIST_TRANSACTIONS, version, **given)
    rows = (each for each in answer["transaction_states"] if each["transactional_id"].startswith(side.run))
    answer["transaction_states"] = sorted(rows, key=lambda row: row["transactional_id"])
    side.note(f"{label} | LIST_TRANSACTIONS v{version} | {side.shown(answer)}")


@sequence
def transaction_timeouts(side: Side) -> None:
    find(side, "x")
    name, tid = topic(side), side.name("x")
    who = init(side, "short", tid, transaction_timeout_ms=1000)
    add(side, "short", tid, who, (name, 0))
    put(
        side,
        "short",
        name,
        made([b"v"], bits=0x10, producer_id=who[0], producer_epoch=who[1], base_sequence=0),
        transactional_id=tid,
    )
    time.sleep(12.5)
    transactions(side, "overdue", tid)
    end(side, "overdue", tid, who)
    put(
        side,
        "overdue",
        name,
        made([b"v"], bits=0x10, producer_id=who[0], producer_epoch=who[1], base_sequence=1),
        transactional_id=tid,
    )
    get(side, "all", name, isolation=1)
    again = init(side, "as before", tid, producer_id=who[0], producer_epoch=who[1])
    add(side, "again", tid, again, (name, 0))
    side.ask("fence", ApiKey.INIT_PRODUCER_ID, 4, transactional_id=tid, transaction_timeout_ms=1000)
    time.sleep(0.3)
    transactions(side, "fenced", tid)
    init(side, "new", tid)


@sequence
def transaction_markers(side: Side) -> None:
    name = topic(side, "t", 2)
    who = init(side, "a producer", None)
    put(side, "a record", name, made([b"v"], producer_id=who[0], producer_epoch=0, base_sequence=0))
    for version in (0, 1):
        for label, marker in (
            ("abort", {"producer_epoch": 0}),
            ("commit", {"producer_epoch": 0, "transaction_result": True}),
            ("next epoch", {"producer_epoch": 1}),
            ("the former epoch", {"producer_epoch": 0}),
            ("a coordinator", {"producer_epoch": 1, "coordinator_epoch": 5}),
            ("an older coordinator", {"producer_epoch": 1, "coordinator_epoch": 3}),
            ("a negative coordinator", {"producer_epoch": 1, "coordinator_epoch": -1}),
        ):
            rows = [{"name": name, "partition_indexes": [0, 1, 7]}, {"name": "nobody-knows", "partition_indexes": [0]}]
            body: dict[str, Any] = {"markers": [{"producer_id": who[0], "topics": rows, **marker}]}
            side.ask(label, ApiKey.WRITE_TXN_MARKERS, version, **body)
            producers(side, label, name, 0, 1)
    for isolation in (0, 1):
        get(side, "all", name, isolation=isolation)
        get(side, "all", name, isolation=isolation, partition=1)
    for version in (1, 2, 4):
        get(side, "all", name, version=version)
