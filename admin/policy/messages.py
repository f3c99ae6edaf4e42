"""The messages between a node and its policy process: msgpack in frames, over a pair of sockets.

Rule: messages are bounded, and typed on both sides. Requests and states travel as the structs of
`policies/interface.py`, so that a field which is added there arrives. What comes from the process
is nothing but numbers and texts.
"""

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from ...policies.interface import JudgedRequest
from ...policies.judging import METHODS, PolicyDescription
from ...policies.verdict import PolicyOutcome

MAX_TO_POLICY = 1 << 28
"""The largest frame to the process: a topic's state, a request, or a part of many states."""
MAX_FROM_POLICY = 1 << 20
KINDS: Mapping[str, type[JudgedRequest]] = {kind.__name__: kind for kind in METHODS}
"""The classes of requests by the names that messages carry."""

LOG_MARK = "\x1e"
"""The beginning of the random mark that the process prints before each log record in JSON. Lines
without the mark are what somebody printed, and may hold any text.
"""

_SIZE = struct.Struct(">i")


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One frame between node and policy process."""


# ------------------------------------------------------------------ to the policy


class Load(Message, frozen=True, array_like=True, tag=True):
    """First message to the process: the configuration, which names the policy to load."""

    configs: dict[str, str]


class PolicyQuestion(Message, frozen=True, array_like=True, tag=True):
    """Message to the process: a request to judge."""

    number: int
    kind: str
    request: msgspec.Raw
    cluster_size: int
    forget: bool
    """Whether to forget all topics first, because the node forgot which it had sent."""


class ChangedTopics(Message, frozen=True, array_like=True, tag=True):
    """Message to the process: the topics that changed since they were sent last. It is the answer
    to AskTopic and AskTopics, or a part of it.
    """

    changed: list[tuple[str, msgspec.Raw]]
    gone: list[str]
    is_last: bool = True


class Close(Message, frozen=True, array_like=True, tag=True):
    """Last message to the process: close the policy."""


# ------------------------------------------------------------------ from the policy


class Loaded(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: the policy is configured and can be asked."""

    described: PolicyDescription


class LoadFailed(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: the policy cannot be loaded; the reason is a sentence."""

    reason: str


class AskTopic(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: send the state of this topic if it changed."""

    name: str


class AskTopics(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: send all topics that changed."""


class PolicyAnswer(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: the answer to the PolicyQuestion of that number, or to Close."""

    number: int
    decision: PolicyOutcome
    message: str | None


ToPolicy = Load | PolicyQuestion | ChangedTopics | Close
FromPolicy = Loaded | LoadFailed | AskTopic | AskTopics | PolicyAnswer

to_policy: "msgspec.msgpack.Decoder[ToPolicy]" = msgspec.msgpack.Decoder(ToPolicy)
from_policy: "msgspec.msgpack.Decoder[FromPolicy]" = msgspec.msgpack.Decoder(FromPolicy)


def framed(message: Message) -> bytes:
    """Encode a message as a frame: its size as 4 bytes, and msgpack."""
    data = _encoder.encode(message)
    return _SIZE.pack(len(data)) + data


def as_raw(value: msgspec.Struct) -> msgspec.Raw:
    """Encode a request or a state as a part of a message."""
    return msgspec.Raw(_encoder.encode(value))


def _plain(value: Any) -> Any:
    """Convert a mapping of any other kind to a dict, for the encoder."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent to a policy")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
