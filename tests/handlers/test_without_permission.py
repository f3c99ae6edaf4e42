"""Nobody changes anything without a permission, by any request of any API in any version."""

import logging
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from minicontroller.admin.spec import Sender
from minicontroller.process.settings.log_levels import levels
from minicontroller.protocol.acls import CLUSTER_NAME
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.protocol.instances import samples
from tests.support.specs import APIS

ALICE, ROOT = "User:alice", "User:root"
AUTHORIZATION = Authorization(AclRules(AclIndex()), frozenset({ROOT}))
TOPICS = ("orders", "audit")
COORDINATORS = wanted("__consumer_offsets", placed={0: [1]})
LOGGER = "minicontroller.answer"
VALUES: dict[str, Sequence[object]] = {
    "config_operation": (0, 1),
    "committed_offset": (5,),
    "count": (7,),
    "entity_name": ("alice",),
    "entity_type": ("user", "client-id"),
    "generation_id_or_member_epoch": (-1,),
    "group_id": ("team",),
    "host": ("*",),
    "iterations": (4096,),
    "key": ("controller_mutation_rate",),
    "mechanism": (1, 2),
    "member_id": ("",),
    "name": (*TOPICS, "another", "alice", "retention.ms", LOGGER),
    "num_partitions": (2,),
    "operation": (3, 12),
    "partition_index": (0,),
    "permission_type": (3,),
    "principal": (ALICE,),
    "replication_factor": (1,),
    "resource_name": (*TOPICS, "1", CLUSTER_NAME),
    "resource_pattern_type": (3, 4),
    "resource_type": (2, 4, 8),
    "timeout_ms": (1000,),
    "validate_only": (False,),
    "value": ("100", 100.0, "INFO", "DEBUG"),
}
"""The values of fields with which requests of clients can succeed."""
TEXTS = (*TOPICS, "1", "", ALICE, "User", "alice")
NUMBERS = (-1, 0, 1, 2, 3)
REQUESTS = 20
"""The requests of each version of an API."""
UNCHANGED = {
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "the requests name no valid replicas, or end moves that do not exist",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "no directory of the node has one of these names",
    ApiKey.CREATE_DELEGATION_TOKEN: "the cluster has no secret key for tokens",
    ApiKey.DELETE_ACLS: "there are no ACLs",
    ApiKey.DELETE_GROUPS: "there are no groups",
    ApiKey.DELETE_RECORDS: "there are no records",
    ApiKey.ELECT_LEADERS: "the leaders are the preferred ones",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "the cluster has no secret key for tokens",
    ApiKey.OFFSET_DELETE: "there are no groups",
    ApiKey.RENEW_DELEGATION_TOKEN: "the cluster has no secret key for tokens",
}
"""The APIs whose requests here change nothing though a super user sends them, and why."""
CHANGING = ({key for key, spec in APIS.items() if spec.changes} | {ApiKey.METADATA}) - UNCHANGED.keys()
KEYS = [key for key, spec in APIS.items() if spec.sender is not Sender.ANYONE]


def aimed(value: Any, dice: Random, field: str = "") -> Any:
    """A request with the form of another one that names what is there."""
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name != "unknown_tags"}
        return msgspec.structs.replace(value, **{name: aimed(each, dice, name) for name, each in fields.items()})
    if isinstance(value, list):
        few = (0, 0, 1) if field in ("assignments", "configs") else (0, 1, 1, 3)
        return [aimed(each, dice) for each in value[: dice.choice(few)]]
    likely = [each for each in VALUES.get(field, ()) if type(each) is type(value)]
    if likely:
        return dice.choice(likely)
    if isinstance(value, str):
        return dice.choice(TEXTS)
    return dice.choice(NUMBERS) if isinstance(value, int) and not isinstance(value, bool) else value


async def answered(cluster: Ruling, key: ApiKey, principal: str, **how: Any) -> None:
    """Ask everything that a client could ask by this API."""
    dice, client = Random(int(key)), cluster.client(principal=principal, authorization=AUTHORIZATION, **how)
    api = KAFKA[key]
    for version in range(api.min_version, api.max_version + 1):
        for sample in samples(api.request, version, REQUESTS):
            request = aimed(sample, dice)
            try:
                await client.ask(request, version)
            except ProtocolError:
                continue


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    """A super user may change the levels of this process's loggers, too."""
    logger = logging.getLogger(LOGGER)
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
async def test_nobody_changes_anything_without_a_permission(key: ApiKey, autojump_clock: object) -> None:
    """Neither at the clients' listener nor at that of the nodes: the cluster and the levels of
    loggers stay as they are, by requests with which a super user changes them.
    """
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, *map(wanted, TOPICS))
        before = cluster.image, levels()
        for inter_broker in (False, True):
            await answered(cluster, key, ALICE, inter_broker=inter_broker)
            assert (cluster.image, levels()) == before
        if key in CHANGING:
            await answered(cluster, key, ROOT)
            assert cluster.image != before[0], "let VALUES have what this API needs, or say in UNCHANGED why it cannot"
