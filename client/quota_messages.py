"""Makes requests about client quotas, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from ..protocol.messages.describe_client_quotas import (
    ClientQuotaComponent,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ..protocol.messages.describe_client_quotas import DescribedQuotaEntity as NamedEntity
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import ClientQuotaEntity, ClientQuotaFilterComponent, Results, result_of

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a component matches (Kafka's numbers)."""


def question(components: Sequence[ClientQuotaFilterComponent], *, strict: bool) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=[_component(each) for each in components], strict=strict)


def described(answer: WireStruct) -> dict[ClientQuotaEntity, dict[str, float]]:
    """Return the quotas of each entity. Raises AdminError if the request was refused."""
    assert isinstance(answer, DescribeClientQuotasResponse)
    if answer.error_code != ErrorCode.NONE:
        raise AdminError(answer.error_code, answer.error_message)
    return {_entity(row.entity): {each.key: each.value for each in row.values} for row in answer.entries or ()}


def alteration(
    alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
    entities: Sequence[ClientQuotaEntity],
    *,
    validate_only: bool,
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[
            ClientQuotaAlteration(
                entity=[NamedEntity(entity_type=kind, entity_name=name) for kind, name in entity.entries],
                ops=[
                    ClientQuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in alterations[entity].items()
                ],
            )
            for entity in entities
        ],
        validate_only=validate_only,
    )


def altered(answer: WireStruct) -> Results[ClientQuotaEntity, None]:
    assert isinstance(answer, AlterClientQuotasResponse)
    return {_entity(row.entity): result_of(row.error_code, row.error_message, None) for row in answer.entries}


def _component(wanted: ClientQuotaFilterComponent) -> ClientQuotaComponent:
    how = ANY if wanted.matches_any else DEFAULT if wanted.name is None else EXACT
    return ClientQuotaComponent(entity_type=wanted.entity_type, match_type=how, match=wanted.name)


def _entity(named: Sequence[NamedEntity]) -> ClientQuotaEntity:
    return ClientQuotaEntity.of({each.entity_type: each.entity_name for each in named})
