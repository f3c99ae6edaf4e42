"""One of the clusters that are compared: asks it, and notes its answers without what no two
clusters have in common.
"""

import re
import time
from typing import Any, Self

import msgspec

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.registry import KAFKA
from tests.support.wire import ConnectionEndedError, Wire

CLIENT = "beside"
PATIENCE_SECONDS = 8
TIME = re.compile(r"\b1(7[5-9]|[89]\d)\d{10}\b")
HIDDEN: tuple[object, ...] = (None, [], "", b"", -1)
"""Values that are not shown."""
RECENTLY, YEAR_2100 = 1_750_000_000_000, 4_102_444_800_000
"""Between these a number is a time of now. Times of records are given before."""
UNSHOWN = frozenset(("throttle_time_ms", "unknown_tags"))
RANDOM = frozenset(("member_id", "leader", "host", "port", "client_host", "cluster_id"))
"""Fields whose values are replaced."""
UNORDERED = frozenset(("active_producers", "results", "members", "results_by_partition"))
OF_MAPS = frozenset((ApiKey.WRITE_TXN_MARKERS, ApiKey.DESCRIBE_TRANSACTIONS))
"""The APIs whose rows Kafka answers in the order of a hash map."""
NUMBERED = frozenset(("producer_id", "topic_id", "session_id"))
"""Fields whose values are replaced by the place in which they were first seen."""


class Side:
    def __init__(self, address: str, run: str) -> None:
        self.address = address
        self.run = run
        self.lines: list[str] = []
        self._wire = Wire(address, timeout=PATIENCE_SECONDS)
        self._more: dict[str, Wire] = {}
        self._names: dict[Any, str] = {}
        self._number = 0
        self._api = ApiKey.API_VERSIONS
        self.topics: dict[str, bytes] = {}
        """The ids of topics by their names."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for wire in (self._wire, *self._more.values()):
            wire.close()

    def name(self, text: str) -> str:
        """A name that no other run has, and that answers show without what makes it so."""
        return f"{self.run}-{text}"

    def note(self, line: str) -> None:
        self.lines.append(TIME.sub("NOW", line.replace(self.run, "RUN")))

    def ask(
        self, label: str, api: ApiKey, version: int, *, via: str = "", silent: bool = False, **body: Any
    ) -> dict[str, Any]:
        """Ask, note the answer under a label, and return it. A second connection has a name."""
        answer = self.quiet(api, version, via=via, silent=silent, **body)
        self.note(f"{label} | {api.name} v{version} | {self.shown(answer)}")
        return answer

    def quiet(self, api: ApiKey, version: int, *, via: str = "", silent: bool = False, **body: Any) -> dict[str, Any]:
        self.send(api, version, via=via, **body)
        return {} if silent else self.receive(api, version, via=via)

    def send(self, api: ApiKey, version: int, *, via: str = "", **body: Any) -> None:
        self._number += 1
        self._api = api
        header = RequestHeader(api_key=api, api_version=version, correlation_id=self._number, client_id=CLIENT)
        self._at(via).send(KAFKA.encode_request(header, msgspec.convert(body, KAFKA[api].request)))

    def receive(self, api: ApiKey, version: int, *, via: str = "") -> dict[str, Any]:
        try:
            frame = self._at(via).receive()
        except (ConnectionEndedError, TimeoutError) as error:
            self._more.pop(via, self._wire).close()
            if not via:
                self._wire = Wire(self.address, timeout=PATIENCE_SECONDS)
            return {"no answer": type(error).__name__}
        _, message = KAFKA.decode_response(api, version, frame)
        body: dict[str, Any] = _plain(message)
        return body

    def later(self, label: str, api: ApiKey, version: int, *, via: str = "") -> dict[str, Any]:
        """Read and note the answer to what was sent."""
        answer = self.receive(api, version, via=via)
        self.note(f"{label} | {api.name} v{version} | {self.shown(answer)}")
        return answer

    def timed(self, label: str, begun: float, at_least: float, at_most: float) -> None:
        """Note whether an answer took as long as it should."""
        took = time.monotonic() - begun
        self.note(f"{label} | took {'as long as asked' if at_least <= took <= at_most else f'{took:.2f} s'}")

    def _at(self, via: str) -> Wire:
        if not via:
            return self._wire
        if via not in self._more:
            self._more[via] = Wire(self.address, timeout=PATIENCE_SECONDS)
        return self._more[via]

    def shown(self, value: Any, key: str = "") -> str:
        if isinstance(value, dict):
            inside = (
                f"{name}={self.shown(each, name)}"
                for name, each in value.items()
                if name not in UNSHOWN and (name.endswith("error_code") or not _is_default(each))
            )
            return "{" + " ".join(inside) + "}"
        if isinstance(value, list):
            if key in UNORDERED or (key in ("topics", "partitions") and self._api in OF_MAPS):
                value = sorted(value, key=self._order)
            return "[" + " ".join(self.shown(each, key) for each in value) + "]"
        if key.endswith("error_code"):
            return ErrorCode(value).name
        if key == "records" and value is not None:
            return _batches(value, self)
        if key in NUMBERED and value not in (-1, bytes(16)) and (key, value) != ("session_id", 0):
            return self._names.setdefault((key, value), f"{key}-{len(self._names)}")
        if key in RANDOM and value:
            return self._member(value)
        if isinstance(value, int) and not isinstance(value, bool) and RECENTLY < value < YEAR_2100:
            return "now"
        return repr(value) if isinstance(value, (str, bytes, bool)) else str(value)

    def _order(self, row: Any) -> tuple[str, str]:
        """Members that have been seen come before others, in the order of their names."""
        who = row.get("member_id") if isinstance(row, dict) else None
        return self._names.get(who, "~"), str(row)

    def _member(self, value: Any) -> str:
        """A member's id is what it is named after, and random digits."""
        if not isinstance(value, str) or len(value) <= 37:
            return self._names.setdefault(value, "some")
        return self._names.setdefault(value, f"{value[:-37]}-{len(self._names)}")


