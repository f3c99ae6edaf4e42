"""Builds the requests that a policy judges, from plain values: for what a client asks a node or a
gateway for, for what the audit log recorded, and for what the tests of a policy describe.

Rule: no other module of the program makes these requests, so that each has the same fields wherever
it comes from.
"""

from collections.abc import Mapping, Sequence
from typing import Required, TypedDict, Unpack

from .interface import (
    NO_CONFIGS,
    AdminRequest,
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    RequestedTopicState,
)

Configs = Mapping[str, str]
Operands = Mapping[str, str | None]


class CommonFields(TypedDict, total=False):
    """The fields that all requests have, as `PolicyRequest` describes them."""

    principal: Required[str | None]
    client_id: str | None
    client_host: str
    api: str
    validate_only: bool
    time_ms: int | None


class RequestBuilder:
    """Builds the requests about what one client asks for by one request. They all have the common
    fields; `state_may_be_old` is for those about a state, as `AlterTopicRequest` describes it.
    """

    def __init__(self, *, state_may_be_old: bool = False, **common: Unpack[CommonFields]) -> None:
        self._common = common
        self._state_may_be_old = state_may_be_old

    def create_topic(self, topic: str, state: RequestedTopicState, *, automatic: bool = False) -> CreateTopicRequest:
        return CreateTopicRequest(**self._common, topic=topic, requested_state=state, automatic=automatic)

    def alter_topic(
        self,
        topic: str,
        state: RequestedTopicState,
        *,
        config_operations: Operands | None = None,
        config_operation_kinds: Configs | None = None,
        reassignments: Mapping[int, Sequence[int] | None] | None = None,
    ) -> AlterTopicRequest:
        return AlterTopicRequest(
            **self._common,
            topic=topic,
            requested_state=state,
            config_operations=config_operations,
            config_operation_kinds=config_operation_kinds,
            reassignments=reassignments,
            state_may_be_old=self._state_may_be_old,
        )

    def delete_topic(self, topic: str, *, created_ms: int | None = None) -> DeleteTopicRequest:
        return DeleteTopicRequest(**self._common, topic=topic, created_ms=created_ms)

    def delete_records(self, topic: str, offsets: Mapping[int, int]) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(**self._common, topic=topic, delete_records_offsets=offsets)

    def alter_broker_configs(
        self,
        broker: str,
        before: Configs,
        after: Configs,
        *,
        config_operations: Operands,
        config_operation_kinds: Configs | None = None,
        default_configs_before: Configs = NO_CONFIGS,
        default_configs: Configs = NO_CONFIGS,
    ) -> AlterBrokerConfigsRequest:
        return AlterBrokerConfigsRequest(
            **self._common,
            broker=broker,
            config_operations=config_operations,
            config_operation_kinds=config_operation_kinds,
            before=before,
            after=after,
            default_configs_before=default_configs_before,
            default_configs=default_configs,
            state_may_be_old=self._state_may_be_old,
        )

    def alter_loggers(
        self,
        broker: str,
        before: Configs,
        after: Configs,
        *,
        config_operations: Operands,
        config_operation_kinds: Configs | None = None,
    ) -> AlterLoggersRequest:
        return AlterLoggersRequest(
            **self._common,
            broker=broker,
            config_operations=config_operations,
            config_operation_kinds=config_operation_kinds,
            before=before,
            after=after,
        )

    def admin(
        self,
        kind: str,
        name: str,
        *,
        config_operations: Operands = NO_CONFIGS,
        config_operation_kinds: Configs | None = None,
        election_type: str | None = None,
    ) -> AdminRequest:
        return AdminRequest(
            **self._common,
            kind=kind,
            name=name,
            config_operations=config_operations,
            config_operation_kinds=config_operation_kinds,
            election_type=election_type,
        )


def kinds_with_omitted(named: Configs, before: Configs, after: Configs) -> dict[str, str]:
    """Return the kind of operation on each key that a change of configs names, and on those that
    AlterConfigs deletes by leaving them out.
    """
    return {key: "delete" for key in before if key not in after} | dict(named)


def operands_with_omitted(named: Operands, kinds: Configs) -> dict[str, str | None]:
    """Return the operand of each key that `kinds` names: None for those that the change of configs
    leaves out.
    """
    return dict.fromkeys(kinds) | dict(named)
