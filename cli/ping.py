"""Checks whether a node is ready, over the wire and at the address that clients use.

Rule: a node is ready if it answers and knows the controller, as in the `ready:` line of this
program. For any other server, NotReady tells the reason in a sentence.
"""

import ssl

import msgspec
import trio

from ..network.peer import CLOSED, CLOSED_DURING_LOGIN, PeerConnection, PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..protocol.messages.metadata import MetadataRequest, MetadataResponse
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct
from ..security.credentials import Credentials

CLIENT_ID = "minicontroller-ping"
OLDEST_API_VERSIONS = 0
"""The version of ApiVersions that every broker since 0.10 answers, with the versions it offers."""
OLDEST_METADATA = 1
"""The first version of Metadata that names the controller and takes an empty list of topics."""
NO_TLS = "; if the listener has TLS, name a file with security.protocol by --command-config"
"""The hint in the reason of a node that ends a connection without TLS before it answers."""


class NotReady(Exception):  # noqa: N818 - it is an answer
    """A node is not ready. The message is a sentence with the reason."""


class Pulse(msgspec.Struct, frozen=True):
    """The cluster as a ready node describes it."""

    controller_id: int
    broker_ids: tuple[int, ...]

    def __str__(self) -> str:
        return f"controller {self.controller_id}, brokers {', '.join(map(str, self.broker_ids))}"


async def ping(
    host: str,
    port: int,
    *,
    timeout_seconds: float,
    credentials: Credentials | None = None,
    tls: ssl.SSLContext | None = None,
) -> Pulse:
    """Return the cluster as a ready node describes it. Raises NotReady."""
    async with trio.open_nursery() as nursery:
        logins = () if credentials is None else (credentials,)
        peer = PeerConnection(nursery, host, port, client_id=CLIENT_ID, logins=logins, tls=lambda: tls)
        verdict = await _verdict(peer, timeout_seconds, hint=NO_TLS if tls is None else "")
        nursery.cancel_scope.cancel()
    if isinstance(verdict, NotReady):
        raise verdict  # outside of the nursery, so that it is not wrapped in a group
    return verdict


async def _verdict(peer: PeerConnection, timeout_seconds: float, *, hint: str) -> Pulse | NotReady:
    try:
        with trio.fail_after(timeout_seconds):
            return await _feel(peer)
    except NotReady as reason:
        return reason
    except PeerUnavailable as error:
        return NotReady(f"{error}{hint if str(error).endswith((CLOSED, CLOSED_DURING_LOGIN)) else ''}.")
    except trio.TooSlowError:
        return NotReady(f"{peer} does not answer within {timeout_seconds:g} seconds.")


async def _feel(peer: PeerConnection) -> Pulse:
    metadata = await _ask(peer, ApiKey.METADATA, await _metadata_version(peer), MetadataRequest(topics=[]))
    assert isinstance(metadata, MetadataResponse)
    brokers = tuple(sorted(broker.node_id for broker in metadata.brokers))
    if metadata.controller_id not in brokers:
        raise NotReady(f"{peer} knows no controller.")
    return Pulse(metadata.controller_id, brokers)


async def _metadata_version(peer: PeerConnection) -> int:
    answer = await _ask(peer, ApiKey.API_VERSIONS, OLDEST_API_VERSIONS, ApiVersionsRequest())
    assert isinstance(answer, ApiVersionsResponse)
    if answer.error_code != ErrorCode.NONE:
        raise NotReady(f"{peer} answers ApiVersions with error {answer.error_code}.")
    newest = max((row.max_version for row in answer.api_keys if row.api_key == ApiKey.METADATA), default=-1)
    if newest < OLDEST_METADATA:
        raise NotReady(f"{peer} does not serve Metadata from version {OLDEST_METADATA} on.")
    return min(newest, KAFKA[ApiKey.METADATA].max_version)


async def _ask(peer: PeerConnection, key: ApiKey, version: int, message: WireStruct) -> WireStruct:
    return await peer.request(key, version, message)
