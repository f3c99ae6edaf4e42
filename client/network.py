"""The connections of a client: to bootstrap servers first, then to the brokers that Metadata names.

Rule: every request is in the highest version that both ends speak, by the node's own ApiVersions; a
request that the node does not offer is `AdminError(UNSUPPORTED_VERSION)` and is not sent. Whatever
a node answers, hostile bytes included, is a message or `PeerUnavailable`.
"""

from collections.abc import Sequence

import msgspec
import trio

from ..network.peer import CLOSED, CLOSED_DURING_LOGIN, PeerConnection, PeerUnavailable
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.errors import ProtocolError
from ..protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct
from ..version import __version__
from .configuration import Address, ClientConfig
from .errors import AdminError, ClusterUnreachable

SOFTWARE = "minicontroller"
STAGGER_SECONDS = 0.3
"""The head start of a bootstrap address before the next one is tried beside it, as in RFC 8305
("happy eyeballs").
"""
NAMED_SINCE, OLDEST = 3, 0
"""Versions of ApiVersions. Version 3 has the client's name (KIP-511); brokers before Kafka 2.4
answer it in version 0, which cannot be read as 3, so that they are asked again in 0.
"""

NO_LOGIN = "; if the listener requires authentication, set security.protocol and sasl.mechanism"
"""The hint in the error of a node that answers ApiVersions and nothing else."""
NO_TLS = "; if the listener has TLS, set security.protocol to SSL or SASL_SSL"
"""The hint in the error of a node that ends a connection without TLS before it answers."""

Versions = dict[int, tuple[int, int]]


class BrokerLink:
    """The connection to one node, and which versions the node speaks."""

    def __init__(self, peer: PeerConnection, address: Address, config: ClientConfig) -> None:
        self.address = address
        self.versions: Versions = {}
        self.features: frozenset[str] = frozenset()
        """The names of the features that the node supports."""
        self._peer = peer
        self._config = config
        self._greeting = trio.Lock()

    async def ask(self, message: WireStruct, key: ApiKey) -> WireStruct:
        """Ask the node. Raises AdminError if it does not offer the request, PeerUnavailable if it
        does not answer in time or at all.
        """
        await self.greet()
        version = self.version_of(key)
        try:
            return await self._ask_in(version, message, key)
        except ProtocolError as error:
            raise AdminError(ErrorCode.INVALID_REQUEST, f"this cannot be sent in a request: {error}") from error

    def version_of(self, key: ApiKey) -> int:
        row = KAFKA[key]
        oldest, newest = self.versions.get(key, (1, 0))
        version = min(newest, row.max_version)
        if version < max(oldest, row.min_version):
            offered = "the node has none" if newest < oldest else f"the node has {oldest} to {newest}"
            text = f"{self.address} and this client have no version of {row.name} in common: {offered}"
            raise AdminError(ErrorCode.UNSUPPORTED_VERSION, text)
        return version

    async def greet(self) -> None:
        """Learn, once, which versions the node speaks."""
        async with self._greeting:
            if not self.versions:
                answer = await self._api_versions()
                self.versions = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
                self.features = frozenset(row.name for row in answer.supported_features)

    async def _api_versions(self) -> ApiVersionsResponse:
        asked = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version=__version__)
        try:
            answer = await self._ask_in(NAMED_SINCE, asked, ApiKey.API_VERSIONS)
        except PeerUnavailable as error:
            if not isinstance(error.__cause__, ProtocolError) or not error.in_doubt:
                raise
            answer = await self._ask_in(OLDEST, asked, ApiKey.API_VERSIONS)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code != ErrorCode.NONE:
            text = f"{self.address} answers ApiVersions with {AdminError(answer.error_code).name}"
            raise PeerUnavailable(text, in_doubt=False)
        return answer

    async def _ask_in(self, version: int, message: WireStruct, key: ApiKey) -> WireStruct:
        with trio.move_on_after(self._config.request_timeout_seconds):
            return await self._peer.request(key, version, message)
        seconds = f"{self._config.request_timeout_seconds:g}"
        raise PeerUnavailable(f"{self.address} does not answer within {seconds} seconds", in_doubt=True)

    def close(self) -> None:
        self._peer.close()


