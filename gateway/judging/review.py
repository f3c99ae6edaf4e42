"""Reviews the requests of connections: what goes on to the cluster, what the client is answered,
and what is recorded.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import trio

from ...cluster.errors import Refusal
from ...network.serving.long_answers import encoded_response
from ...process.time_slices import TimeSlice, in_time_slices
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.header import RequestHeader, RequestOrigin
from ...protocol.messages.find_coordinator import FindCoordinatorRequest
from ...protocol.messages.metadata import MetadataRequest
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct
from ...security.caller import Caller
from . import automatic
from .forms import FORMS, create_topics
from .judge import Judge
from .judged import AskForClient, Form, Judged, PassingRequest, is_dry_run
from .mirror import Mirror
from .records import Records

CREATING = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR})
"""The APIs that may have topics created."""


class Review:
    """The review of one request, until the client has its response."""

    def __init__(self, header: RequestHeader, frame: bytes, version: int) -> None:
        self.frame = frame
        """The frame that goes on to the cluster, its size included; empty if nothing does."""
        self.version = version
        """The version in which it goes on."""
        self._header = header

    async def inquire(self, ask: AskForClient) -> None:
        """Ask the cluster what is left to know before the frame goes on."""

    async def answer(self, frame: bytes | None) -> bytes:
        """Return the response to the client, its size included. `frame` is the response of the
        cluster without its size; None if nothing went there. Raises MalformedMessage.
        """
        response: Any = None
        if frame is not None:
            time_slice = TimeSlice()
            _, response = KAFKA.decode_response(self._header.api_key, self.version, frame)
            await time_slice.pause()
        whole = await self._answered(response)
        header = self._header
        if whole is response and frame is not None and self.version == header.api_version:
            return _sized(frame)
        return await encoded_response(header.api_key, header.api_version, header.correlation_id, whole)

    async def _answered(self, response: Any | None) -> Any:
        return response

    def abandon(self) -> None:
        """Note that the connection ended. It means nothing for a request that was answered."""


class JudgedReview(Review):
    """The review of a request that was judged."""

    def __init__(
        self, reviewer: "Reviewer", header: RequestHeader, judged: Judged, frame: bytes, *, version: int | None = None
    ) -> None:
        super().__init__(header, frame, header.api_version if version is None else version)
        self.judged = judged
        self._reviewer = reviewer
        self._is_over = False

    async def inquire(self, ask: AskForClient) -> None:
        await self.judged.form.inquire(self.judged, self.version, ask)

    async def _answered(self, response: Any | None) -> Any:
        self._is_over = True
        if self.judged.resolution is not None and response is not None:
            response = self.judged.resolution.answer(response)
        await self._reviewer.completed(self, self._outcome(response))
        return self._whole(response) if self.judged.refused or response is None else response

    def abandon(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._reviewer.complete_soon(self, None)

    def _outcome(self, response: Any | None) -> Any | None:
        """Return the response that says what became of the judged request."""
        return response

    def _whole(self, response: Any | None) -> Any:
        refused = []
        for part in self.judged.refused:
            code, message = part.refusal.code, part.refusal.message
            known = self._known(code)
            refused.append((part, known, message if code == known else None))
        whole = self.judged.refusing if response is None else response
        return self.judged.form.together(self.judged.request, self._header.api_version, whole, refused)

    def _known(self, code: ErrorCode) -> ErrorCode:
        """Return the code that a client of this version is given."""
        is_old = self._header.api_version < self.judged.form.knows_policies
        return ErrorCode.UNKNOWN_SERVER_ERROR if code == ErrorCode.POLICY_VIOLATION and is_old else code


class AutomaticReview(JudgedReview):
    """The review of a request that only has topics created."""

    def __init__(
        self,
        reviewer: "Reviewer",
        header: RequestHeader,
        judged: Judged,
        frame: bytes,
        *,
        request: WireStruct,
        missing: Sequence[str],
    ) -> None:
        """`request` is what the client sent, and `judged` the CreateTopics that stands for it;
        `missing` are the topics that were not seen.
        """
        self._request = request
        may_create = automatic.leave_new_topics(judged)
        self._refused = {part.change.resource: part.refusal.code for part in judged.refused}
        if judged.too_long is not None:
            self._refused = dict.fromkeys(missing, *self._refused.values()) if self._refused else {}
        version = header.api_version
        if self._refused:
            kept = automatic.without(request, self._refused)
            frame = b"" if kept is None else _encoded(header, kept)
            request = request if kept is None else kept
        if frame and not may_create and isinstance(request, MetadataRequest):
            frame, version = _without_creation(header, request)
        super().__init__(reviewer, header, judged, frame, version=version)

    async def inquire(self, ask: AskForClient) -> None:
        refused = {part.change.resource: part for part in self.judged.refused if part.reveals_topic}
        if refused and isinstance(self._request, MetadataRequest):
            for name in await automatic.hidden(list(refused), ask):
                refused[name].deny(Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                self._refused[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _outcome(self, response: Any | None) -> Any | None:
        names = [each.change.resource for each in self.judged.passed]
        return automatic.outcome(names, response)

    def _whole(self, response: Any | None) -> Any:
        return automatic.answered(self._request, self._header.api_version, response, self._refused)


class Reviewer:
    """Reviews the requests of all connections of a gateway."""

    def __init__(
        self, mirror: Mirror, judge: Judge, records: Records, nursery: trio.Nursery, *, answers_wait: bool
    ) -> None:
        """Review requests. What became of them is recorded by tasks of the nursery, for which
        answers may have to wait.
        """
        self._mirror = mirror
        self._judge = judge
        self._records = records
        self._nursery = nursery
        self._answers_wait = answers_wait
        self._completing = 0
        self._idle = trio.Event()

    def takes(self, api_key: int) -> bool:
        """Whether requests of an API may be reviewed. Those that pass as a whole are if the policy
        judges them, or if they are recorded, which offsets of consumers are not.
        """
        form = FORMS.get(api_key)
        if form is None or not form.is_whole:
            return form is not None or api_key in CREATING
        return self._judge.judges_api(KAFKA[api_key].name) or (
            self._records.has_log and api_key != ApiKey.OFFSET_COMMIT
        )

    def passes(self, frame: bytes) -> bool:
        """Whether a request, given as its frame without the size, changes nothing. Raises
        ProtocolError if it is none.
        """
        header, request, _ = KAFKA.decode_request(frame)
        if header.api_key not in CREATING:
            return False
        is_of_interest = self._judge.enforces or self._creates(request)
        return not is_of_interest or next(automatic.creatable(request, header.api_version), None) is None

    async def review(self, caller: Caller, frame: bytes) -> Review | None:
        """Review a request, given as its frame without the size; return None if it changes nothing
        after all. Raises ProtocolError if it is none.
        """
        header, request, _ = KAFKA.decode_request(frame)
        asked = _described(header, caller)
        if header.api_key in CREATING:
            return await self._review_creation(asked, header, request, frame)
        judged = await self._judged(asked, FORMS[header.api_key], request)
        return JudgedReview(self, header, judged, _passed(header, judged, frame))

    async def _review_creation(
        self, asked: PassingRequest, header: RequestHeader, request: WireStruct, frame: bytes
    ) -> Review | None:
        """Review a request that may have topics created. Those that were seen are judged beside
        those that are missing, in case that they are gone.
        """
        named = list(dict.fromkeys(await in_time_slices(automatic.creatable(request, header.api_version))))
        missing = await self._mirror.missing(named) if self._creates(request) else []
        if not missing:
            return self._asked_only(header, request)
        creation = await automatic.creation(named if self._judge.enforces else missing, self._mirror.defaults.config)
        judged = await self._judged(asked, create_topics.FORM, creation)
        return AutomaticReview(self, header, judged, _sized(frame), request=request, missing=missing)

    def _asked_only(self, header: RequestHeader, request: WireStruct) -> Review | None:
        """Return what goes on of a question for topics that were seen: it has none of them created
        again that is gone since.
        """
        if not self._judge.enforces or not isinstance(request, MetadataRequest):
            return None
        return Review(header, *_without_creation(header, request))

    async def _judged(self, asked: PassingRequest, form: Form, request: Any) -> Judged:
        """Judge a request. While the audit log allows no changes, it is refused."""
        try:
            audited = self._records.begun(asked, validate_only=is_dry_run(request))
        except Refusal as refusal:
            judged = await self._judge.judge(asked, form, request)
            self._judge.refuse(judged, refusal)
            return judged
        return await self._judge.judge(asked, form, request, audited)

    def _creates(self, request: WireStruct) -> bool:
        """Whether the cluster seems to create missing topics that a request names."""
        is_on = self._mirror.defaults.config.boolean("auto.create.topics.enable")
        return is_on or isinstance(request, FindCoordinatorRequest)

    async def completed(self, review: JudgedReview, response: WireStruct | None) -> None:
        """Record a request that was answered; wait for the record only if answers do."""
        recorded = self.complete_soon(review, response)
        if self._answers_wait:
            await recorded.wait()

    def complete_soon(self, review: JudgedReview, response: WireStruct | None) -> trio.Event:
        """Record a request in a task of its own, which goes on if the client leaves. Returns the
        event that is set when that is done.
        """
        recorded = trio.Event()
        self._completing += 1
        self._nursery.start_soon(self._complete, review, response, recorded)
        return recorded

    async def _complete(self, review: JudgedReview, response: WireStruct | None, recorded: trio.Event) -> None:
        try:
            await self._records.complete(review.judged, response)
        finally:
            recorded.set()
            self._completing -= 1
            if not self._completing:
                self._idle.set()

    async def wait_recorded(self) -> None:
        """Wait until every answered request is recorded."""
        while self._completing:
            self._idle = trio.Event()
            await self._idle.wait()


def _described(header: RequestHeader, caller: Caller) -> PassingRequest:
    return PassingRequest(
        api_key=ApiKey(header.api_key),
        client_id=header.client_id,
        origin=RequestOrigin(caller.principal, caller.host, header.api_version, header.correlation_id, caller.software),
        listener=caller.listener.name,
        arrived=trio.current_time(),
    )


def _passed(header: RequestHeader, judged: Judged, frame: bytes) -> bytes:
    """Return the frame that goes on, its size included: of parts with grounds alone, in the form in
    which they were judged. It is the client's own where that is all, also of a request for nothing.
    """
    if judged.parts and not judged.passed:
        return b""
    request = judged.request if judged.resolution is None else judged.resolution.request
    request = judged.form.passing(request, judged.parts)
    return _sized(frame) if request is judged.request else _encoded(header, request)


def _without_creation(header: RequestHeader, request: MetadataRequest) -> tuple[bytes, int]:
    """Return the frame of a question for topics that has none created, and the version of it."""
    asked = msgspec.structs.replace(request, allow_auto_topic_creation=False)
    version = max(header.api_version, automatic.CREATION_IS_ASKED_SINCE)
    return _encoded(msgspec.structs.replace(header, api_version=version), asked), version


def _encoded(header: RequestHeader, request: WireStruct) -> bytes:
    return KAFKA.encode_request(msgspec.structs.replace(header, origin=None), request)


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame
