"""The messages that kafka-python lacks, besides those of delegation tokens: their fields, in the
form that its reader takes.
"""

import types
from typing import Any

from kafka.protocol.api_message import ApiMessage


def message(name: str) -> Any:
    """Return kafka-python's class of a message whose fields are in a file of this folder."""
    return types.new_class(name, (ApiMessage,), {"load_json": __package__})


LACKING_MESSAGES: dict[str, tuple[Any, Any]] = {
    api: (message(f"{api}Request"), message(f"{api}Response"))
    for api in ("AllocateProducerIds", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat")
}
