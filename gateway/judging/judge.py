"""Judges the requests for changes that pass, and records what became of them.

A request is judged part by part, on the state of the cluster at that moment: the topics that it
names are read from the cluster first, and what other requests have asked for and have not been
answered counts as done. Requests about one topic take turns from their judgement until the cluster
shows what they have changed, so none is judged by a state that another one is just changing.

Rule: with a policy in force, what cannot be judged is not passed, unless `on.failure=pass` says so.
A gateway that observes refuses nothing. What passes has its grounds (`judged.py`), and this module
alone gives them.
"""

import logging
import math
from typing import Any

import trio

from ...admin.bounds import check_changes
from ...admin.changes import Judgement, Unjudged
from ...admin.policy.cluster_view import TopicStates, view
from ...admin.policy.runner import PolicyRefusal, PolicyRunner
from ...admin.recording.requests import AuditedRequest
from ...audit.event import NOT_AUTHENTICATED
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.request_log import describe_unexpected_error
from ...policies.verdict import PolicyOutcome
from ...process.observe.logs import RateLimitedLog, about
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from .cluster_reader import NotKnownError
from .forms.whole import undivided
from .judged import (
    CLUSTER_REFUSES,
    NO_JUDGED_API,
    NO_JUDGED_KIND,
    NO_POLICY,
    Form,
    Judged,
    Part,
    PassingRequest,
    is_dry_run,
)
from .mirror import Mirror
from .preparing import Preparation
from .questions import QuestionContext
from .turns import Turns

log = logging.getLogger("minicontroller.gateway")

MOST_PARTS = 5_000
"""How many topics and resources one judged request may name: each is read before it is judged."""
OBSERVING_SECONDS = 2.0
"""How long a gateway that refuses nothing holds a request up at most to judge it."""


