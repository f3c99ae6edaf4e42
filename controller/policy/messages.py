"""What a node and the process of its policy tell each other: msgpack in frames, over a pair of
sockets.

Rule: bounded, and typed on both sides. A request and a state travel as the structs that the author
of a policy knows (`policies/interface.py`), so that a field which is added there arrives; nothing
that comes out of the process is more than numbers and texts.
"""

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from ...policies.interface import JudgedRequest
from ...policies.judging import METHODS, Described
from ...policies.verdict import Decision

MAX_TO_POLICY = 1 << 28
"""Bytes: one state of a topic, one request, or one part of many states."""
MAX_FROM_POLICY = 1 << 20
KINDS: Mapping[str, type[JudgedRequest]] = {kind.__name__: kind for kind in METHODS}
"""Of requests, by the name under which they travel."""

LOG_MARK = "\x1e"
"""With something behind it that the process is told: before a record of the log, as JSON, in what
it prints. Other lines are what somebody printed, and may be a stranger's words.
"""

_SIZE = struct.Struct(">i")


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One frame between node and policy process."""


# ------------------------------------------------------------------ to the policy


class Load(Message, frozen=True, array_like=True, tag=True):
    """First message to the process: what to load, and to configure it with."""

    configs: dict[str, str]


class Question(Message, frozen=True, array_like=True, tag=True):
    """Message to the process: a request to judge."""

    number: int
    kind: str
    request: msgspec.Raw
    cluster_size: int
    forget: bool
    """What is known of topics is not to be kept: the node has forgotten what it told."""


class ToldTopics(Message, frozen=True, array_like=True, tag=True):
    """Message to the process: what has become of topics since they were told last; the answer to
    AskTopic and AskTopics, or a part of it.
    """

    changed: list[tuple[str, msgspec.Raw]]
    gone: list[str]
    is_last: bool = True


class Close(Message, frozen=True, array_like=True, tag=True):
    """Last message to the process: close the policy."""


# ------------------------------------------------------------------ from the policy


class Loaded(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: the policy is configured and can be asked."""

    described: Described


class Unloadable(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: the policy cannot be loaded; why, in a sentence."""

    reason: str


class AskTopic(Message, frozen=True, array_like=True, tag=True):
    name: str


class AskTopics(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: tell all topics."""


class Answer(Message, frozen=True, array_like=True, tag=True):
    """Message of the process: the answer to the Question of that number, or to Close."""

    number: int
    decision: Decision
    message: str | None


ToPolicy = Load | Question | ToldTopics | Close
FromPolicy = Loaded | Unloadable | AskTopic | AskTopics | Answer

to_policy: "msgspec.msgpack.Decoder[ToPolicy]" = msgspec.msgpack.Decoder(ToPolicy)
from_policy: "msgspec.msgpack.Decoder[FromPolicy]" = msgspec.msgpack.Decoder(FromPolicy)


def framed(message: Message) -> bytes:
    data = _encoder.encode(message)
    return _SIZE.pack(len(data)) + data


def plain(value: msgspec.Struct) -> msgspec.Raw:
    """Return a request or a state as a message can hold it."""
    return msgspec.Raw(_encoder.encode(value))


def _plain(value: Any) -> Any:
    """Convert the mappings that show a request without copying it."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"a {type(value).__name__} cannot be told to a policy")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
