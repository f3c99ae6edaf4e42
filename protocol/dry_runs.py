"""Dry runs of deletions (KIP-201), for which Kafka's DeleteTopics and DeleteRecords have no field.

Rule: a node that does not know of them deletes nothing. Such a node ignores the tagged field, so
that the field holds the whole request, and outside of it the request names nothing. Nodes that know
of them say so by a feature in ApiVersions, and clients ask no others.
"""

from typing import TypeVar

import msgspec

from .api_keys import ApiKey
from .errors import MalformedMessage
from .header import RequestHeader
from .messages.delete_records import DeleteRecordsRequest
from .messages.delete_topics import DeleteTopicsRequest
from .registry import KAFKA
from .schema import WireStruct

FEATURE = "minicontroller.validate.deletes"
"""The name of the supported feature of nodes that carry out dry runs of deletions."""
FEATURE_VERSIONS = (1, 1)
TAG = 10_003
"""The tag of the field that holds a request: its frame without the size, in the newest version."""
FLEXIBLE_SINCE = {ApiKey.DELETE_TOPICS: 4, ApiKey.DELETE_RECORDS: 2}
"""The first versions with tagged fields."""

Deletion = TypeVar("Deletion", bound=DeleteTopicsRequest | DeleteRecordsRequest)

_KEYS: dict[type[WireStruct], ApiKey] = {
    DeleteTopicsRequest: ApiKey.DELETE_TOPICS,
    DeleteRecordsRequest: ApiKey.DELETE_RECORDS,
}


def is_dry_run(request: WireStruct) -> bool:
    return TAG in (request.unknown_tags or ())


def packed(request: Deletion) -> Deletion:
    """Return the dry run of a request, which must be in the form of the newest version."""
    key = _KEYS[type(request)]
    plain = msgspec.structs.replace(request, unknown_tags=None)
    header = RequestHeader(api_key=key, api_version=KAFKA[key].max_version, correlation_id=0, client_id=None)
    return type(request)(timeout_ms=request.timeout_ms, unknown_tags={TAG: KAFKA.encode_request(header, plain)[4:]})


def unpack(request: Deletion) -> None:
    """Fill a request that was read with what its dry run names; do nothing if it is none. Raises
    MalformedMessage.
    """
    if not is_dry_run(request):
        return
    assert request.unknown_tags is not None
    _, inner, leftover = KAFKA.decode_request(request.unknown_tags[TAG])
    if type(inner) is not type(request) or inner.unknown_tags or leftover:
        raise MalformedMessage("the dry run of a deletion holds another request")
    request.topics = inner.topics
