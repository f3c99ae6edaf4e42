"""OffsetDelete (47) removes offsets of a group. A group whose last offset is removed exists no
longer.
"""

from collections.abc import Sequence

from ..protocol.api_keys import ApiKey
from ..protocol.messages.offset_delete import (
    OffsetDeleteRequest,
)
from .changes import Change
from .groups import DELETE_GROUP, READ_TOPIC, key_of, requested
from .spec import Changes, Spec


def operations_of(request: OffsetDeleteRequest) -> dict[str, str | None]:
    """Return what is asked for, for the audit log."""
    return {key_of(topic.name, each.partition_index): None for topic in request.topics for each in topic.partitions}


def _requested(request: OffsetDeleteRequest) -> Sequence[Change]:
    return [requested(request.group_id, operations_of(request))]


SPEC = Spec(
    key=ApiKey.OFFSET_DELETE,
    at_controller=True,
    in_envelopes=False,
    changes=Changes("offset_delete", _requested),
    permissions=(DELETE_GROUP, READ_TOPIC),
)
