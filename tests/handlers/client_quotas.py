"""Requests about quotas, and what their answers say."""

from collections.abc import Sequence

from minicontroller.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from minicontroller.protocol.messages.describe_client_quotas import (
    ClientQuotaComponent,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuotaEntity,
)
from tests.handlers.ruling import Ruling

MUTATION, PERCENTAGE, PRODUCED = "controller_mutation_rate", "request_percentage", "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"

Names = dict[str, str | None]


def entry(entity: Names | Sequence[tuple[str, str | None]], ops: dict[str, float | None]) -> ClientQuotaAlteration:
    """One entity and its operations; None removes a quota."""
    named = entity.items() if isinstance(entity, dict) else entity
    return ClientQuotaAlteration(
        entity=[DescribedQuotaEntity(entity_type=kind, entity_name=name) for kind, name in named],
        ops=[
            ClientQuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in ops.items()
        ],
    )


async def alter(
    cluster: Ruling, *entries: ClientQuotaAlteration, validate_only: bool = False, version: int = 1
) -> AlterClientQuotasResponse:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answer: AlterClientQuotasResponse = await cluster.ask(request, version)
    return answer


async def shown(
    cluster: Ruling, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> list[tuple[Names, dict[str, float]]]:
    answer = await describe(cluster, *components, strict=strict, version=version)
    assert (answer.error_code, answer.error_message) == (0, "")
    assert answer.entries is not None
    return [
        (
            {each.entity_type: each.entity_name for each in found.entity},
            {value.key: value.value for value in found.values},
        )
        for found in answer.entries
    ]


async def describe(
    cluster: Ruling, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> DescribeClientQuotasResponse:
    parts = [ClientQuotaComponent(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer: DescribeClientQuotasResponse = await cluster.ask(
        DescribeClientQuotasRequest(components=parts, strict=strict), version
    )
    return answer
