"""The administrative client (KIP-117): its calls. `batches.py` has the way that they take."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import trio

from ..network.peer import PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.schema import WireStruct
from . import metadata_messages
from .batches import each_of, value_of
from .configuration import ClientConfig
from .errors import AdminError
from .group_calls import GroupCalls
from .log_calls import LogCalls
from .model import (
    AclBinding,
    AclBindingFilter,
    AlterConfigOp,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    DelegationToken,
    NewTopic,
    PartitionReassignment,
    Resource,
    Results,
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
    TopicDescription,
    TopicListing,
    TopicPartition,
)
from .network import Network, Versions


class AdminClient(GroupCalls, LogCalls):
    """Reads and changes the topics and configs of a cluster.

    Calls that name several elements return a dict with a value or an AdminError for each. All calls
    raise AdminError if the request as a whole is refused, and ClusterUnreachable if no node answers
    within the timeouts of the configuration.
    """

    @classmethod
    @asynccontextmanager
    async def connect(cls, config: ClientConfig) -> "AsyncIterator[AdminClient]":
        """Make a client that lives as long as the block. It connects when it first needs to."""
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            network = Network(nursery, config)
            try:
                yield cls(network)
            except Exception as error:  # noqa: BLE001 - raised again outside of the nursery, which would wrap it in a group
                failure = error
            finally:
                network.close()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------ reads

    async def list_topics(self, *, include_internal: bool = False) -> dict[str, TopicListing]:
        """Return the topics of the cluster by name, in order."""
        topics = metadata_messages.described(await self._metadata(None), None)
        return {
            name: topic.listing
            for name, topic in sorted(topics.items())
            if isinstance(topic, TopicDescription) and (include_internal or not topic.is_internal)
        }

    async def describe_topics(self, names: Sequence[str]) -> Results[str, TopicDescription]:
        """Describe topics; a name without a topic has the error UNKNOWN_TOPIC_OR_PARTITION."""
        found = metadata_messages.described(await self._metadata(names), names)
        return each_of(names, found)

    async def describe_cluster(self) -> ClusterDescription:
        """Describe the brokers, the controller and all topics, from the Metadata of one node."""
        return metadata_messages.cluster(await self._metadata(None))

    async def all_broker_versions(self) -> Results[int, Versions]:
        """Return the versions of APIs that each broker offers, by its id (K117-5)."""
        view = await self._network.look()
        results: Results[int, Versions] = {}

        async def ask(broker_id: int) -> None:
            try:
                link = await self._network.broker(broker_id)
                await link.greet()
            except PeerUnavailable as error:
                results[broker_id] = AdminError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))
            else:
                results[broker_id] = link.versions

        async with trio.open_nursery() as nursery:
            for broker_id in view.brokers:
                nursery.start_soon(ask, broker_id)
        return dict(sorted(results.items()))

    async def describe_configs(
        self, resources: Sequence[Resource], keys: Sequence[str] | None = None
    ) -> Results[Resource, tuple[ConfigEntry, ...]]:
        """Describe the configs of topics and brokers: those that `keys` names, or all of them."""
        from . import config_messages

        def question(part: Sequence[Resource], _version: int) -> WireStruct:
            return config_messages.question(part, keys)

        return await self._by_node(resources, ApiKey.DESCRIBE_CONFIGS, question, config_messages.described)

    async def describe_acls(self, wanted: AclBindingFilter) -> tuple[AclBinding, ...]:
        """Return the ACLs that a filter matches, in order. Raises AdminError."""
        from . import acl_messages

        answer = await self._network.ask_any(acl_messages.question(wanted), ApiKey.DESCRIBE_ACLS)
        return acl_messages.described(answer)

    # ------------------------------------------------------------------ writes

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Create topics; with `validate_only` the cluster only checks whether it would."""
        from . import topic_messages

        by_name = {topic.name: topic for topic in topics}

        def request(names: Sequence[str], _version: int) -> WireStruct:
            wanted = [by_name[name] for name in names]
            return topic_messages.creation(wanted, timeout_ms=self._timeout_ms, validate_only=validate_only)

        return await self._write(list(by_name), ApiKey.CREATE_TOPICS, request, topic_messages.created)

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create one topic. Raises its AdminError."""
        return value_of((await self.create_topics([topic], validate_only=validate_only))[topic.name])

    async def delete_topics(self, names: Sequence[str], *, validate_only: bool = False) -> Results[str, None]:
        """Delete topics; with `validate_only` the cluster only checks whether it would, which nodes
        of minicontroller can alone.
        """
        from . import topic_messages

        def request(part: Sequence[str], version: int) -> WireStruct:
            return topic_messages.deletion(
                part, timeout_ms=self._timeout_ms, version=version, validate_only=validate_only
            )

        once = list(dict.fromkeys(names))
        if validate_only:
            try:
                await self._check_dry_runs()
            except AdminError as error:
                return dict.fromkeys(once, error)
        return await self._write(once, ApiKey.DELETE_TOPICS, request, topic_messages.deleted)

    async def delete_topic(self, name: str) -> None:
        """Delete one topic. Raises its AdminError."""
        value_of((await self.delete_topics([name]))[name])

    async def create_partitions(self, counts: Mapping[str, int], *, validate_only: bool = False) -> Results[str, None]:
        """Give topics more partitions; `counts` is the new total of each topic."""
        from . import topic_messages

        def request(names: Sequence[str], _version: int) -> WireStruct:
            return topic_messages.growth(counts, names, timeout_ms=self._timeout_ms, validate_only=validate_only)

        return await self._write(list(counts), ApiKey.CREATE_PARTITIONS, request, topic_messages.grown)

    async def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Results[TopicPartition, None]:
        """Begin to move the replicas of partitions to these brokers, or cancel that (None), by
        partition (KIP-455). A success says that it has begun.
        """
        from . import reassignment_messages

        asked: Sequence[TopicPartition] = ()

        def request(part: Sequence[TopicPartition], _version: int) -> WireStruct:
            nonlocal asked
            asked = tuple(part)
            return reassignment_messages.alteration(reassignments, part, timeout_ms=self._timeout_ms)

        return await self._write(
            list(reassignments),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            request,
            lambda answer: reassignment_messages.altered(asked, answer),
        )

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return those of these partitions, or of all, whose replicas are being moved (KIP-455).
        Raises AdminError.
        """
        from . import reassignment_messages

        question = reassignment_messages.question(partitions, timeout_ms=self._timeout_ms)
        return await self._write_one(question, ApiKey.LIST_PARTITION_REASSIGNMENTS, reassignment_messages.listed)

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition] | None = None, *, unclean: bool = False
    ) -> Results[TopicPartition, None]:
        """Elect the preferred leaders of these partitions, or of all that are led by others
        (KIP-460). `unclean` elects replicas that are not in sync where no in-sync one is left, so
        that records are lost.
        """
        from . import election_messages

        def request(part: Sequence[TopicPartition] | None, _version: int = 0) -> WireStruct:
            return election_messages.election(part, unclean=unclean, timeout_ms=self._timeout_ms)

        if partitions is None:
            return await self._write_one(request(None), ApiKey.ELECT_LEADERS, election_messages.all_elected)
        named = list(dict.fromkeys(partitions))
        return await self._write(named, ApiKey.ELECT_LEADERS, request, election_messages.elected)

    async def alter_configs(
        self, changes: Mapping[Resource, Sequence[AlterConfigOp]], *, validate_only: bool = False
    ) -> Results[Resource, None]:
        """Change configs; those that are not named stay as they are (KIP-339)."""
        from . import config_messages

        def request(part: Sequence[Resource], _version: int) -> WireStruct:
            return config_messages.alteration(changes, part, validate_only=validate_only)

        return await self._by_node(list(changes), ApiKey.INCREMENTAL_ALTER_CONFIGS, request, config_messages.altered)

    # ------------------------------------------------------------------ users

    async def describe_user_scram_credentials(
        self, users: Sequence[str] = ()
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        """Return the mechanisms by which users log in, of all users if none is named (KIP-554)."""
        from . import scram_messages

        answer = await self._network.ask_any(scram_messages.question(users), ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
        return scram_messages.described(answer)

    async def alter_user_scram_credentials(
        self, alterations: Mapping[str, Sequence[ScramUpsertion | ScramDeletion]]
    ) -> Results[str, None]:
        """Set and remove passwords, by user (KIP-554). All that is asked for one user is done, or
        nothing of it.
        """
        from . import scram_messages

        def request(users: Sequence[str], _version: int) -> WireStruct:
            return scram_messages.alteration(alterations, users)

        return await self._write(
            list(alterations), ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request, scram_messages.altered
        )

    # ------------------------------------------------------------------ quotas

    async def describe_client_quotas(
        self, components: Sequence[ClientQuotaFilterComponent] = (), *, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Return the quotas of the entities that match all components (KIP-546). `strict` leaves
        out those that have further types.
        """
        from . import quota_messages

        request = quota_messages.question(components, strict=strict)
        return quota_messages.described(await self._network.ask_any(request, ApiKey.DESCRIBE_CLIENT_QUOTAS))

    async def alter_client_quotas(
        self, alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Results[ClientQuotaEntity, None]:
        """Set quotas, or remove them (None), by entity (KIP-546). All that is asked for one entity
        is done, or nothing of it.
        """
        from . import quota_messages

        def request(entities: Sequence[ClientQuotaEntity], _version: int) -> WireStruct:
            return quota_messages.alteration(alterations, entities, validate_only=validate_only)

        return await self._write(list(alterations), ApiKey.ALTER_CLIENT_QUOTAS, request, quota_messages.altered)

    # ------------------------------------------------------------------ ACLs

    async def create_acls(self, acls: Sequence[AclBinding]) -> Results[AclBinding, None]:
        """Add ACLs. One that exists is a success."""
        from . import acl_messages

        return await self._by_place(
            list(dict.fromkeys(acls)), ApiKey.CREATE_ACLS, acl_messages.creation, acl_messages.created
        )

    async def delete_acls(
        self, filters: Sequence[AclBindingFilter]
    ) -> Results[AclBindingFilter, tuple[AclBinding, ...]]:
        """Remove the ACLs that filters match, and return them. An ACL that several filters match
        belongs to the first of them.
        """
        from . import acl_messages

        return await self._by_place(
            list(dict.fromkeys(filters)), ApiKey.DELETE_ACLS, acl_messages.deletion, acl_messages.deleted
        )

    # ------------------------------------------------------------------ delegation tokens

    async def create_delegation_token(
        self, *, owner: str | None = None, renewers: Sequence[str] = (), max_lifetime_ms: int = -1
    ) -> DelegationToken:
        """Create a delegation token (KIP-48) for this client, or for `owner` (KIP-373). Principals
        are of the form `User:alice`. Raises AdminError.
        """
        from . import token_messages

        wanted = token_messages.creation(owner, renewers, max_lifetime_ms)
        return await self._write_one(wanted, ApiKey.CREATE_DELEGATION_TOKEN, partial(token_messages.created, renewers))

    async def describe_delegation_tokens(self, owners: Sequence[str] | None = None) -> tuple[DelegationToken, ...]:
        """Return the delegation tokens that this client may see: those of which one of `owners` is
        owner or renewer, or all. Raises AdminError.
        """
        from . import token_messages

        answer = await self._network.ask_any(token_messages.question(owners), ApiKey.DESCRIBE_DELEGATION_TOKEN)
        return token_messages.described(answer)

    async def renew_delegation_token(self, hmac: bytes, *, renew_period_ms: int = -1) -> int:
        """Let a delegation token expire after a time from now, by default after the cluster's, and
        return when. Raises AdminError.
        """
        from . import token_messages

        wanted = token_messages.renewal(hmac, renew_period_ms)
        return await self._write_one(wanted, ApiKey.RENEW_DELEGATION_TOKEN, token_messages.expiry)

    async def expire_delegation_token(self, hmac: bytes, *, expiry_time_period_ms: int = -1) -> int:
        """Let a delegation token expire after a time from now, or remove it if that is negative.
        Return when it expires. Raises AdminError.
        """
        from . import token_messages

        wanted = token_messages.expiration(hmac, expiry_time_period_ms)
        return await self._write_one(wanted, ApiKey.EXPIRE_DELEGATION_TOKEN, token_messages.expiry)
