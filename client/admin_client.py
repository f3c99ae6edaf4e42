"""The administrative client (KIP-117), made of the families of its calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .acls import AclCalls
from .cluster import ClusterCalls
from .configs import ConfigCalls
from .configuration import ClientConfig
from .groups import GroupCalls
from .log_dirs import LogDirCalls
from .partitions import PartitionCalls
from .quotas import QuotaCalls
from .records import RecordCalls
from .tokens import TokenCalls
from .topics import TopicCalls
from .users import UserCalls


class AdminClient(
    TopicCalls,
    ConfigCalls,
    AclCalls,
    GroupCalls,
    RecordCalls,
    LogDirCalls,
    QuotaCalls,
    TokenCalls,
    UserCalls,
    PartitionCalls,
    ClusterCalls,
):
    """Reads and changes what a cluster knows of topics, configs, groups, users and brokers.

    Calls that name several elements return a dict with a value or an AdminError for each. All calls
    raise AdminError if the request as a whole is refused, and ClusterUnreachable if no node answers
    within the timeouts of the configuration.
    """

    @classmethod
    @asynccontextmanager
    async def connect(cls, config: ClientConfig) -> "AsyncIterator[AdminClient]":
        """Make a client that lives as long as the block. It connects when it first needs to."""
        import trio

        from .batches import Batches
        from .network import Network

        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            network = Network(nursery, config)
            try:
                yield cls(Batches(network))
            except Exception as error:  # noqa: BLE001 - raised again outside of the nursery, which would wrap it in a group
                failure = error
            finally:
                network.close()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
