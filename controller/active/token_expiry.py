"""Removes delegation tokens that have expired, as Kafka's controller does.

Rule: an expired token is refused everywhere before it is removed; removing it only clears the
store.
"""

import contextlib
import logging

import trio

from ...clock import now_ms
from ...process.settings.node_config import NodeConfig
from ...security.delegation_tokens import token_key
from .entity_writing import stage_token
from .jobs import ControllerMoved, Draft
from .writer import Writer

log = logging.getLogger("minicontroller.controller")


async def expire_tokens(config: NodeConfig, writer: Writer) -> None:
    """Remove expired tokens every `delegation.token.expiry.check.interval.ms` until cancelled, or
    until another controller is elected.
    """
    if token_key(config) is None:
        return
    with contextlib.suppress(ControllerMoved):  # the next controller does it
        while True:
            while await writer.write(_remove):
                log.info("expired delegation tokens are being removed")
            await trio.sleep(config.integer("delegation.token.expiry.check.interval.ms") / 1000)


async def _remove(draft: Draft) -> bool:
    """Stage the removal of expired tokens, as many as one commit holds. Return whether there were
    any.
    """
    now = now_ms()
    expired = [token for token in draft.image.tokens.values() if token.has_expired(now)]
    for token in expired:
        if draft.is_over:
            break
        stage_token(draft, token.token_id, None)
        await draft.time_slice.pause()
    return bool(expired)
