"""IncrementalAlterConfigs (44) sets, deletes, appends to and subtracts from single configs of a
resource. AlterConfigs (33), which replaces all of them, is answered in the same way.

The node that receives the request checks its form, and whatever concerns this node alone (Kafka:
ConfigAdminManager.preprocess). The active controller decides and writes everything else. The
response has its rows in the order of the request.
"""

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import msgspec
import trio
from immutables import Map

from ...admin import questions
from ...admin.changes import Change, Outcome, kind_and_name
from ...admin.config_permissions import ALTER_CONFIGS_OF_CLUSTER, ALTER_CONFIGS_OF_TOPIC
from ...admin.configs.alterations import (
    Resource,
    altered_broker,
    check_known_operations,
    check_request,
    planned_topic,
)
from ...admin.configs.loggers import accepted_levels, check_loggers, set_levels
from ...admin.incremental_alter_configs import SPEC
from ...admin.requested_changes import configured_resource
from ...cluster.delta import Delta, broker_configs
from ...cluster.entities import NO_ENTITY_CONFIGS, EntityConfigs, refuse_unreadable
from ...cluster.errors import Refusal
from ...cluster.znodes import layout
from ...cluster.znodes.configs import encode_config, encode_config_change
from ...network.serving.api import Handler, served
from ...network.serving.context import NO_NAMES, RequestContext
from ...policies.configs.values import java_int
from ...policies.interface import AlterBrokerConfigsRequest, AlterTopicRequest
from ...policies.requests import RequestBuilder
from ...process import steps
from ...process.steps import Steps
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ...protocol.header import DecidedElement
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResource
from ...store.base import Create, SetData
from ..active.jobs import Draft
from ..broker.topic_overrides import TopicOverrides
from . import decided_elements
from .changes import carry_out
from .controller_port import ControllerPort
from .own_changes import OwnConfigs, refused_of_own
from .parts import Parts, one_by_one
from .planning import default_configs, judge

PATIENCE_SECONDS = 10.0
"""The seconds that a node waits until the controller has judged and recorded new levels of loggers,
even if the client has disconnected.
"""


def receive(
    port: ControllerPort, own: OwnConfigs, context: RequestContext, request: Any, ask_controller: Handler
) -> Steps[Awaitable[Any]]:
    """Answer a request at the node that received it, with a row for each resource."""
    decided = yield from _decided_here(port, context, request)
    return _answer(port, own, context, request, decided, ask_controller=ask_controller)


async def _answer(
    port: ControllerPort,
    own: OwnConfigs,
    context: RequestContext,
    request: Any,
    decided: dict[int, Outcome],
    *,
    ask_controller: Handler,
) -> Any:
    decided |= await refused_of_own(port, context, request.resources, own, refused=decided)
    if request.validate_only or all(outcome.refusal is not None for outcome in decided.values()):
        return _response(
            context,
            request.resources,
            await _alter(port, context, request, decided, ask_controller, overrides=own.overrides),
        )
    with trio.move_on_after(PATIENCE_SECONDS, shield=True):
        # A client that disconnects now does not stop changes that are judged and recorded.
        outcomes = await _alter(port, context, request, decided, ask_controller, overrides=own.overrides)
        for resource, outcome in zip(request.resources, outcomes, strict=True):
            if resource.resource_type == ResourceType.BROKER_LOGGER and outcome.refusal is None:
                set_levels(resource)
        return _response(context, request.resources, outcomes)
    raise Refusal(ErrorCode.REQUEST_TIMED_OUT, "The controller did not record the loggers' new levels in time.")


async def handle(port: ControllerPort, _own: OwnConfigs, context: RequestContext, request: Any) -> Any:
    """Answer a request at the active controller. The rows of what the receiving node has decided
    come first.
    """
    outcomes = await AlterationPlanner(port, context, request).carry_out()
    return _response(context, [*context.origin.decided, *request.resources], outcomes)


