"""The quotas of users, clients and addresses (KIP-546)."""

from collections.abc import Mapping, Sequence

import msgspec

from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import Results, check, result_of

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a component matches (Kafka's numbers)."""
QUOTA_TYPES = ("user", "client-id", "ip")
"""The types of the entities that have quotas, in the order in which they are named."""


class ClientQuotaEntity(msgspec.Struct, frozen=True):
    """A user, a client id, both together, or an address; the name None stands for the default."""

    entries: tuple[tuple[str, str | None], ...]
    """Types and names, in the order of `QUOTA_TYPES`."""

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> "ClientQuotaEntity":
        """Make an entity of names by type, such as `{"user": "alice", "client-id": None}`."""
        return cls(tuple(sorted(names.items(), key=lambda entry: _place(entry[0]))))

    def __str__(self) -> str:
        return ", ".join(f"default {kind}" if name is None else f"{kind} {name}" for kind, name in self.entries)


def _place(entity_type: str) -> tuple[int, str]:
    return QUOTA_TYPES.index(entity_type) if entity_type in QUOTA_TYPES else len(QUOTA_TYPES), entity_type


class ClientQuotaFilterComponent(msgspec.Struct, frozen=True):
    """The entities of a type that a question is about: the one of this name, the default (None), or
    any.
    """

    entity_type: str
    name: str | None = None
    matches_any: bool = False


class QuotaCalls(Calls):
    async def describe_client_quotas(
        self, components: Sequence[ClientQuotaFilterComponent] = (), *, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Return the quotas of the entities that match all components (KIP-546). `strict` leaves
        out those that have further types. Raises AdminError.
        """
        from ..protocol.messages import describe_client_quotas as messages

        def row(wanted: ClientQuotaFilterComponent) -> messages.ClientQuotaComponent:
            how = ANY if wanted.matches_any else DEFAULT if wanted.name is None else EXACT
            return messages.ClientQuotaComponent(entity_type=wanted.entity_type, match_type=how, match=wanted.name)

        request = messages.DescribeClientQuotasRequest(components=[row(each) for each in components], strict=strict)
        answer = await self._batches.ask_any(request, messages.DescribeClientQuotasResponse)
        check(answer.error_code, answer.error_message)
        return {
            ClientQuotaEntity.of({each.entity_type: each.entity_name for each in row.entity}): {
                each.key: each.value for each in row.values
            }
            for row in answer.entries or ()
        }

    async def alter_client_quotas(
        self, alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Results[ClientQuotaEntity, None]:
        """Set quotas, or remove them (None), by entity (KIP-546). All that is asked for one entity
        is done, or nothing of it.
        """
        from ..protocol.messages import alter_client_quotas as messages
        from ..protocol.messages import describe_client_quotas

        def row(entity: ClientQuotaEntity) -> messages.ClientQuotaAlteration:
            return messages.ClientQuotaAlteration(
                entity=[
                    describe_client_quotas.DescribedQuotaEntity(entity_type=kind, entity_name=name)
                    for kind, name in entity.entries
                ],
                ops=[
                    messages.ClientQuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in alterations[entity].items()
                ],
            )

        def request(entities: Sequence[ClientQuotaEntity], _version: int) -> WireStruct:
            return messages.AlterClientQuotasRequest(
                entries=[row(each) for each in entities], validate_only=validate_only
            )

        def read(answer: messages.AlterClientQuotasResponse) -> Results[ClientQuotaEntity, None]:
            return {
                ClientQuotaEntity.of({each.entity_type: each.entity_name for each in row.entity}): result_of(
                    row.error_code, row.error_message, None
                )
                for row in answer.entries
            }

        return await self._batches.write(list(alterations), messages.AlterClientQuotasResponse, request, read)
