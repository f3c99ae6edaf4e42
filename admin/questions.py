"""The questions that changes put to the policy."""

from typing import Any

from ..process.clock import now_ms
from .description import RequestDescription


def asked_by(context: RequestDescription, topic: str, *, validate_only: bool) -> dict[str, Any]:
    """Return the fields that describe the caller in every request to the policy."""
    return {
        "topic": topic,
        "principal": context.origin.principal,
        "client_id": context.client_id,
        "client_host": context.origin.client_host,
        "api": context.policy_api,
        "validate_only": validate_only,
        "time_ms": now_ms(),
    }
