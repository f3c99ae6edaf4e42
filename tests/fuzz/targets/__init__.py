"""The targets of fuzzing, by name. A target takes any bytes, and an exception is a defect."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from tests.fuzz.targets import messages, policies, server, texts, znodes


class Target(Struct, frozen=True):
    """What takes the bytes, and the inputs that fuzzing begins with."""

    take: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    share: int = 1
    """Of the time that there is."""


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "messages": Target(messages.read_and_write, messages.message_seeds, share=3),
        "frames": Target(messages.read_frame, messages.frame_seeds),
        "server": Target(server.serve, server.server_seeds, share=6),
        "znodes": Target(znodes.read_znode, znodes.znode_seeds, share=2),
        "sasl": Target(texts.read_sasl, texts.sasl_seeds),
        "audit": Target(texts.read_audit_line, texts.audit_seeds),
        "files": Target(texts.read_file, texts.file_seeds),
        "rules": Target(policies.read_rules, policies.rule_seeds, share=2),
        "expressions": Target(policies.read_expression, policies.expression_seeds, share=2),
    }
)
