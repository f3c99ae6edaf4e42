"""WriteTxnMarkers (27) ends transactions in partitions; administrators abort hanging ones by it."""

from ..schema import Int16, Int32, Int64, WireStruct, message


class MarkerTopic(WireStruct):
    name: str = ""
    partition_indexes: list[Int32] = []


class TransactionMarker(WireStruct):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: bool = False
    topics: list[MarkerTopic] = []
    coordinator_epoch: Int32 = 0


@message(27, "request", versions=(0, 1), flexible=1)
class WriteTxnMarkersRequest(WireStruct):
    markers: list[TransactionMarker] = []


class MarkerPartitionResult(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class MarkerTopicResult(WireStruct):
    name: str = ""
    partitions: list[MarkerPartitionResult] = []


class TransactionMarkerResult(WireStruct):
    producer_id: Int64 = 0
    topics: list[MarkerTopicResult] = []


@message(27, "response", versions=(0, 1), flexible=1)
class WriteTxnMarkersResponse(WireStruct):
    markers: list[TransactionMarkerResult] = []
