"""Requests that are judged, until the cluster has answered them."""

from typing import Any

import msgspec

from ...admin.recording.requests import AuditedRequest
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...protocol.schema import WireStruct
from .description import PassingRequest
from .dissection import Form
from .parts import Part
from .resolution import Resolution
from .turns import Turn


class Judged(msgspec.Struct, eq=False):
    """A request whose parts are judged, until the cluster has answered it."""

    asked: PassingRequest
    request: Any
    form: Form
    parts: list[Part]
    turn: Turn
    image: Image
    """The state that its first part was judged by."""
    validate_only: bool
    audited: AuditedRequest | None = None
    """The record of the request, where there is an audit log; it began before the judgement."""
    supposed: frozenset[str] = frozenset()
    """The topics of the requests under way that it was judged after, which count as done."""
    too_long: Refusal | None = None
    """The reason why it is not judged, if it names too much. It is then one part."""
    is_unjudged: bool = False
    """Whether a part of it got no verdict although one was due."""
    resolution: Resolution | None = None
    """The request that goes on in place of the client's, if that does not name what it changes."""
    refusing: WireStruct | None = None
    """The response by which the cluster refuses the request as a whole, if it was asked."""

    @property
    def is_automatic(self) -> bool:
        """Whether the request only has topics created."""
        return self.form.key != self.asked.api_key

    @property
    def passed(self) -> list[Part]:
        return [each for each in self.parts if each.is_passed]

    @property
    def refused(self) -> list[Part]:
        return [each for each in self.parts if not each.is_passed]


def is_dry_run(request: Any) -> bool:
    """Whether a request only asks if it would be allowed."""
    return bool(getattr(request, "validate_only", False))
