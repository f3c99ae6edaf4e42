"""`minicontroller ping` checks whether a node is ready, at the address that clients use.

Rule: a node is ready if it answers and knows the controller, as in the `ready:` line of this
program. For any other server, NotReady gives the reason in a sentence.
"""

import logging
import os
import ssl
from functools import partial
from pathlib import Path

import click
import msgspec
import trio

from ..client.configuration import load_client_config
from ..cluster.errors import ConfigurationError
from ..network.peer import CLOSED, CLOSED_DURING_LOGIN, PeerConnection, PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..protocol.messages.metadata import MetadataRequest, MetadataResponse
from ..protocol.registry import KAFKA
from ..security.credentials import Credentials, PlainCredentials
from ..text import escaped
from .typed import Seconds, parse_address, read_text

CLIENT_ID = "minicontroller-ping"
OLDEST_API_VERSIONS = 0
"""The version of ApiVersions that every broker since 0.10 answers, with the versions it offers."""
OLDEST_METADATA = 1
"""The first version of Metadata that names the controller and takes an empty list of topics."""
NO_TLS = "; if the listener has TLS, name a file with security.protocol by --command-config"
"""The hint in the reason of a node that ends a connection without TLS before it answers."""
VARIABLE = "MINICONTROLLER_PASSWORD"


class NotReady(Exception):  # noqa: N818 - it is an answer
    """A node is not ready. The message is a sentence with the reason."""


class Pulse(msgspec.Struct, frozen=True):
    controller_id: int
    broker_ids: tuple[int, ...]

    def __str__(self) -> str:
        return f"controller {self.controller_id}, brokers {', '.join(map(str, self.broker_ids))}"


@click.command()
@click.argument("address", metavar="HOST:PORT", callback=parse_address)
@click.option("--timeout", default=5.0, show_default=True, type=Seconds(), help="Seconds to wait for the answer.")
@click.option("--user", help=f"User for SASL/PLAIN; the password is in {VARIABLE}.")
@click.option(
    "--command-config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file of a client, for TLS and for other logins.",
)
def ping(address: tuple[str, int], timeout: float, user: str | None, file: Path | None) -> None:
    """Check whether the node at HOST:PORT is ready: it answers and knows the controller. Exits with
    0 if it is ready, or else 1.
    """
    logging.getLogger("minicontroller").addHandler(logging.NullHandler())  # the answer is one line
    host, port = address
    if user is not None and file is not None:
        raise click.UsageError("--user and --command-config exclude each other: the file names the user.")
    try:
        credentials, tls = _login(user, file)
        pulse = trio.run(partial(_ping, host, port, timeout_seconds=timeout, credentials=credentials, tls=tls))
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    except NotReady as reason:
        from .admin_options import begun

        raise click.ClickException(begun(str(reason))) from None
    click.echo(f"ready: {pulse}")


def _login(user: str | None, file: Path | None) -> tuple[Credentials | None, ssl.SSLContext | None]:
    if file is not None:
        config = load_client_config(read_text(file), str(file), bootstrap="localhost:9092", default_bootstrap="")
        for warning in config.warnings:
            click.echo(f"Warning: {escaped(warning)}", err=True)
        return config.credentials, config.tls
    return (None if user is None else PlainCredentials(user, os.environ.get(VARIABLE, ""))), None


async def _ping(
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
            return await _describe(peer)
    except NotReady as reason:
        return reason
    except PeerUnavailable as error:
        return NotReady(f"{error}{hint if str(error).endswith((CLOSED, CLOSED_DURING_LOGIN)) else ''}.")
    except trio.TooSlowError:
        return NotReady(f"{peer} does not answer within {timeout_seconds:g} seconds.")


async def _describe(peer: PeerConnection) -> Pulse:
    metadata = await peer.request(ApiKey.METADATA, await _metadata_version(peer), MetadataRequest(topics=[]))
    assert isinstance(metadata, MetadataResponse)
    brokers = tuple(sorted(broker.node_id for broker in metadata.brokers))
    if metadata.controller_id not in brokers:
        raise NotReady(f"{peer} knows no controller.")
    return Pulse(metadata.controller_id, brokers)


async def _metadata_version(peer: PeerConnection) -> int:
    answer = await peer.request(ApiKey.API_VERSIONS, OLDEST_API_VERSIONS, ApiVersionsRequest())
    assert isinstance(answer, ApiVersionsResponse)
    if answer.error_code != ErrorCode.NONE:
        raise NotReady(f"{peer} answers ApiVersions with error {answer.error_code}.")
    newest = max((row.max_version for row in answer.api_keys if row.api_key == ApiKey.METADATA), default=-1)
    if newest < OLDEST_METADATA:
        raise NotReady(f"{peer} does not serve Metadata from version {OLDEST_METADATA} on.")
    return min(newest, KAFKA[ApiKey.METADATA].max_version)
