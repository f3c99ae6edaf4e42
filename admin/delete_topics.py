"""DeleteTopics (20) marks topics for deletion. Clients no longer see them once every node has
dropped them; their znodes are deleted later.

Topics are named up to version 5, and given by name or id from version 6. The order of the checks is
Kafka's (KafkaApis.handleDeleteTopicsRequest).
"""

from collections.abc import Iterable

import msgspec

from ..cluster.delta import TopicMarked
from ..cluster.entities import NO_TOPIC_ID, Topic
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.dry_runs import is_dry_run, packed, unpack
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from .permissions import Permission
from .requested_changes import deleted_topics
from .spec import Changes, Rows, Spec, called, copied

DELETE_TOPIC = Permission(AclOperation.DELETE, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic")
DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED, without its name, for a topic that is given by its id",
)
KNOWS_POLICIES = 2
"""The first version whose clients are answered POLICY_VIOLATION (KIP-201)."""
KNOWS_DISABLED = 3
"""The first version whose clients are answered TOPIC_DELETION_DISABLED (KIP-322)."""


def check_request(wanted: Iterable[DeleteTopicState], version: int, *, is_enabled: bool) -> None:
    """Raise Refusal if a request cannot be carried out as a whole, whose client speaks this version
    of the API. `is_enabled` is the cluster's delete.topic.enable.
    """
    if not is_enabled:
        code = ErrorCode.INVALID_REQUEST if version < KNOWS_DISABLED else ErrorCode.TOPIC_DELETION_DISABLED
        raise Refusal(code, reason="delete.topic.enable is false.")
    if any(topic.name is not None and topic.topic_id != NO_TOPIC_ID for topic in wanted):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Topic name and topic id can not both be specified.")


def wanted_topic(image: Image, wanted: DeleteTopicState) -> Topic:
    """Return the topic that a request names, or gives by its id. Raises Refusal."""
    if wanted.name is None and wanted.topic_id == NO_TOPIC_ID:
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = image.topic_by_id(wanted.topic_id) if wanted.name is None else image.topic(wanted.name)
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if wanted.name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise Refusal(unknown)
    return topic


def marking(topic: Topic, shown: Image) -> TopicMarked:
    """Return the deletion of a topic. A topic is unknown once it is marked, and no longer `shown`
    to clients. Raises Refusal.
    """
    marked = TopicMarked(topic.name, topic.topic_id)
    if topic.marked_for_deletion and marked.is_complete(shown):
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return marked


def _to_newest_version(request: DeleteTopicsRequest) -> DeleteTopicsRequest:
    """Return the request with its topic names in `topics`, the field of version 6 and later."""
    named = [DeleteTopicState(name=name) for name in request.topic_names]
    newest = msgspec.structs.replace(request, topics=[*request.topics, *named], topic_names=[])
    return packed(newest) if is_dry_run(request) else newest


SPEC = Spec(
    key=ApiKey.DELETE_TOPICS,
    at_controller=True,
    permissions=(DELETE_TOPIC, DESCRIBE_TOPIC),
    read_tags=unpack,
    to_newest_version=_to_newest_version,
    rows=Rows(
        "responses",
        DeletableTopicResult,
        {"topic_names": called("name"), "topics": copied("name", "topic_id")},
    ),
    changes=Changes("delete_topic", deleted_topics),
)