def _response(
    context: RequestContext, resources: Sequence[Resource | DecidedElement], outcomes: Sequence[Outcome]
) -> Any:
    assert context.spec.rows is not None
    response: type[Any] = context.spec.api.response
    row: type[Any] = context.spec.rows.row
    return response(
        responses=[
            row(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(resources, outcomes, strict=True)
        ]
    )


def _decided_here(port: ControllerPort, context: RequestContext, request: Any) -> Steps[dict[int, Outcome]]:
    """Return the resources about which the receiving node decides itself, by their index in the
    request: what it refuses, and new levels of its loggers. Raises Refusal for client metrics of a
    caller who has no right to them: Kafka refuses the whole request then.
    """
    names = yield from steps.one_by_one(map(_type_and_name, request.resources))
    occurrences = Counter(names)
    decided: dict[int, Outcome] = {}
    metrics: list[str] = []
    for index, resource in enumerate(request.resources):
        yield
        try:
            if occurrences[names[index]] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            check_request(resource)
            if resource.resource_type == ResourceType.CLIENT_METRICS:
                metrics.append(resource.resource_name)
            _check_resource(port, context, resource)
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                decided[index] = accepted_levels(resource)
        except Refusal as refusal:
            decided[index] = Outcome(configured_resource(resource), refusal=refusal)
    if metrics and not context.may(ALTER_CONFIGS_OF_CLUSTER):
        text = f"Unexpected resource type CLIENT_METRICS for resource {metrics[0]}"
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    return decided


def _type_and_name(resource: Resource) -> tuple[int, str, str]:
    return (resource.resource_type, *kind_and_name(resource.resource_type, resource.resource_name))


def _check_resource(port: ControllerPort, context: RequestContext, resource: Resource) -> None:
    """Check a resource for errors that the receiving node finds by itself. Raises Refusal."""
    match resource.resource_type:
        case ResourceType.TOPIC:
            pass
        case ResourceType.BROKER:
            if resource.resource_name:
                _check_own_id(port, resource.resource_name)
            check_known_operations(resource)
        case ResourceType.BROKER_LOGGER if isinstance(resource, IncrementalAlterConfigsResource):
            context.check_cluster(ALTER_CONFIGS_OF_CLUSTER)
            _check_own_id(port, resource.resource_name)
            check_loggers(resource)
        case ResourceType.CLIENT_METRICS:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS",
            )
        case unknown:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {unknown}")


def _check_own_id(port: ControllerPort, name: str) -> None:
    """Refuse to change the configs of another broker at this node. Raises INVALID_REQUEST."""
    if broker_id_of(name) != port.broker_id:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {port.broker_id}, but received {name}"
        )


def broker_id_of(name: str) -> int:
    """Return the broker id that Java, and so Kafka, reads from a name: "+1" and "01" are node 1, "
    1" is none. Raises INVALID_REQUEST.
    """
    number = java_int(name)
    if number is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    return number


