"""DeleteRecords (21) deletes the records of partitions before an offset."""

from collections.abc import Iterator

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.dry_runs import is_dry_run, packed, unpack
from ..protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from .permissions import Permission
from .requested_changes import topics_with_deleted_records
from .spec import Changes, Fields, InnerRows, Rows, Spec, copied

DELETE_TOPIC = Permission(AclOperation.DELETE, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic")
KNOWS_POLICIES = 1
"""The first version whose clients are answered POLICY_VIOLATION (KIP-201)."""
NO_WATERMARK = -1


def _to_newest_version(request: DeleteRecordsRequest) -> DeleteRecordsRequest:
    return packed(request) if is_dry_run(request) else request


def _named_partitions(topic: DeleteRecordsTopic) -> Iterator[Fields]:
    for partition in topic.partitions:
        yield {"partition_index": partition.partition_index}


SPEC = Spec(
    key=ApiKey.DELETE_RECORDS,
    at_controller=True,
    in_envelopes=False,
    read_tags=unpack,
    to_newest_version=_to_newest_version,
    permissions=(DELETE_TOPIC,),
    rows=Rows(
        "topics",
        DeleteRecordsTopicResult,
        {"topics": copied("name")},
        fixed={"low_watermark": NO_WATERMARK},
        inner=InnerRows("partitions", DeleteRecordsPartitionResult, _named_partitions),
    ),
    changes=Changes("delete_records", topics_with_deleted_records),
)
