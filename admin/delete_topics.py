"""DeleteTopics (20) marks topics for deletion. Clients no longer see them once every node has
dropped them; their znodes are deleted later.
"""

import msgspec

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.dry_runs import is_dry_run, packed, unpack
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
