"""Which of the offsets of a request may be committed: the checks that a transaction's commits share
with others, in Kafka's order.
"""

from collections.abc import Iterable, Iterator

import msgspec

from ...admin.groups import READ_TOPIC
from ...controller.handlers.groups import has_partition
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ..groups.offsets import GroupOffset
from ..serving.plane import DataPlane

Place = tuple[str, int]


class Asked(msgspec.Struct, frozen=True):
    """An offset as a request names it."""

    place: Place
    offset: GroupOffset


class CheckedOffsets(msgspec.Struct):
    """The offsets of a request, divided into those that may be committed and those that are
    refused.
    """

    errors: list[tuple[Place, ErrorCode]] = []
    """What is refused wherever the request names it."""
    offsets: dict[Place, GroupOffset] = {}
    """What may be committed; the last offset of a partition counts."""
    codes: dict[Place, ErrorCode] = {}
    """The refusals of offsets that would count."""

    @classmethod
    def refused(cls, asked: Iterable[Asked], code: ErrorCode) -> "CheckedOffsets":
        return cls(errors=[(each.place, code) for each in asked])

    def take(self, asked: Asked, code: ErrorCode) -> None:
        """Let an offset count instead of an earlier one of its partition, or its refusal."""
        self.offsets.pop(asked.place, None)
        self.codes[asked.place] = code
        if not code:
            self.offsets[asked.place] = asked.offset

    def refuse(self, code: ErrorCode) -> None:
        self.codes |= dict.fromkeys(self.offsets, code)
        self.offsets = {}

    def rows(self) -> Iterator[tuple[str, list[tuple[int, ErrorCode]]]]:
        """Yield the partitions of each topic with their codes, in the order of Kafka's answers:
        what was refused first, among topics and among the partitions of one.
        """
        found: dict[str, list[tuple[int, ErrorCode]]] = {}
        for (name, index), code in (*self.errors, *self.codes.items()):
            found.setdefault(name, []).append((index, code))
        yield from found.items()


def checked(plane: DataPlane, context: RequestContext, asked: Iterable[Asked]) -> CheckedOffsets:
    asked = list(asked)
    denied = context.without(READ_TOPIC, list(dict.fromkeys(each.place[0] for each in asked)))
    topics, found = plane.view.cache.image.topics, CheckedOffsets()
    longest = plane.view.configs.static.integer("offset.metadata.max.bytes")
    for each in asked:
        name, index = each.place
        if name in denied:
            found.errors.append((each.place, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif not has_partition(topics, name, index):
            found.errors.append((each.place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            is_long = len(each.offset.metadata) > longest
            found.take(each, ErrorCode.OFFSET_METADATA_TOO_LARGE if is_long else ErrorCode.NONE)
    return found
