"""DeleteGroups (42) deletes groups with their offsets. The node that was asked must coordinate each
of them.
"""

from collections.abc import Iterator

from ..protocol.api_keys import ApiKey
from ..protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from .changes import Change
from .groups import DELETE_GROUP, requested
from .spec import Changes, Rows, Spec, called


def _requested(request: DeleteGroupsRequest) -> Iterator[Change]:
    for name in request.groups_names:
        yield requested(name, {})


SPEC = Spec(
    key=ApiKey.DELETE_GROUPS,
    at_controller=True,
    in_envelopes=False,
    rows=Rows("results", DeletableGroupResult, {"groups_names": called("group_id")}),
    changes=Changes("delete_groups", _requested),
    permissions=(DELETE_GROUP,),
)
