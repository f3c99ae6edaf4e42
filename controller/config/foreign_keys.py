"""Names of keys that are not those of a Kafka 3.9 broker, and what their authors need to know.

Rule: a name that another release of Kafka has is explained, and not taken for a slip of the pen.
"""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from .keys import base_name, nearest_key

_NEWER = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms config.providers
controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
controller.quorum.auto.join.enable controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
cordoned.log.dirs errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
follower.fetch.last.tiered.offset.enable group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable
group.consumer.max.assignment.interval.ms group.consumer.min.assignment.interval.ms
group.consumer.regex.refresh.interval.ms group.coordinator.background.threads
group.coordinator.cached.buffer.max.bytes group.share.assignment.interval.ms group.share.assignor.offload.enable
group.share.assignors group.share.dlq.manager.class.name group.share.initialize.retry.interval.ms
group.share.max.assignment.interval.ms group.share.max.delivery.count.limit group.share.max.partition.max.record.locks
group.share.max.share.sessions group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
group.share.min.partition.max.record.locks group.share.persister.class.name group.streams.acceptable.recovery.lag
group.streams.assignment.interval.ms group.streams.assignor.offload.enable group.streams.assignors
group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
group.streams.max.standby.replicas group.streams.max.warmup.replicas group.streams.min.assignment.interval.ms
group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms
group.streams.num.standby.replicas group.streams.num.warmup.replicas group.streams.rack.aware.assignment.tags
group.streams.session.timeout.ms group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class
internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
internal.metadata.max.fetch.size.in.bytes log.remote.copy.lag.bytes log.remote.copy.lag.ms
max.decompressed.message.bytes remote.list.offsets.request.timeout.ms remote.log.index.file.cache.ttl.ms
remote.log.manager.follower.thread.pool.size sasl.oauthbearer.allow.unverified.audience
sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
share.fetch.purgatory.purge.interval.requests transaction.two.phase.commit.enable
"""
NEWER = frozenset(_NEWER.split())
"""The keys of brokers of Kafka 4.0 to 4.4 that 3.9 does not have."""
REMOVED: Mapping[str, str] = MappingProxyType(
    {
        "advertised.host.name": "set advertised.listeners",
        "advertised.port": "set advertised.listeners",
        "host.name": "set listeners",
        "port": "set listeners",
        "quota.consumer.default": "set it with minicontroller quotas, or kafka-configs.sh",
        "quota.producer.default": "set it with minicontroller quotas, or kafka-configs.sh",
        "zookeeper.sync.time.ms": "leave it out",
    }
)
"""Keys that Kafka had before 3.0, and what to do instead."""
AUTHORIZER = "authorizer.class.name"


def is_slip_for_authorizer(name: str) -> bool:
    """Return whether a name that could be an authorizer's own key is a misspelt
    `authorizer.class.name`, without which everybody may do everything.
    """
    return name != AUTHORIZER and name.startswith("authorizer.") and bool(difflib.get_close_matches(name, [AUTHORIZER], 1, 0.9))  # fmt: skip


def meant_by(name: str) -> str | None:
    """Return the key that somebody meant by a name that is none, if one is similar enough."""
    base = base_name(name)
    if base in NEWER or base in REMOVED:
        return None
    return AUTHORIZER if is_slip_for_authorizer(name) else nearest_key(name)


def explained(name: str) -> str:
    """Return the end of a sentence that says there is no key of this name."""
    base = base_name(name)
    if base in NEWER:
        return ", which Kafka has since 4.0 and nodes, which follow Kafka 3.9, do not: leave it out."
    if base in REMOVED:
        return f", which Kafka 3.0 removed: {REMOVED[base]}."
    near = meant_by(name)
    return f"; did you mean {near}?" if near else "."
