"""Nodes of one cluster prove themselves to each other: both know the secret that lies in the
cluster's tree, and no stranger does.

Rule: the node that is connected to proves itself first; who connects says nothing of anybody's
before. A proof covers who connects to whom (cluster, ids and address), a nonce of either side and
which of the two speaks. So none can be shown a second time, shown back to whoever made it, or
passed on by somebody who listens at another address. Texts never repeat a token. What is proved is
who is at the two ends when a connection begins; what is said on it afterwards is not encrypted.
"""

import hmac
import secrets
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from ...protocol.errors import ProtocolError
from .credentials import Tokens
from .sasl import Challenge, ProvedNode, Rejected, SaslOutcome

MECHANISM = "MINICONTROLLER-NODE"
"""As SASL names it. It is offered to nobody: nodes know it."""
VERSION = 1
NONCE_BYTES = 32
MAX_TOKEN_BYTES = 2048

Shape = TypeVar("Shape")


class NodeHello(msgspec.Struct, frozen=True):
    """First message of a proof: which node connects, and to which node it believes to speak."""

    version: int
    cluster: str
    node: int
    to: int
    address: str
    """host:port, where it connected to."""
    nonce: str


class NodeReply(msgspec.Struct, frozen=True):
    """Second message of a proof: the node that was connected to proves itself."""

    nonce: str
    proof: str


class NodeProof(msgspec.Struct, frozen=True):
    """Third message of a proof: the node that connects proves itself."""

    proof: str


CONNECTING, LISTENING = "connecting", "listening"
HELLO = msgspec.json.Decoder(NodeHello)
REPLY = msgspec.json.Decoder(NodeReply)
PROOF = msgspec.json.Decoder(NodeProof)
encode = msgspec.json.encode


class Membership:
    """The identity and the secret with which a node proves that it belongs to the cluster."""

    def __init__(self, cluster_id: str, node: int, secret: Callable[[], bytes | None]) -> None:
        """Make the membership of a node; `secret` returns the present secret, None while there is
        none.
        """
        self.cluster_id = cluster_id
        self.node = node
        self.secret = secret
        self.addresses: Collection[str] = ()
        """host:port of each listener as others are told of it; known once the listeners are bound.
        """

    def credentials(self, node: int, address: str) -> "NodeCredentials":
        """Return credentials for a connection to this node at this address."""
        return NodeCredentials(self, node, address)

    def exchange(self) -> "NodeExchange":
        """Begin the proof of an accepted connection."""
        return NodeExchange(self)


class NodeCredentials:
    """The connecting side of a proof: unlike a login it makes the other side prove itself, too."""

    mechanism = MECHANISM

    def __init__(self, membership: Membership, node: int, address: str) -> None:
        self._membership = membership
        self._node = node
        self._address = address

    @property
    def username(self) -> str:
        return f"node {self._membership.node}"

    @property
    def basis(self) -> object:
        return self._membership.secret()

    def exchange(self) -> Tokens:
        member = self._membership
        secret = member.secret()
        if secret is None:
            raise ProtocolError("this node cannot prove itself: the cluster's tree holds no secret that it can read")
        nonce = secrets.token_hex(NONCE_BYTES)
        hello = NodeHello(VERSION, member.cluster_id, member.node, self._node, self._address, nonce)
        answer = _read(REPLY, (yield encode(hello)))
        if answer is None or not _same(answer.proof, _proof(secret, LISTENING, hello, answer.nonce)):
            raise ProtocolError(f"it does not prove that it is node {self._node} of this cluster")
        yield encode(NodeProof(_proof(secret, CONNECTING, hello, answer.nonce)))


class NodeExchange:
    """The accepting side of a proof."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._expected: str | None = None
        self._secret: bytes | None = None
        """By which the proof began."""
        self._node = -1

    def step(self, token: bytes) -> SaslOutcome:
        return self._answer(token) if self._expected is None else self._judge(token)

    def _answer(self, token: bytes) -> SaslOutcome:
        hello = _read(HELLO, token)
        if hello is None or hello.version != VERSION:
            return Rejected(f"This node speaks version {VERSION} of the proof between nodes.")
        member, secret = self._membership, self._membership.secret()
        if (hello.cluster, hello.to) != (member.cluster_id, member.node) or hello.node == member.node:
            return Rejected(f"This is node {member.node} of cluster {member.cluster_id}, and another one was meant.")
        if hello.address not in member.addresses:
            return Rejected("This node is not to be reached at the address that was meant.")
        if secret is None:
            return Rejected("The cluster's tree holds no secret that this node can read.")
        nonce = secrets.token_hex(NONCE_BYTES)
        self._node, self._secret, self._expected = hello.node, secret, _proof(secret, CONNECTING, hello, nonce)
        return Challenge(encode(NodeReply(nonce, _proof(secret, LISTENING, hello, nonce))))

    def _judge(self, token: bytes) -> SaslOutcome:
        proof = _read(PROOF, token)
        if proof is None or not _same(proof.proof, self._expected or ""):
            return Rejected("This does not prove a node of the cluster.")
        if self._membership.secret() != self._secret:
            return Rejected("The nodes have agreed on another secret since this proof began.")
        return ProvedNode(self._node)


def _proof(secret: bytes, role: str, hello: NodeHello, nonce: str) -> str:
    """Compute the proof of one role in one conversation."""
    return hmac.digest(secret, encode((MECHANISM, role, hello, nonce)), "sha256").hex()


def _same(shown: str, expected: str) -> bool:
    return hmac.compare_digest(shown.encode(), expected.encode())


def _read(reader: "msgspec.json.Decoder[Shape]", token: bytes) -> Shape | None:
    if len(token) > MAX_TOKEN_BYTES:
        return None
    try:
        return reader.decode(token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
