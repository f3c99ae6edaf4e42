"""Starts and ends what judges and records: the policy, the mirror, and the audit log."""

import base64
import hashlib
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio

from ...admin.policy.loading import loaded_policy
from ...admin.policy.rule_files import RuleFiles
from ...admin.policy.runner import PolicyRunner
from ...admin.recording.decisions import NodeDecisions, RecentDecisions
from ...admin.recording.log import AuditLog, audit_settings
from ...admin.recording.recorder import AuditRecorder
from ...admin.recording.records import EventOrigin
from ...audit.files import name_parts, plain_name
from ...client.network import Network
from ...clock import now_ms
from ...process.observe.logs import RateLimitedLog
from ..configuration import GatewayConfig
from .cluster_reader import NotKnownError
from .judge import Judge
from .mirror import Mirror
from .records import Records
from .review import Reviewer
from .turns import Turns

log = logging.getLogger("minicontroller.gateway")

RETRY_SECONDS = 0.5
FLUSH_SECONDS = 10.0


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a gateway that judge and record, for those who use and show them."""

    reviewer: Reviewer
    mirror: Mirror
    judge: Judge
    policy: PolicyRunner | None
    rules: RuleFiles | None
    audit: AuditLog | None
    decisions: RecentDecisions
    counts: Counter[tuple[int, int]]
    """The decisions by API key and error code."""
    would_be_refused: Counter[tuple[str, str]]
    """The decisions that would be refused, by policy and rule."""
    log_id: str = ""
    """The id of the audit log."""
    epoch: int = 0


@asynccontextmanager
async def judging(config: GatewayConfig, network: Network) -> AsyncIterator[Judging | None]:
    """Return a context manager that yields what judges requests, or None if there is neither a
    policy nor an audit log. At its end everything is recorded. Waits until the cluster has been
    read.

    Raises PolicyLoadError, and ConfigurationError if the audit log cannot be written.
    """
    settings = audit_settings(config.node)
    async with loaded_policy(config.node) as (policy, rules):
        if policy is None and settings is None:
            yield None
            return
        turns = Turns()
        mirror = Mirror(network, config.node, is_busy=turns.is_about_topic)
        await _read(mirror)
        number, decisions = config.node.integer("broker.id"), RecentDecisions()
        counts, would_be_refused = Counter[tuple[int, int]](), Counter[tuple[str, str]]()
        log_id, epoch, audit = "", 0, None
        if settings is not None:
            log_id = log_id_of(mirror.cluster_id, number)
            epoch = next_epoch(settings.folder, log_id)
            audit = AuditLog(settings, cluster_id=log_id, node=number)
            mirror.record(AuditRecorder(audit, EventOrigin(log_id, epoch, number, mirror.cluster_id)))
        of_node = NodeDecisions(
            decisions, broker_id=number, epoch=lambda: epoch, counts=counts, would_be_refused=would_be_refused
        )
        async with trio.open_nursery() as nursery:
            enforces, passes = not config.observes, config.passes_on_failure
            judge = Judge(mirror, turns, policy, nursery, enforces=enforces, passes_on_failure=passes)
            reviewer = Reviewer(
                mirror,
                judge,
                Records(mirror, judge, of_node),
                nursery,
                answers_wait=settings is not None and settings.always,
            )
            nursery.start_soon(_follow, mirror, config.metadata_max_age_seconds)
            if rules is not None:
                nursery.start_soon(rules.run)
            try:
                yield Judging(
                    reviewer=reviewer,
                    mirror=mirror,
                    judge=judge,
                    policy=policy,
                    rules=rules,
                    audit=audit,
                    decisions=decisions,
                    counts=counts,
                    would_be_refused=would_be_refused,
                    log_id=log_id,
                    epoch=epoch,
                )
            finally:
                with trio.move_on_after(FLUSH_SECONDS, shield=True):
                    await reviewer.wait_recorded()
                judge.stop()
                nursery.cancel_scope.cancel()
        if policy is not None:
            await policy.close()
        if audit is not None:
            await audit.close()


async def _read(mirror: Mirror) -> None:
    """Read the cluster, waiting until it tells everything."""
    waits = RateLimitedLog(log)
    while True:
        try:
            await mirror.read()
        except NotKnownError as error:
            waits.say(logging.WARNING, "the gateway waits until it can read the cluster: %s", error)
            await trio.sleep(RETRY_SECONDS)
        else:
            return


async def _follow(mirror: Mirror, seconds: float) -> None:
    """Read the cluster again and again, until cancelled."""
    silent = RateLimitedLog(log)
    while True:
        await trio.sleep(seconds)
        try:
            await mirror.read()
        except NotKnownError as error:
            silent.say(logging.WARNING, "the gateway cannot read the cluster: %s", error)


def log_id_of(cluster_id: str, gateway_id: int) -> str:
    """Return the id of a gateway's audit log, in the form of a cluster id. Several gateways in
    front of one cluster have a log each.
    """
    digest = hashlib.sha256(f"{cluster_id} {gateway_id}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def next_epoch(folder: Path, log_id: str) -> int:
    """Return the epoch of a gateway that starts now, in seconds since 1970: it is above that of
    every file which the gateway has written before.
    """
    named = (name_parts(plain_name(file.name)) for file in folder.iterdir())
    epochs = [parts.epoch for parts in named if parts is not None and parts.cluster_id == log_id]
    return max([now_ms() // 1000, *(epoch + 1 for epoch in epochs)])
