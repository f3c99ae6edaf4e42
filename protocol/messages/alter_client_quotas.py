"""AlterClientQuotas (49) sets and removes the quotas of users, clients and addresses."""

from ..schema import Int16, Int32, WireStruct, message
from .describe_client_quotas import DescribedQuotaEntity


class ClientQuotaOperation(WireStruct):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class ClientQuotaAlteration(WireStruct):
    entity: list[DescribedQuotaEntity] = []
    ops: list[ClientQuotaOperation] = []


@message(49, "request", versions=(0, 1), flexible=1)
class AlterClientQuotasRequest(WireStruct):
    entries: list[ClientQuotaAlteration] = []
    validate_only: bool = False


class AlteredClientQuotas(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = None
    entity: list[DescribedQuotaEntity] = []


@message(49, "response", versions=(0, 1), flexible=1)
class AlterClientQuotasResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    entries: list[AlteredClientQuotas] = []
