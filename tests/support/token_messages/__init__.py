"""The messages of delegation tokens for kafka-python, which has none: their fields, in the form
that its reader takes.
"""

import types
from typing import Any

from kafka.protocol.api_message import ApiMessage


def message(name: str) -> Any:
    """Return kafka-python's class of a message whose fields are in a file of this folder."""
    return types.new_class(name, (ApiMessage,), {"load_json": __package__})


TOKEN_MESSAGES: dict[str, tuple[Any, Any]] = {
    api: (message(f"{api}Request"), message(f"{api}Response"))
    for api in (
        "CreateDelegationToken",
        "DescribeDelegationToken",
        "ExpireDelegationToken",
        "RenewDelegationToken",
    )
}
