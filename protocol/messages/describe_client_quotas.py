"""DescribeClientQuotas (48) shows the quotas of users, clients and addresses."""

from ..schema import Int8, Int16, Int32, WireStruct, message


class DescribedQuotaEntity(WireStruct):
    entity_type: str = ""
    entity_name: str | None = None


class ClientQuotaComponent(WireStruct):
    entity_type: str = ""
    match_type: Int8 = 0
    match: str | None = None


@message(48, "request", versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest(WireStruct):
    components: list[ClientQuotaComponent] = []
    strict: bool = False


class ClientQuotaValue(WireStruct):
    key: str = ""
    value: float = 0.0


class ClientQuotaEntry(WireStruct):
    entity: list[DescribedQuotaEntity] = []
    values: list[ClientQuotaValue] = []


@message(48, "response", versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    entries: list[ClientQuotaEntry] | None = None