class AlterationPlanner:
    """Judges and stages the changes of one request at the controller."""

    def __init__(self, port: ControllerPort, context: RequestContext, request: Any) -> None:
        self._port = port
        self._context = context
        self._request = request
        self._validate_only: bool = request.validate_only
        self._denied = NO_NAMES
        """The topics of a long request whose configs the client might not alter when it arrived."""

    async def carry_out(self) -> Sequence[Outcome]:
        """Record the decisions of the node that forwarded the request, then carry out the rest.
        Returns the changes in this order.
        """
        decided, resources = self._context.origin.decided, self._request.resources
        elements: Sequence[DecidedElement | Resource] = [*decided, *resources]
        topics = [each.resource_name for each in resources if each.resource_type == ResourceType.TOPIC]
        self._denied = await self._context.denied_in_advance(ALTER_CONFIGS_OF_TOPIC, topics)
        try:
            return await carry_out(
                self._port,
                self._context,
                self._request,
                Parts(elements, _change_asked, one_by_one(elements, self._plan_one)),
                timeout_ms=self._port.request_timeout_ms,
                validate_only=self._validate_only,
            )
        except Refusal as refusal:
            if not decided:
                raise
            # A response with error codes could not tell the forwarding node that nothing is
            # recorded.
            self._port.decisions.refused(self._context, self._request, refusal)
            return [Outcome(Change(""), refusal=refusal)] * len(elements)

    async def _plan_one(self, draft: Draft, element: DecidedElement | Resource) -> Outcome:
        if isinstance(element, DecidedElement):
            decided = decided_elements.decode(element, validate_only=self._validate_only)
            return await self._judge_loggers(draft, decided)
        outcome = Outcome(configured_resource(element))
        try:
            if element.resource_type == ResourceType.TOPIC:
                await self._plan_topic(draft, element, outcome)
            else:
                await self._plan_broker(draft, element, outcome)
        except Refusal as refusal:
            outcome.refusal = refusal
        return outcome

    async def _judge_loggers(self, draft: Draft, outcome: Outcome) -> Outcome:
        """Ask the policy about levels of loggers, which the receiving node sets afterwards. Other
        decisions of that node are not judged.
        """
        if outcome.change.kind != "logger" or outcome.refusal is not None:
            return outcome
        before, after = outcome.levels or ({}, {})
        try:
            await judge(
                self._port,
                self._context,
                lambda: questions.loggers(self._asked(), outcome.change, before, after),
                draft,
            )
        except Refusal as refusal:
            outcome.refusal, outcome.is_done = refusal, False
        return outcome

    def _asked(self) -> RequestBuilder:
        return questions.asked_by(self._context, validate_only=self._validate_only)

    async def _plan_topic(self, draft: Draft, resource: Resource, outcome: Outcome) -> None:
        name = resource.resource_name
        if name in self._denied or not self._context.may(ALTER_CONFIGS_OF_TOPIC, name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic, delta = planned_topic(draft.image, resource, self._port.configs.current)
        after = topic.with_configs(delta.configs.configs, delta.configs.version)

        def question() -> AlterTopicRequest:
            defaults = default_configs(self._port, draft.image)
            return questions.topic_configs(self._asked(), outcome.change, topic.configs, after, defaults)

        await judge(self._port, self._context, question, draft)
        self._stage(draft, outcome, delta, f"topics/{name}", delta.configs)

    async def _plan_broker(self, draft: Draft, resource: Resource, outcome: Outcome) -> None:
        name = str(broker_id_of(resource.resource_name)) if resource.resource_name else ""
        path = layout.entity_path(layout.BROKERS_ENTITY, name or layout.DEFAULT_ENTITY)
        before = draft.image.configs.get(path, NO_ENTITY_CONFIGS)
        refuse_unreadable(f"{layout.CONFIG}/{path}", before.version)
        altered = altered_broker(before.configs, resource, self._port.configs.current)
        after = EntityConfigs(Map(altered), before.version + 1)
        self._context.check_cluster(ALTER_CONFIGS_OF_CLUSTER)

        def question() -> AlterBrokerConfigsRequest:
            configs = before.configs, after.configs
            defaults = self._defaults(draft, name, before.configs), self._defaults(draft, name, after.configs)
            return questions.broker_configs(self._asked(), outcome.change, configs, defaults)

        await judge(self._port, self._context, question, draft)
        self._stage(draft, outcome, broker_configs(path, after), path, after)

    def _stage(self, draft: Draft, outcome: Outcome, delta: Delta, path: str, after: EntityConfigs) -> None:
        """Stage the write of an entity's configs over the version before, and the notification by
        which every node reads them again (`/config/changes`).
        """
        if self._validate_only:
            draft.suppose(delta)
            return
        znode, data = f"{layout.CONFIG}/{path}", encode_config(after.configs)
        write = Create(znode, data) if after.version == 0 else SetData(znode, data, after.version - 1)
        notice = Create(layout.CONFIG_CHANGE_PREFIX, encode_config_change(path), sequential=True)
        outcome.element = draft.stage(delta, [write, notice])

    def _defaults(self, draft: Draft, broker: str, configs: Mapping[str, str]) -> Mapping[str, str]:
        """Return the default configs of topics under these configs of a broker, or of all brokers
        if `broker` is empty.
        """
        if broker:
            return default_configs(self._port, draft.image, of_broker=configs)
        return default_configs(self._port, draft.image, of_all=configs)


def _change_asked(element: DecidedElement | Resource) -> Change:
    return decided_elements.change_of(element) if isinstance(element, DecidedElement) else configured_resource(element)


async def _alter(
    port: ControllerPort,
    context: RequestContext,
    request: Any,
    decided: Mapping[int, Outcome],
    ask_controller: Handler,
    *,
    overrides: TopicOverrides,
) -> list[Outcome]:
    """Return the change of each resource of a request. `decided` holds the decisions of this node,
    by index in the request; the controller decides the others.

    If there is an audit log, or a policy that judges levels of loggers, this node sends its own
    decisions to the controller with the same request, and a decision that the controller cannot
    record is refused.
    """
    here, rest = sorted(decided), [index for index in range(len(request.resources)) if index not in decided]
    is_judged = port.policy is not None and any(outcome.refusal is None for outcome in decided.values())
    is_sent = bool(here) and (port.audit is not None or is_judged)
    if not is_sent:
        port.decisions.add(context, list(decided.values()), validate_only=request.validate_only)
        if not rest:
            return [decided[index] for index in here]
    asked = context
    if is_sent:
        elements = [decided_elements.encode(decided[index]) for index in here]
        asked = msgspec.structs.replace(context, origin=msgspec.structs.replace(context.origin, decided=elements))
    smaller = msgspec.structs.replace(request, resources=[request.resources[index] for index in rest])
    try:
        response = await ask_controller(asked, smaller)
    except Refusal as refusal:
        port.decisions.refused(context, request if is_sent else smaller, refusal)
        nothing = Outcome(Change(""), refusal=refusal)
        return [nothing if is_sent else decided.get(index, nothing) for index in range(len(request.resources))]
    finally:
        for resource in smaller.resources:
            if resource.resource_type == ResourceType.TOPIC:
                overrides.forget(resource.resource_name)
    rows = [_change_of(row) for row in response.responses]
    recorded = dict(zip(here, rows, strict=False)) if len(rows) > len(rest) else {}
    answered = dict(zip(rest, rows[len(rows) - len(rest) :], strict=True))
    outcomes = {**decided, **recorded, **answered}
    return [outcomes[index] for index in range(len(request.resources))]


def _change_of(row: Any) -> Outcome:
    refusal = Refusal(ErrorCode(row.error_code), row.error_message) if row.error_code else None
    return Outcome(Change(row.resource_name), refusal=refusal)


API = served(SPEC, handle, receiver=receive)
