"""One request of each API whose changes have no state of their own, and what its answer says."""

from collections.abc import Awaitable, Callable
from typing import Any

from minicontroller.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from minicontroller.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from minicontroller.protocol.messages.create_acls import CreateAclsRequest
from minicontroller.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from minicontroller.protocol.messages.delete_acls import DeleteAclsRequest
from minicontroller.protocol.messages.delete_groups import DeleteGroupsRequest
from minicontroller.protocol.messages.elect_leaders import ElectionType, ElectLeadersRequest, TopicPartitions
from minicontroller.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from minicontroller.protocol.messages.offset_commit import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from minicontroller.protocol.messages.offset_delete import OffsetDeletePartition, OffsetDeleteRequest, OffsetDeleteTopic
from minicontroller.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization
from tests.handlers.acl_requests import acl, matching
from tests.handlers.client_quotas import MUTATION, entry
from tests.handlers.ruling import PATIENT_MS, Ruling, wanted
from tests.handlers.test_alter_replica_log_dirs import moving
from tests.handlers.test_alter_user_scram_credentials import put
from tests.handlers.test_elect_leaders import Elections

SETTINGS = {"delegation.token.secret.key": "the-key-of-the-tokens"}
NO_TEXT = None

Row = tuple[int, str | None]
"""The code and the text of an element; no text where the API has none."""
Asking = Callable[["Administrator"], Awaitable[list[Row]]]


class Administrator:
    """A client with a name, in whose cluster there is something of everything."""

    def __init__(self, cluster: Ruling, principal: str = "User:alice", *, may: bool = True) -> None:
        """Ask in a cluster as a super user, or as somebody who may do nothing."""
        self.cluster = cluster
        self._super_users = frozenset({principal}) if may else frozenset[str]()
        self.principal = principal
        self.token = b""

    async def prepare(self) -> None:
        """Make what the requests need, before any rule is in force."""
        await self.cluster.make(wanted("__consumer_offsets", placed={0: [1]}), wanted("t", placed={0: [2, 3]}))
        assert await self.create_acls("old") == [(0, "")]
        assert await self.commit() == [(0, NO_TEXT)]
        self.token = (await self._ask(CreateDelegationTokenRequest(), 3)).hmac
        assert self.token
        elections = Elections(self.cluster)
        await elections.live(1, 3)
        await elections.live(1, 2, 3)
        await elections.in_sync(0, 3, 2)
        assert self.cluster.topic("t").partitions[0].leader == 3

    async def _ask(self, request: Any, version: int) -> Any:
        authorization = Authorization(AclRules(AclIndex()), self._super_users)
        return await self.cluster.ask(request, version, principal=self.principal, authorization=authorization)

    async def create_acls(self, *names: str) -> list[Row]:
        answer = await self._ask(CreateAclsRequest(creations=[acl(name) for name in names or ("new",)]), 3)
        return [(row.error_code, row.error_message) for row in answer.results]

    async def delete_acls(self) -> list[Row]:
        answer = await self._ask(DeleteAclsRequest(filters=[matching("old")]), 3)
        return [(row.error_code, row.error_message) for each in answer.filter_results for row in each.matching_acls]

    async def quotas(self, *, validate_only: bool = False) -> list[Row]:
        entries = [entry({"user": "bob", "client-id": None}, {MUTATION: 5.0})]
        answer = await self._ask(AlterClientQuotasRequest(entries=entries, validate_only=validate_only), 1)
        return [(row.error_code, row.error_message) for row in answer.entries]

    async def users(self) -> list[Row]:
        answer = await self._ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[put("bob")]), 0)
        return [(row.error_code, row.error_message) for row in answer.results]

    async def create_token(self) -> list[Row]:
        return [((await self._ask(CreateDelegationTokenRequest(), 3)).error_code, NO_TEXT)]

    async def renew_token(self) -> list[Row]:
        return [
            ((await self._ask(RenewDelegationTokenRequest(hmac=self.token, renew_period_ms=-1), 2)).error_code, NO_TEXT)
        ]

    async def expire_token(self) -> list[Row]:
        request = ExpireDelegationTokenRequest(hmac=self.token, expiry_time_period_ms=-1)
        return [((await self._ask(request, 2)).error_code, NO_TEXT)]

    async def commit(self) -> list[Row]:
        parts = [OffsetCommitPartition(partition_index=0, committed_offset=5)]
        request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitTopic(name="t", partitions=parts)])
        answer = await self._ask(request, 9)
        return [(row.error_code, NO_TEXT) for each in answer.topics for row in each.partitions]

    async def delete_offsets(self) -> list[Row]:
        parts = [OffsetDeletePartition(partition_index=0)]
        request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteTopic(name="t", partitions=parts)])
        answer = await self._ask(request, 0)
        return [(answer.error_code or answer.topics[0].partitions[0].error_code, NO_TEXT)]

    async def delete_group(self) -> list[Row]:
        answer = await self._ask(DeleteGroupsRequest(groups_names=["g"]), 2)
        return [(row.error_code, NO_TEXT) for row in answer.results]

    async def elect(self) -> list[Row]:
        topics = [TopicPartitions(topic="t", partitions=[0])]
        request = ElectLeadersRequest(
            election_type=ElectionType.PREFERRED, topic_partitions=topics, timeout_ms=PATIENT_MS
        )
        answer = await self._ask(request, 2)
        return [
            (row.error_code, row.error_message)
            for each in answer.replica_election_results
            for row in each.partition_result
        ]

    async def move(self) -> list[Row]:
        path = self.cluster.node.data.logs.paths[0]
        answer = await self._ask(moving(path, 0, name="__consumer_offsets"), 2)
        return [(row.error_code, NO_TEXT) for each in answer.results for row in each.partitions]


ALL: dict[str, tuple[str, str, Asking]] = {
    "create_acls": ("acl", "Topic:LITERAL:new", Administrator.create_acls),
    "delete_acls": ("acl", "Topic:LITERAL:old", Administrator.delete_acls),
    "alter_client_quotas": ("client_quota", "user=bob,client-id=<default>", Administrator.quotas),
    "alter_user_scram_credentials": ("user", "bob", Administrator.users),
    "create_delegation_token": ("token", "", Administrator.create_token),
    "renew_delegation_token": ("token", "", Administrator.renew_token),
    "elect_leaders": ("topic", "t", Administrator.elect),
    "alter_replica_log_dirs": ("replica", "__consumer_offsets", Administrator.move),
    "offset_commit": ("group", "g", Administrator.commit),
    "offset_delete": ("group", "g", Administrator.delete_offsets),
    "delete_groups": ("group", "g", Administrator.delete_group),
    "expire_delegation_token": ("token", "", Administrator.expire_token),
}
"""By operation: the kind and name of what the request changes (no name for tokens, whose ids are
random), and the request.
"""