class Judge:
    """Judges requests, one part after the other."""

    def __init__(
        self,
        mirror: Mirror,
        turns: Turns,
        policy: PolicyRunner | None,
        nursery: trio.Nursery,
        *,
        enforces: bool,
        passes_on_failure: bool,
    ) -> None:
        """Judge by a policy, if there is one, in tasks of the nursery. `enforces` is False for a
        gateway that observes; `passes_on_failure` is for one that enforces and cannot judge.
        """
        self.failures = 0
        """How many requests could not be judged."""
        self._mirror = mirror
        self._turns = turns
        self._policy = policy
        self._nursery = nursery
        self.enforces = enforces and policy is not None
        """Whether what the policy refuses is refused."""
        self._passes_on_failure = passes_on_failure or not self.enforces
        self._patience = math.inf if self.enforces else OBSERVING_SECONDS
        self._preparation = Preparation(mirror, turns, self.judges_api, enforces=self.enforces)
        self._states = TopicStates()
        self._judging = trio.Lock()
        self._is_stopping = False
        self._asking = trio.CancelScope()
        """Where the policy is asked, which is not interrupted before `stop`."""
        self._under_way: dict[int, Judged] = {}
        """The requests that are passed and not answered, which are judged as done."""
        self._unable = RateLimitedLog(log)

    async def judge(
        self, asked: PassingRequest, form: Form, request: Any, audited: AuditedRequest | None = None
    ) -> Judged:
        """Judge a request, which is under way from now on until `answered`. A request that only has
        topics created is judged by the CreateTopics that stands for it.
        """
        judged = self._begun(asked, form, request, audited)
        scope, decided = trio.CancelScope(), trio.Event()
        self._nursery.start_soon(self._decide, judged, scope, decided)
        try:
            with trio.move_on_after(self._patience):
                await decided.wait()
        except BaseException:
            scope.cancel()
            if decided.is_set():
                self.answered(judged)
            raise
        if decided.is_set():
            return judged
        scope.cancel()
        judged = self._begun(asked, form, request, audited)
        self._unable_to_judge(judged, NotKnownError(f"judging it takes more than {OBSERVING_SECONDS:g} seconds"))
        return judged

    def _begun(self, asked: PassingRequest, form: Form, request: Any, audited: AuditedRequest | None) -> Judged:
        too_long = _too_long(form, request)
        if too_long is not None:
            form = undivided(form)
        return Judged(
            asked=asked,
            request=request,
            too_long=too_long,
            form=form,
            parts=form.parts(request),
            turn=self._turns.stand(()),
            image=self._mirror.image,
            validate_only=is_dry_run(request),
            audited=audited,
        )

    async def _decide(self, judged: Judged, scope: trio.CancelScope, decided: trio.Event) -> None:
        """Judge a request. A policy that was asked is not interrupted, because its process would
        have to be started anew.
        """
        is_complete = False
        try:
            with scope:
                await self._judge(judged)
                is_complete = True
        finally:
            if scope.cancel_called or not is_complete:
                self.answered(judged)
            if is_complete:
                decided.set()

    async def _judge(self, judged: Judged) -> None:
        try:
            if judged.too_long is not None:
                raise judged.too_long
            await self._preparation.prepare(judged)
            async with self._judging:
                await self._judge_parts(judged)
                self._under_way[id(judged)] = judged
            # What goes no further keeps nobody waiting while the cluster is asked how to refuse it.
            self._turns.keep(judged.turn, {each.line for each in judged.passed})
        except Refusal as refusal:
            self._decide_all(judged, refusal if self.enforces else refusal.message or refusal.code.name)
        except NotKnownError as error:
            self._unable_to_judge(judged, error)
        except Exception as error:  # noqa: BLE001 - a defect must neither pass a change nor end a connection
            text = describe_unexpected_error(error, judged.request)
            asked = judged.asked
            log.error("judging a request of %s failed:\n%s", asked.policy_api, text, extra=about(asked))  # noqa: TRY400 - its text says all, without secrets
            self._unable_to_judge(judged, NotKnownError("judging it failed; the gateway's log has the reason"))

    def stop(self) -> None:
        """Let the end of the nursery interrupt the policy."""
        self._is_stopping, self._asking.shield = True, False

    @property
    def changed_topics(self) -> frozenset[str]:
        """The topics that requests under way change."""
        passed = (each for judged in self._under_way.values() for each in judged.passed)
        return frozenset(name for each in passed if (name := each.outcome.delta.changed_topic) is not None)

    @property
    def oldest_count(self) -> int | None:
        """The least count of undone plans with which the record of a request under way began."""
        counts = (judged.audited.undone_count for judged in self._under_way.values() if judged.audited is not None)
        return min(counts, default=None)

    def judges_api(self, api: str) -> bool:
        """Whether the policy judges an API, given by Kafka's name, of which it sees no state."""
        return self._policy is not None and self._policy.judges_api(api)

    def answered(self, judged: Judged) -> None:
        """Note that a request is no longer under way: the mirror shows what became of it."""
        self._under_way.pop(id(judged), None)
        self._turns.end(judged.turn)
        judged.turn = self._turns.stand(())

    def _unable_to_judge(self, judged: Judged, error: NotKnownError) -> None:
        self._count(judged)
        self._say_unable(judged, error)
        self._decide_all(judged, error.reason if self._passes_on_failure else error.refusal(judged.form.retried_as))

    def _say_unable(self, judged: Judged, error: NotKnownError) -> None:
        action = "passed" if self._passes_on_failure else "refused"
        text = "a request of %s by %s is %s, because the gateway cannot judge it: %s"
        principal = judged.asked.origin.principal or NOT_AUTHENTICATED
        self._unable.say(
            logging.ERROR, text, judged.asked.policy_api, principal, action, error, extra=about(judged.asked)
        )

    def refuse(self, judged: Judged, refusal: Refusal) -> None:
        """Refuse a request as a whole after all."""
        self._decide_all(judged, refusal)

    def _decide_all(self, judged: Judged, decided: Refusal | str) -> None:
        """Refuse a request as a whole, or pass it without a verdict for this reason."""
        judged.resolution = None
        for each in judged.parts:
            each.outcome.judgement = each.outcome.element = None
            if isinstance(decided, Refusal):
                each.refuse(decided)
            else:
                each.outcome.refusal = None
                self._pass_unjudged(judged, each, decided)

    def _pass_unjudged(self, judged: Judged, each: Part, reason: str) -> None:
        """Let a part pass of which there is no verdict."""
        if self._policy is None:
            each.pass_unjudged(NO_POLICY)
        else:
            self._count(judged)
            each.pass_unjudged(Unjudged(reason, was_due=True))

    def _count(self, judged: Judged) -> None:
        """Count a request once of which a part got no verdict although one was due."""
        self.failures += not judged.is_unjudged
        judged.is_unjudged = True

    # ------------------------------------------------------------------ the judgement

    async def _judge_parts(self, judged: Judged) -> None:
        image = judged.image = self._image()
        judged.supposed = self.changed_topics
        if judged.is_automatic:  # another request may have had a topic created meanwhile
            for each in judged.parts:
                each.is_there = each.change.resource in image.topics
        context = QuestionContext(
            judged.asked,
            self._mirror.defaults,
            created_ms=self._mirror.created_ms,
            validate_only=judged.validate_only,
            is_automatic=judged.is_automatic,
        )
        time_slice = TimeSlice()
        for each in judged.parts:
            await time_slice.pause()
            await self._judge_part(context, judged, each, image)
            if each.is_there:
                each.outcome.element = None  # it is to be no other topic
            if each.is_passed:
                image = each.outcome.delta.apply(image)
        if judged.form.is_whole and judged.refused:
            _refuse_rest(judged)

    async def _judge_part(self, context: QuestionContext, judged: Judged, each: Part, image: Image) -> None:
        """Give a part the grounds on which it passes, or refuse it."""
        exempt = self._exemption(judged, each)
        if exempt is not None:
            each.pass_unjudged(exempt)
        if exempt is not None and exempt is not NO_POLICY:
            return
        try:
            _plan(context, judged, each, image)
            await self._ask(judged, each, image)
        except NotKnownError as error:
            self._count(judged)
            self._say_unable(judged, error)
            if self._passes_on_failure:
                self._pass_unjudged(judged, each, error.reason)
            else:
                each.refuse(error.refusal(judged.form.retried_as))
        except Refusal as refusal:
            if self.enforces:
                each.refuse(refusal)
            elif each.outcome.judgement is None or each.outcome.judgement.verdict is None:
                self._pass_unjudged(judged, each, refusal.message or refusal.code.name)

    def _exemption(self, judged: Judged, each: Part) -> Unjudged | None:
        """Return why a part needs no verdict in any state of the cluster; None if it does."""
        if judged.form.is_whole:
            return None if self.judges_api(judged.asked.policy_api) else NO_JUDGED_API
        is_refused = each.is_repeated and judged.form.refuses_repeated
        is_nothing = not judged.form.creates and self._preparation.is_no_thing(each)
        if is_refused or is_nothing or judged.form.is_impossible(each, judged.request):
            return CLUSTER_REFUSES
        if each.change.kind == "resource":
            return NO_JUDGED_KIND
        return NO_POLICY if self._policy is None else None

    async def _ask(self, judged: Judged, part: Part, image: Image) -> None:
        """Ask the policy, and note its verdict. Raises Refusal."""
        judgement = part.outcome.judgement = Judgement(part.requests[-1], image, is_enforced=self.enforces)
        if self._policy is None:
            return
        try:
            with trio.CancelScope(shield=not self._is_stopping) as self._asking:  # policy.timeout.ms bounds it
                for request in part.requests:
                    judgement.verdict = await self._policy.judge(
                        request, view(image, self._states), judged.asked, is_enforced=self.enforces
                    )
        except PolicyRefusal as refusal:
            judgement.verdict = refusal.verdict
            if refusal.verdict.decision is PolicyOutcome.BROKEN:
                self._count(judged)
                if self._passes_on_failure:
                    self._say_unable(judged, NotKnownError("its policy failed"))
                    judgement.is_enforced = False
                    return
            if part.first_refusal is not None:
                raise part.first_refusal from None
            raise

    def _image(self) -> Image:
        """Return the mirror's image with all requests in effect that are under way."""
        image = self._mirror.image
        for judged in self._under_way.values():
            if not judged.validate_only:
                for each in judged.passed:
                    image = each.outcome.delta.apply(image)
        return image


def _plan(context: QuestionContext, judged: Judged, each: Part, image: Image) -> None:
    """Plan a part, unless it says two things of one. Raises NotSeen, Refusal, NotKnownError."""
    twice = each.contradiction or (judged.form.repeated if each.is_repeated else None)
    if twice is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, twice)
    judged.form.plan(context, each, judged.request, image)


def _refuse_rest(judged: Judged) -> None:
    first = judged.refused[0].refusal
    for each in judged.passed:
        each.outcome.refusal = Refusal(first.code, first.message, reason="Another part of the request was refused.")


def _too_long(form: Form, request: Any) -> Refusal | None:
    """Return why a request that names more than is judged at once is refused, or None."""
    count = form.count(request)
    if count > MOST_PARTS:
        text = f"The request names {count} topics or resources; the gateway judges at most {MOST_PARTS}."
        return Refusal(ErrorCode.INVALID_REQUEST, text)
    try:
        check_changes(request)
    except Refusal as refusal:
        return refusal
    return None
