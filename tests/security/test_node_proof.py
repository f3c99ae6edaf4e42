"""The proof between nodes, token by token: who knows the secret is believed, and no token is of use
anywhere else.

Requirement K590-6.
"""

import json
from typing import Any

import pytest

from minicontroller.protocol.errors import ProtocolError
from minicontroller.security.node_proof import MAX_TOKEN_BYTES, Membership, NodeCredentials
from minicontroller.security.sasl import Challenge, ProvedNode, Rejected, SaslExchange, SaslOutcome

SECRET = bytes(range(32))
CLUSTER = "9dJzdGvfTPaCY4e8klXaDQ"
AT_TWO = "two:9092"


def member(node: int, secret: bytes | None = SECRET, *, cluster: str = CLUSTER, address: str = "") -> Membership:
    """A node of the cluster, which is reached at `<its number in words>:9092` unless it is said
    where.
    """
    membership = Membership(cluster, node, lambda: secret)
    membership.advertise([address or {1: "one:9092", 2: AT_TWO, 3: "three:9092"}[node]])
    return membership


def to_two(membership: Membership | None = None) -> NodeCredentials:
    """Return the credentials by which node 1 proves itself to node 2."""
    return (membership or member(1)).credentials(2, AT_TWO)


def converse(credentials: NodeCredentials, exchange: SaslExchange) -> SaslOutcome:
    """Return the outcome at the accepting side. Raises ProtocolError if the connecting side
    refuses.
    """
    tokens = credentials.exchange()
    step = exchange.step(next(tokens))
    while isinstance(step, Challenge):
        step = exchange.step(tokens.send(step.token))
    return step


def test_two_nodes_that_know_the_secret() -> None:
    """Each learns that the other one is the node that it says to be."""
    assert converse(to_two(), member(2).exchange()) == ProvedNode(1)


def test_who_is_connected_to_proves_himself_first() -> None:
    """A peer with another secret gets a hello without secrets, and no proof."""
    credentials, exchange = to_two(), member(2, b"another secret, of somebody else").exchange()
    tokens = credentials.exchange()
    answer = exchange.step(next(tokens))
    assert isinstance(answer, Challenge)
    with pytest.raises(ProtocolError, match="does not prove that it is node 2"):
        tokens.send(answer.token)


def test_who_connects_proves_himself() -> None:
    """A connecting peer without the secret is not accepted, whatever it makes of the answer."""
    for proof in (b'{"proof":""}', b'{"proof":"00"}', b"{}", b"", b"\xff"):
        exchange = member(2).exchange()
        assert isinstance(exchange.step(next(to_two().exchange())), Challenge)
        assert isinstance(exchange.step(proof), Rejected)


def test_a_proof_is_good_once() -> None:
    """A proof that is repeated on another connection fails, because the other end has another nonce
    there.
    """
    recorded = []
    tokens, exchange = to_two().exchange(), member(2).exchange()
    recorded.append(next(tokens))
    answer = exchange.step(recorded[0])
    assert isinstance(answer, Challenge)
    recorded.append(tokens.send(answer.token))
    assert exchange.step(recorded[1]) == ProvedNode(1)
    again = member(2).exchange()
    assert isinstance(again.step(recorded[0]), Challenge)
    assert isinstance(again.step(recorded[1]), Rejected)


def test_an_answer_is_good_once() -> None:
    """A recorded answer of node 2 is not accepted again."""
    answer = member(2).exchange().step(next(to_two().exchange()))
    assert isinstance(answer, Challenge)
    tokens = to_two().exchange()
    next(tokens)
    with pytest.raises(ProtocolError, match="does not prove"):
        tokens.send(answer.token)


def test_a_node_is_not_shown_its_own_proof() -> None:
    """A node's own proof, sent back to it in either direction, is not accepted."""
    one = member(1)
    tokens = one.credentials(2, AT_TWO).exchange()
    hello = next(tokens)
    assert isinstance(one.exchange().step(hello), Rejected)
    turned = json.dumps({**json.loads(hello), "node": 2, "to": 1, "address": "one:9092"}).encode()
    answer = one.exchange().step(turned)
    assert isinstance(answer, Challenge)
    with pytest.raises(ProtocolError, match="does not prove"):
        tokens.send(answer.token)


