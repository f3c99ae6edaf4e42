"""The znodes of the cluster as a whole: its id, its controller, the controller's epoch, and the
features.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from .content import MAX_INT, MAX_TEXT, Int, MalformedZnodeError, read, write
from .layout import CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH, FEATURE, LATEST_PRODUCER_ID_BLOCK

NO_FEATURES = b'{"features":{},"version":2,"status":1}'
"""The data of `/feature`. Nothing else is ever written, since a Kafka 3.x broker exits if it finds
a feature that it does not know.
"""


class ClusterId(Struct):
    version: str | int
    id: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


class ControllerZnode(
    Struct, kw_only=True, rename={"broker_id": "brokerid", "kraft_controller_epoch": "kraftControllerEpoch"}
):
    """The content of `/controller`."""

    version: Int = 1
    broker_id: Int
    timestamp: str | int = ""
    kraft_controller_epoch: Int = -1
    """Above 0 while a KRaft quorum controls the cluster, which is then not to be changed."""


class FinalizedFeature(Struct):
    max_version_level: Annotated[int, Meta(ge=0, le=2**15 - 1)]


class Features(Struct):
    status: Int = 1
    features: dict[str, FinalizedFeature] = {}


class ProducerIdBlock(Struct):
    """The content of `/latest_producer_id_block`."""

    version: Int
    broker: Int
    block_start: str
    block_end: Annotated[str, Meta(pattern="^[0-9]{1,19}$")]


CLUSTER_ID_READER = msgspec.json.Decoder(ClusterId)
CONTROLLER_READER = msgspec.json.Decoder(ControllerZnode)
FEATURE_READER = msgspec.json.Decoder(Features)
PRODUCER_IDS_READER = msgspec.json.Decoder(ProducerIdBlock)


def encode_cluster_id(cluster_id: str) -> bytes:
    return write(ClusterId("1", cluster_id))


def decode_cluster_id(data: bytes | None) -> str:
    return read(CLUSTER_ID, data, CLUSTER_ID_READER).id


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return write(ControllerZnode(version=2, broker_id=broker_id, timestamp=str(timestamp_ms)))


def decode_controller(data: bytes | None) -> ControllerZnode:
    return read(CONTROLLER, data, CONTROLLER_READER)


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    """Decode a controller epoch. The largest integer is refused, since no epoch could follow it."""
    digits = data or b""
    if not digits.isdigit() or len(digits) > len(str(MAX_INT)) or int(digits) >= MAX_INT:
        raise MalformedZnodeError(f"{CONTROLLER_EPOCH} holds {data!r:.80}, which is no epoch of a controller")
    return int(digits)


def features_are_disabled(data: bytes | None) -> bool:
    """Whether `/feature` has the status that a controller before Kafka 2.7 leaves."""
    return read(FEATURE, data, FEATURE_READER).status == 0


def finalized_features(data: bytes | None) -> dict[str, int]:
    """Decode the levels of the features in `/feature`, unless they are disabled."""
    found = read(FEATURE, data, FEATURE_READER)
    return {} if found.status == 0 else {name: each.max_version_level for name, each in found.features.items()}


def encode_producer_ids(broker_id: int, first: int, last: int) -> bytes:
    return write(ProducerIdBlock(1, broker_id, str(first), str(last)))


def decode_producer_ids(data: bytes) -> int:
    """Decode the last id of the newest block."""
    return int(read(LATEST_PRODUCER_ID_BLOCK, data, PRODUCER_IDS_READER).block_end)
