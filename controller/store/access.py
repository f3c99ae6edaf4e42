"""Who may do what with a znode that we create, as Kafka decides it (zookeeper.set.acl).

Rule: open to all unless asked otherwise; then all rights to whoever creates it, and the world may
read - except where credentials lie. Another process must authenticate to ZooKeeper as the same
identity to share the cluster.
"""

from collections.abc import Callable

from ..znodes.membership import MEMBERSHIP
from .jute import encode_access

READ, ALL = 1, 31

OPEN = encode_access([(ALL, "world", "anyone")])
CREATOR_AND_READERS = encode_access([(ALL, "auth", ""), (READ, "world", "anyone")])
CREATOR_ONLY = encode_access([(ALL, "auth", "")])

OPEN_ROOT = "/consumers"
"""Old consumers write their own znodes below it."""
WITH_CREDENTIALS = ("/config/users", "/config/brokers", "/delegation_token/tokens", MEMBERSHIP)


def access_list(*, set_acl: bool) -> Callable[[str], bytes]:
    """Make a function that returns the encoded access list of a new znode by its path within the
    chroot.
    """
    return protected if set_acl else unprotected


def unprotected(_: str) -> bytes:
    return OPEN


def protected(path: str) -> bytes:
    if path == OPEN_ROOT:
        return OPEN
    return CREATOR_ONLY if path.startswith(WITH_CREDENTIALS) else CREATOR_AND_READERS
