"""The SASL mechanism by which nodes of one cluster prove to each other that they belong to it: both
know the secret in the cluster's znodes.

The accepting node proves itself first, so that the connecting node reveals no client's name or
password to anybody else. A proof is an HMAC over the cluster, both node ids, the address that was
connected to, a nonce of each side, and the side that proves. It therefore cannot be replayed,
reflected to its sender, or relayed by a server at another address. Whoever fails gets the same
text, whatever the reason. The proof authenticates the two ends when the connection begins; it
encrypts nothing.
"""

import hmac
import secrets
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from ..protocol.errors import ProtocolError
from .credentials import Tokens
from .sasl import Challenge, ProvedNode, Rejected, SaslOutcome

MECHANISM = "MINICONTROLLER-NODE"
"""Its name in SASL. SaslHandshake does not list it; nodes know it."""
VERSION = 1
NONCE_BYTES = 32
MAX_TOKEN_BYTES = 2048

Shape = TypeVar("Shape")


class NodeHello(msgspec.Struct, frozen=True):
    """The first message of a proof: which node connects, and to which node."""

    version: int
    cluster: str
    node: int
    to: int
    address: str
    """host:port to which it connected."""
    nonce: str


class NodeReply(msgspec.Struct, frozen=True):
    """The second message of a proof, by which the accepting node proves itself."""

    nonce: str
    proof: str


class NodeProof(msgspec.Struct, frozen=True):
    """The third message of a proof, by which the connecting node proves itself."""

    proof: str


CONNECTING, LISTENING = "connecting", "listening"
HELLO = msgspec.json.Decoder(NodeHello)
REPLY = msgspec.json.Decoder(NodeReply)
PROOF = msgspec.json.Decoder(NodeProof)
encode = msgspec.json.encode


class Membership:
    """The identity and the secret with which a node proves that it belongs to the cluster."""

    def __init__(self, cluster_id: str, node: int, secret: Callable[[], bytes | None]) -> None:
        """Make the membership of a node. `secret` returns the current secret, or None while there
        is none.
        """
        self.cluster_id = cluster_id
        self.node = node
        self.secret = secret
        self.addresses: set[str] = set()

    def advertise(self, addresses: Iterable[str]) -> None:
        """Accept proofs made for these addresses (host:port), too: the node's listeners are bound,
        and it is about to register them.
        """
        self.addresses.update(addresses)

    def credentials(self, node: int, address: str) -> "NodeCredentials":
        """Return the credentials for a connection to this node at this address (host:port)."""
        return NodeCredentials(self, node, address)

    def exchange(self) -> "NodeExchange":
        """Begin the proof of an accepted connection."""
        return NodeExchange(self)


class NodeCredentials:
    """The connecting side of a proof, which also makes the other side prove itself."""

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
        """The secret with which the proof began."""
        self._node = -1

    def step(self, token: bytes) -> SaslOutcome:
        return self._answer(token) if self._expected is None else self._judge(token)

    def _answer(self, token: bytes) -> SaslOutcome:
        hello = _read(HELLO, token)
        if hello is None or hello.version != VERSION:
            return _rejected(f"The other end does not speak version {VERSION} of the proof between nodes.")
        member, secret = self._membership, self._membership.secret()
        if (hello.cluster, hello.to) != (member.cluster_id, member.node) or hello.node == member.node:
            return _rejected("The other end means another node, or a node of another cluster.")
        if hello.address not in member.addresses:
            return _rejected("This node is not to be reached at the address that was meant.")
        if secret is None:
            return _rejected("The cluster's tree holds no secret that this node can read.")
        nonce = secrets.token_hex(NONCE_BYTES)
        self._node, self._secret, self._expected = hello.node, secret, _proof(secret, CONNECTING, hello, nonce)
        return Challenge(encode(NodeReply(nonce, _proof(secret, LISTENING, hello, nonce))))

    def _judge(self, token: bytes) -> SaslOutcome:
        proof = _read(PROOF, token)
        if proof is None or not _same(proof.proof, self._expected or ""):
            return _rejected("The other end does not know the cluster's secret.")
        if self._membership.secret() != self._secret:
            return _rejected("The nodes have agreed on another secret since this proof began.")
        return ProvedNode(self._node)


def _rejected(reason: str) -> Rejected:
    """Return the one answer to every proof that fails: a stranger learns nothing from it. The
    reason is for this node's log.
    """
    return Rejected("The proof between nodes failed.", reason)


def _proof(secret: bytes, role: str, hello: NodeHello, nonce: str) -> str:
    """Return the proof of one side, CONNECTING or LISTENING, in hexadecimal."""
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
