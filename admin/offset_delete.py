"""OffsetDelete (47) removes offsets of a group. A group whose last offset is removed exists no
longer.
"""

from collections.abc import Mapping, Sequence

from ..cluster.groups import Group
from ..cluster.image import Image
from ..cluster.znodes.groups import group_path
from ..protocol.api_keys import ApiKey
from ..protocol.messages.offset_delete import (
    OffsetDeleteRequest,
)
from .changes import Change
from .groups import DELETE_GROUP, READ_TOPIC, existing, key_of, requested
from .spec import Changes, Spec


def operations_of(request: OffsetDeleteRequest) -> dict[str, str | None]:
    """Return what is asked for, for the audit log."""
    return {key_of(topic.name, each.partition_index): None for topic in request.topics for each in topic.partitions}


def without_offsets(image: Image, group_id: str, doomed: Mapping[str, Sequence[int]]) -> tuple[str, Group | None]:
    """Return the path of a group, and the group without the offsets of these partitions, by topic;
    None if none is left. Raises GROUP_ID_NOT_FOUND.
    """
    group = existing(image, group_id)
    for name, partitions in doomed.items():
        group = group.without_offsets(name, partitions)
    return group_path(group_id), group if group.exists(image.topics) else None


def _requested(request: OffsetDeleteRequest) -> Sequence[Change]:
    return [requested(request.group_id, operations_of(request))]


SPEC = Spec(
    key=ApiKey.OFFSET_DELETE,
    at_controller=True,
    in_envelopes=False,
    changes=Changes("offset_delete", _requested),
    permissions=(DELETE_GROUP, READ_TOPIC),
)
