"""Which access list a new znode gets when znodes are protected (zookeeper.set.acl).

Rule: as in Kafka, the creator has all rights and everybody may read, except that nobody else may
read credentials. A process that shares the cluster must authenticate to ZooKeeper as the same
identity.
"""

from ...store.jute import ALL, OPEN, READ, encode_access
from .membership import MEMBERSHIP

CREATOR_AND_READERS = encode_access([(ALL, "auth", ""), (READ, "world", "anyone")])
CREATOR_ONLY = encode_access([(ALL, "auth", "")])

OPEN_ROOT = "/consumers"
"""Old consumers write their own znodes below this path."""
WITH_CREDENTIALS = ("/config/users", "/config/brokers", "/delegation_token/tokens", MEMBERSHIP)


def protected(path: str) -> bytes:
    """Return the encoded access list of a new znode at `path`, which is without the chroot."""
    if path == OPEN_ROOT:
        return OPEN
    return CREATOR_ONLY if path.startswith(WITH_CREDENTIALS) else CREATOR_AND_READERS
