"""The features of a cluster that has none, and the groups of KIP-848, which need KRaft."""

from typing import Any

from tests.conformance.case import Case, each_version

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update(name: str, *features: tuple[str, int, int], validate_only: bool = False) -> list[Case]:
    """In version 0 an allowed downgrade stands for both kinds."""

    def rows(version: int) -> list[dict[str, Any]]:
        how = [
            {"allow_downgrade": kind != UPGRADE} if version == 0 else {"upgrade_type": kind} for _, _, kind in features
        ]
        return [
            {"feature": feature, "max_version_level": level, **kind}
            for (feature, level, _), kind in zip(features, how, strict=True)
        ]

    return [
        Case(name, "UpdateFeatures", 0, {"timeout_ms": 1000, "feature_updates": rows(0)}),
        Case(name, "UpdateFeatures", 1, {"timeout_ms": 1000, "feature_updates": rows(1), "validate_only": validate_only}),
    ]  # fmt: skip


CASES = [
    *update("unknown", ("f", 1, UPGRADE)),
    *update("unknown in a dry run", ("f", 1, UPGRADE), validate_only=True),
    *update("zero", ("f", 0, UPGRADE)),
    *update("below zero", ("f", -1, UPGRADE)),
    *update("delete", ("f", 0, SAFE_DOWNGRADE)),
    *update("delete anyway", ("f", 0, UNSAFE_DOWNGRADE)),
    *update("downgrade", ("f", 1, SAFE_DOWNGRADE)),
    *update("nameless", ("", 1, UPGRADE)),
    *update("of KRaft", ("metadata.version", 5, UPGRADE)),
    *update("ours", ("minicontroller.validate.deletes", 1, UPGRADE)),
    *update("unknown type", ("f", 1, 7)),
    *update("none"),
    *update("two", ("f", 1, UPGRADE), ("g", 0, SAFE_DOWNGRADE)),
    Case("heartbeat", "ConsumerGroupHeartbeat", 0, {"group_id": "g", "member_id": "m", "member_epoch": 0}),
    *each_version("consumer groups", "ConsumerGroupDescribe", {"group_ids": ["g", "", "g"]}),
    Case("consumer groups with operations", "ConsumerGroupDescribe", 0, {"group_ids": ["g"], "include_authorized_operations": True}),
    Case("no consumer groups", "ConsumerGroupDescribe", 0, {"group_ids": []}),
]  # fmt: skip
