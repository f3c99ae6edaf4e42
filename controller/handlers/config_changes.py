"""The common part of AlterConfigs and IncrementalAlterConfigs: which node decides, and how changed
configs are written.

The node that receives the request checks its form, and whatever concerns this node alone (Kafka:
ConfigAdminManager.preprocess). The active controller decides and writes everything else. The
response has its rows in the order of the request.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from immutables import Map

from ...admin import questions
from ...admin.changes import Change, Outcome, kind_and_name
from ...admin.config_permissions import ALTER_CONFIGS_OF_CLUSTER, ALTER_CONFIGS_OF_TOPIC
from ...admin.requested_changes import configured_resource
from ...cluster.delta import TopicConfigured, broker_configs
from ...cluster.entities import NO_ENTITY_CONFIGS, EntityConfigs, Topic
from ...cluster.errors import Refusal
from ...cluster.znodes import layout
from ...cluster.znodes.configs import encode_config, encode_config_change
from ...network.serving.api import Handler
from ...network.serving.context import NO_NAMES, RequestContext
from ...policies.configs.values import java_int
from ...policies.interface import AlterBrokerConfigsRequest, AlterTopicRequest
from ...policies.requests import RequestBuilder
from ...process.time_slices import TimeSlice, in_time_slices
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ...protocol.header import DecidedElement
from ...store.base import Create, Operation, SetData
from ..active.entity_writing import refuse_unreadable
from ..active.jobs import Draft
from ..broker.topic_overrides import TopicOverrides
from . import decided_elements
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one
from .planning import default_configs, denied_in_advance, judge

Configs = Mapping[str, str]

R = TypeVar("R", bound=Any)
"""A resource of AlterConfigs or of IncrementalAlterConfigs."""


class Alteration(msgspec.Struct, frozen=True):
    """The change of one resource's configs: what is requested, and functions that apply it to
    existing configs.
    """

    resource_type: int
    resource_name: str
    requested: Change
    topic_configs: Callable[[Topic], Configs]
    """Returns the new configs of a topic. Raises Refusal."""
    broker_configs: Callable[[Configs], Configs]
    """Returns the new configs of a broker, or of all brokers. Raises Refusal."""
    check_before_topic: Callable[[], None] = lambda: None
    """Finds what is refused before it is known that there is no such topic. Raises Refusal."""

    def changed(self, **said: Any) -> Outcome:
        return Outcome(self.requested, **said)


async def refused_here(
    port: ControllerPort,
    context: RequestContext,
    resources: Sequence[R],
    check: Callable[[R], None],
    check_of_type: Callable[[R], None] = lambda _resource: None,
    *,
    loggers: bool = False,
) -> dict[int, Outcome]:
    """Return the resources that the receiving node refuses itself, by their index in the request.
    `check` is called before the type is checked, `check_of_type` after it. Raises Refusal for
    client metrics of a caller who has no right to them: Kafka refuses the whole request then.
    """
    names = await in_time_slices(
        (resource.resource_type, *kind_and_name(resource.resource_type, resource.resource_name))
        for resource in resources
    )
    occurrences = Counter(names)
    refused: dict[int, Outcome] = {}
    metrics: list[str] = []
    time_slice = TimeSlice()
    for index, resource in enumerate(resources):
        await time_slice.pause()
        try:
            if occurrences[names[index]] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            check(resource)
            if resource.resource_type == ResourceType.CLIENT_METRICS:
                metrics.append(resource.resource_name)
            _check_type(resource.resource_type, loggers=loggers)
            if resource.resource_type == ResourceType.BROKER and resource.resource_name:
                check_own_id(port, resource.resource_name)
            check_of_type(resource)
        except Refusal as refusal:
            refused[index] = Outcome(configured_resource(resource), refusal=refusal)
    if metrics and not context.may(ALTER_CONFIGS_OF_CLUSTER):
        text = f"Unexpected resource type CLIENT_METRICS for resource {metrics[0]}"
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    return refused


def _check_type(resource_type: int, *, loggers: bool) -> None:
    if loggers and resource_type == ResourceType.BROKER_LOGGER:
        return
    if resource_type == ResourceType.CLIENT_METRICS:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS",
        )
    if resource_type not in (ResourceType.TOPIC, ResourceType.BROKER):
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def check_own_id(port: ControllerPort, name: str) -> None:
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
    """Judges and stages the alterations of one request at the controller."""

    def __init__(
        self, port: ControllerPort, context: RequestContext, request: Any, alterations: Sequence[Alteration]
    ) -> None:
        self._port = port
        self._context = context
        self._request = request
        self._alterations = alterations
        self._validate_only: bool = request.validate_only
        self._denied: frozenset[str] = NO_NAMES
        """The topics of a long request whose configs the client might not alter when it arrived."""
        self._denial = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    async def carry_out(self) -> Sequence[Outcome]:
        """Record the decisions of the node that forwarded the request, then carry out the
        alterations. Returns the changes in this order.
        """
        elements: Sequence[DecidedElement | Alteration] = [*self._context.origin.decided, *self._alterations]
        topics = [each.resource_name for each in self._alterations if each.resource_type == ResourceType.TOPIC]
        self._denied = await denied_in_advance(self._context, ALTER_CONFIGS_OF_TOPIC, topics)
        try:
            return await carry_out(
                self._port,
                self._context,
                self._request,
                Parts(list(map(self._change, elements)), one_by_one(elements, self._plan_one)),
                timeout_ms=self._port.request_timeout_ms,
                validate_only=self._validate_only,
            )
        except Refusal as refusal:
            if not self._context.origin.decided:
                raise
            # A response with error codes could not tell the forwarding node that nothing is
            # recorded.
            self._port.decisions.refused(self._context, self._request, refusal)
            return [Outcome(Change(""), refusal=refusal)] * len(elements)

    def _change(self, element: DecidedElement | Alteration) -> Change:
        return element.requested if isinstance(element, Alteration) else decided_elements.change_of(element)

    async def _plan_one(self, draft: Draft, alteration: DecidedElement | Alteration) -> Outcome:
        if isinstance(alteration, DecidedElement):
            decided = decided_elements.decode(alteration, validate_only=self._validate_only)
            return await self._judge_loggers(draft, decided)
        is_topic = alteration.resource_type == ResourceType.TOPIC
        if is_topic and alteration.resource_name in self._denied:
            return alteration.changed(refusal=self._denial, is_denied=True)
        try:
            if is_topic:
                return await self._plan_topic(draft, alteration)
            return await self._plan_broker(draft, alteration)
        except Refusal as refusal:
            return alteration.changed(refusal=refusal)

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

    async def _plan_topic(self, draft: Draft, alteration: Alteration) -> Outcome:
        name = alteration.resource_name
        if not self._context.may(ALTER_CONFIGS_OF_TOPIC, name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        topic = draft.image.topic(name)
        if topic is None or topic.marked_for_deletion:
            alteration.check_before_topic()
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        refuse_unreadable(layout.topic_config_path(name), topic.config_version)
        configs = Map(alteration.topic_configs(topic))
        after = topic.with_configs(configs, topic.config_version + 1)

        def question() -> AlterTopicRequest:
            defaults = default_configs(self._port, draft.image)
            return questions.topic_configs(self._asked(), alteration.requested, topic.configs, after, defaults)

        await judge(self._port, self._context, question, draft)
        delta = TopicConfigured(name, topic.topic_id, configs=EntityConfigs(configs, after.config_version))
        if self._validate_only:
            draft.suppose(delta)
            return alteration.changed()
        path = layout.topic_config_path(name)
        operations = [config_write(path, configs, topic.config_version), notification(f"topics/{name}")]
        element = draft.stage(delta, operations)
        return alteration.changed(element=element, changes_configs=True)

    async def _plan_broker(self, draft: Draft, alteration: Alteration) -> Outcome:
        name = str(broker_id_of(alteration.resource_name)) if alteration.resource_name else ""
        path = layout.entity_path(layout.BROKERS_ENTITY, name or layout.DEFAULT_ENTITY)
        before = draft.image.configs.get(path, NO_ENTITY_CONFIGS)
        refuse_unreadable(f"/config/{path}", before.version)
        after = EntityConfigs(Map(alteration.broker_configs(before.configs)), before.version + 1)
        self._context.check_cluster(ALTER_CONFIGS_OF_CLUSTER)

        def question() -> AlterBrokerConfigsRequest:
            configs = before.configs, after.configs
            defaults = self._defaults(draft, name, before.configs), self._defaults(draft, name, after.configs)
            return questions.broker_configs(self._asked(), alteration.requested, configs, defaults)

        await judge(self._port, self._context, question, draft)
        delta = broker_configs(path, after)
        if self._validate_only:
            draft.suppose(delta)
            return alteration.changed()
        operations = [config_write(f"/config/{path}", after.configs, before.version), notification(path)]
        element = draft.stage(delta, operations)
        return alteration.changed(element=element, changes_configs=True)

    def _defaults(self, draft: Draft, broker: str, configs: Configs) -> Configs:
        """Return the default configs of topics under these configs of a broker, or of all brokers
        if `broker` is empty.
        """
        if broker:
            return default_configs(self._port, draft.image, of_broker=configs)
        return default_configs(self._port, draft.image, of_all=configs)


def config_write(path: str, configs: Configs, version: int) -> Operation:
    """Return the operation that writes configs over this version of their znode, or creates the
    znode if `version` is -1.
    """
    data = encode_config(configs)
    return Create(path, data) if version < 0 else SetData(path, data, version)


def notification(entity_path: str) -> Create:
    """Return the operation that makes every node read an entity's configs again
    (`/config/changes`).
    """
    return Create(layout.CONFIG_CHANGE_PREFIX, encode_config_change(entity_path), sequential=True)


async def alter(
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
        elements = await in_time_slices(decided_elements.encode(decided[index]) for index in here)
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