def _is_default(value: Any) -> bool:
    """Whether a value says nothing: a struct without any, too."""
    if isinstance(value, dict):
        return all(_is_default(each) for each in value.values())
    return value in HIDDEN or value == bytes(16)


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _batches(data: bytes, side: "Side") -> str:
    """Each batch's header, and how many bytes of another are left."""
    found, at = [], 0
    while len(data) - at >= 17:
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if size > len(data) - at:
            break
        found.append(_batch(data[at : at + size], side))
        at += size
    if len(data) > 16 and data[16] < 2:
        return ", ".join(found)  # Kafka fills the place of what was converted
    if any("..." in each for each in found):
        return ", ".join(found)  # Kafka's codecs do not make the same bytes
    return f"{len(data)} bytes: " + ", ".join(found) + (f" and {len(data) - at} bytes" if at < len(data) else "")


def _batch(data: bytes, side: "Side") -> str:
    from minicontroller.records.batches import Batch

    if data[16] < 2:
        stamp = int.from_bytes(data[18:26], "big") if data[16] else 0
        place = f"@{int.from_bytes(data[:8], 'big')} magic {data[16]} attributes {data[17]} {side.shown(stamp)}"
        return place if data[17] & 7 else f"{place} {data[26 if data[16] else 18 :].hex()}"
    batch = Batch.read(data)
    fields = {
        name: getattr(batch, name)
        for name in (
            "leader_epoch",
            "attributes",
            "last_offset_delta",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
        )
    }
    shown = " ".join(f"{name}={side.shown(value, name)}" for name, value in fields.items())
    is_compressed = batch.attributes & 7
    return f"@{batch.base_offset} {shown} {'...' if is_compressed else data[61:].hex()}"