FAILED = "The proof between nodes failed."
"""All that the other end learns of a proof that fails."""


def test_the_answer_is_no_proof_of_who_connects() -> None:
    """The two roles prove by different words: what node 2 answered does not open node 2."""
    exchange = member(2).exchange()
    answer = exchange.step(next(to_two().exchange()))
    assert isinstance(answer, Challenge)
    assert isinstance(exchange.step(json.dumps({"proof": json.loads(answer.token)["proof"]}).encode()), Rejected)


@pytest.mark.parametrize(
    ("meant", "reached", "why"),
    [
        (member(1).credentials(2, "stranger:9092"), member(2), "not to be reached at the address"),
        (member(1).credentials(2, AT_TWO), member(3), "means another node"),
        (member(1, cluster="another").credentials(2, AT_TWO), member(2), "means another node"),
        (member(2).credentials(2, AT_TWO), member(2), "means another node"),
    ],
    ids=["the address of a stranger who passes it on", "another node", "another cluster", "itself"],
)
def test_only_who_was_meant_answers(meant: NodeCredentials, reached: Membership, why: str) -> None:
    """A hello that came to the wrong place, however it came there, is answered by no proof."""
    step = reached.exchange().step(next(meant.exchange()))
    assert isinstance(step, Rejected)
    assert why in step.reason and step.message == FAILED


def test_without_a_secret_nothing_is_proved() -> None:
    """A node that cannot read the secret accepts no proof, and says so in its log and in its own
    errors.
    """
    step = member(2, None).exchange().step(next(to_two().exchange()))
    assert isinstance(step, Rejected)
    assert "no secret" in step.reason and step.message == FAILED
    with pytest.raises(ProtocolError, match="cannot prove itself"):
        next(to_two(member(1, None)).exchange())


def test_a_proof_that_began_with_the_last_secret_is_none() -> None:
    """K590-6a: a proof that was begun with an old secret fails once the nodes have a new one."""
    secrets = [SECRET]
    reached = Membership(CLUSTER, 2, lambda: secrets[-1])
    reached.advertise([AT_TWO])
    tokens, exchange = to_two().exchange(), reached.exchange()
    answer = exchange.step(next(tokens))
    assert isinstance(answer, Challenge)
    secrets.append(b"the secret that they have agreed on since")
    step = exchange.step(tokens.send(answer.token))
    assert isinstance(step, Rejected)
    assert "another secret since" in step.reason and step.message == FAILED


def test_another_version_is_refused_in_words() -> None:
    """The log of the node says which version it speaks; the other end learns nothing."""
    hello: dict[str, Any] = json.loads(next(to_two().exchange()))
    step = member(2).exchange().step(json.dumps({**hello, "version": 2}).encode())
    assert isinstance(step, Rejected)
    assert "version 1" in step.reason and step.message == FAILED


def test_tokens_that_are_none() -> None:
    """A malformed hello or answer ends the exchange at a bounded cost, and appears in no text."""
    hello = next(to_two().exchange())
    strange = [b"", b"\xff", b"[]", b"null", hello[:-1], hello.replace(b'"node":1', b'"node":"1"'), b"[" * 1000]
    strange.append(hello[:-1] + b" " * MAX_TOKEN_BYTES + b"}")
    for token in strange:
        step = member(2).exchange().step(token)
        assert isinstance(step, Rejected), token
        assert step.message == FAILED
        tokens = to_two().exchange()
        next(tokens)
        with pytest.raises(ProtocolError, match=r"does not prove that it is node 2 of this cluster$"):
            tokens.send(token)


def test_no_text_holds_the_secret() -> None:
    """The secret is neither in what is sent nor in what an object says of itself."""
    one, two = member(1), member(2)
    tokens, exchange = one.credentials(2, AT_TWO).exchange(), two.exchange()
    said = [next(tokens)]
    answer = exchange.step(said[0])
    assert isinstance(answer, Challenge)
    said += [answer.token, tokens.send(answer.token)]
    told = b"".join(said).decode() + repr((one, two, exchange, to_two(), answer))
    assert SECRET.hex() not in told
    assert repr(SECRET)[2:-1] not in told