class View(msgspec.Struct, frozen=True):
    """The brokers and the controller by the last Metadata."""

    brokers: dict[int, MetadataResponseBroker]
    controller_id: int


class Network:
    """The connections of one client, made when they are needed."""

    def __init__(self, nursery: trio.Nursery, config: ClientConfig) -> None:
        self.config = config
        self._nursery = nursery
        self._links: dict[Address, BrokerLink] = {}
        self._first: BrokerLink | None = None
        self._silent: Address | None = None
        """The address that did not answer last, which is tried last."""
        self._view: View | None = None

    async def ask_any(self, message: WireStruct, key: ApiKey) -> WireStruct:
        """Send a read, which may be repeated, to any node that answers. Raises AdminError,
        ClusterUnreachable.
        """
        last: PeerUnavailable | None = None
        for _ in range(2):  # the one that answered first may have gone since
            link = await self._reach()
            try:
                return await link.ask(message, key)
            except PeerUnavailable as error:
                last = error
                self._first, self._silent = None, link.address
        raise ClusterUnreachable(f"{last}{NO_LOGIN if self.config.credentials is None else ''}.")

    async def controller(self) -> BrokerLink | None:
        view = self._view or await self.look()
        broker = view.brokers.get(view.controller_id)
        return None if broker is None else self.link(Address(broker.host, broker.port))

    async def broker(self, broker_id: int) -> BrokerLink:
        """Return the link to a broker. Raises AdminError if it is not alive."""
        view = self._view or await self.look()
        broker = view.brokers.get(broker_id)
        if broker is None:
            alive = ", ".join(map(str, sorted(view.brokers))) or "none"
            raise AdminError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not registered; registered are: {alive}"
            )
        return self.link(Address(broker.host, broker.port))

    async def look(self) -> View:
        answer = await self.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False), ApiKey.METADATA)
        assert isinstance(answer, MetadataResponse)
        return self.learn(answer)

    def learn(self, metadata: MetadataResponse) -> View:
        self._view = View({broker.node_id: broker for broker in metadata.brokers}, metadata.controller_id)
        return self._view

    def forget(self) -> None:
        """Forget the brokers and the controller, which may have changed."""
        self._view = None

    def link(self, address: Address) -> BrokerLink:
        known = self._links.get(address)
        if known is None:
            peer = PeerConnection(
                self._nursery,
                address.host,
                address.port,
                client_id=self.config.client_id,
                logins=() if self.config.credentials is None else (self.config.credentials,),
                tls=lambda: self.config.tls,
            )
            known = self._links[address] = BrokerLink(peer, address, self.config)
        return known

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    # ------------------------------------------------------------------ the first contact

    async def _reach(self) -> BrokerLink:
        if self._first is None:
            known = [] if self._view is None else [Address(b.host, b.port) for b in self._view.brokers.values()]
            addresses = dict.fromkeys((*self.config.bootstrap_servers, *known))
            self._first = await self._race(sorted(addresses, key=lambda each: each == self._silent))
        return self._first

    async def _race(self, addresses: Sequence[Address]) -> BrokerLink:
        """Return the link to the first node that answers; an address is tried when those before it
        have failed or are slow.
        """
        reasons: dict[Address, str] = {}
        winners: list[BrokerLink] = []

        async def attempt(address: Address, failed: trio.Event, all_of_them: trio.CancelScope) -> None:
            link = self.link(address)
            try:
                await link.greet()
            except PeerUnavailable as error:
                may_have_tls = self.config.tls is None and str(error).endswith((CLOSED, CLOSED_DURING_LOGIN))
                reasons[address] = f"{error}{NO_TLS if may_have_tls else ''}"
                failed.set()
            else:
                winners.append(link)
                all_of_them.cancel()

        async with trio.open_nursery() as nursery:
            for address in addresses:
                failed = trio.Event()
                nursery.start_soon(attempt, address, failed, nursery.cancel_scope)
                with trio.move_on_after(STAGGER_SECONDS):
                    await failed.wait()
        if winners:
            return winners[0]
        raise ClusterUnreachable("; ".join(reasons[address] for address in addresses) + ".")
