"""The config keys of Kafka 4.0 to 4.4 that Kafka 3.9 does not have, a line each: name and type.

Nodes are a Kafka 3.9 and know none of them. A gateway stands before any Kafka: rules judge these
keys there, and their values are shown, but for passwords. A key that is in no table is known once
the cluster has reported it (`canonical.py`).
"""

from collections.abc import Mapping
from types import MappingProxyType

from .values import KeyType

TOPICS = """
errors.deadletterqueue.group.enable | boolean
max.decompressed.message.bytes | int
remote.copy.lag.bytes | long
remote.copy.lag.ms | long
"""
BROKERS = """
add.partitions.to.txn.retry.backoff.max.ms | int
add.partitions.to.txn.retry.backoff.ms | int
config.providers | list
controller.performance.always.log.threshold.ms | long
controller.performance.sample.period.ms | long
controller.quorum.auto.join.enable | boolean
controller.quorum.fetch.max.bytes | int
controller.quorum.fetch.snapshot.max.bytes | int
cordoned.log.dirs | list
errors.deadletterqueue.auto.create.topics.enable | boolean
errors.deadletterqueue.topic.name.prefix | string
follower.fetch.last.tiered.offset.enable | boolean
group.consumer.assignment.interval.ms | int
group.consumer.assignor.offload.enable | boolean
group.consumer.max.assignment.interval.ms | int
group.consumer.min.assignment.interval.ms | int
group.consumer.regex.refresh.interval.ms | int
group.coordinator.background.threads | int
group.coordinator.cached.buffer.max.bytes | int
group.share.assignment.interval.ms | int
group.share.assignor.offload.enable | boolean
group.share.assignors | list
group.share.dlq.manager.class.name | string
group.share.initialize.retry.interval.ms | int
group.share.max.assignment.interval.ms | int
group.share.max.delivery.count.limit | int
group.share.max.partition.max.record.locks | int
group.share.max.share.sessions | int
group.share.min.assignment.interval.ms | int
group.share.min.delivery.count.limit | int
group.share.min.partition.max.record.locks | int
group.share.persister.class.name | string
group.streams.acceptable.recovery.lag | long
group.streams.assignment.interval.ms | int
group.streams.assignor.offload.enable | boolean
group.streams.assignors | list
group.streams.heartbeat.interval.ms | int
group.streams.initial.rebalance.delay.ms | int
group.streams.max.assignment.interval.ms | int
group.streams.max.heartbeat.interval.ms | int
group.streams.max.session.timeout.ms | int
group.streams.max.size | int
group.streams.max.standby.replicas | int
group.streams.max.warmup.replicas | int
group.streams.min.assignment.interval.ms | int
group.streams.min.heartbeat.interval.ms | int
group.streams.min.session.timeout.ms | int
group.streams.min.task.offset.interval.ms | int
group.streams.num.standby.replicas | int
group.streams.num.warmup.replicas | int
group.streams.rack.aware.assignment.tags | list
group.streams.session.timeout.ms | int
group.streams.task.offset.interval.ms | int
group.streams.topology.description.plugin.class | class
log.remote.copy.lag.bytes | long
log.remote.copy.lag.ms | long
max.decompressed.message.bytes | int
remote.list.offsets.request.timeout.ms | long
remote.log.index.file.cache.ttl.ms | long
remote.log.manager.follower.thread.pool.size | int
sasl.oauthbearer.allow.unverified.audience | boolean
sasl.oauthbearer.allow.unverified.issuer | boolean
sasl.oauthbearer.assertion.algorithm | string
sasl.oauthbearer.assertion.claim.aud | string
sasl.oauthbearer.assertion.claim.exp.seconds | int
sasl.oauthbearer.assertion.claim.iss | string
sasl.oauthbearer.assertion.claim.jti.include | boolean
sasl.oauthbearer.assertion.claim.nbf.seconds | int
sasl.oauthbearer.assertion.claim.sub | string
sasl.oauthbearer.assertion.file | string
sasl.oauthbearer.assertion.private.key.file | string
sasl.oauthbearer.assertion.private.key.passphrase | password
sasl.oauthbearer.assertion.template.file | string
sasl.oauthbearer.client.credentials.client.id | string
sasl.oauthbearer.client.credentials.client.secret | password
sasl.oauthbearer.jwt.retriever.class | class
sasl.oauthbearer.jwt.validator.class | class
sasl.oauthbearer.scope | string
share.coordinator.append.linger.ms | int
share.coordinator.cached.buffer.max.bytes | int
share.coordinator.cold.partition.snapshot.interval.ms | int
share.coordinator.load.buffer.size | int
share.coordinator.snapshot.update.records.per.snapshot | int
share.coordinator.state.topic.compression.codec | int
share.coordinator.state.topic.min.isr | short
share.coordinator.state.topic.num.partitions | int
share.coordinator.state.topic.prune.interval.ms | int
share.coordinator.state.topic.replication.factor | short
share.coordinator.state.topic.segment.bytes | int
share.coordinator.threads | int
share.coordinator.write.timeout.ms | int
share.fetch.purgatory.purge.interval.requests | int
transaction.two.phase.commit.enable | boolean
"""
GROUPS = """
consumer.assignment.interval.ms | int
consumer.assignor.offload.enable | boolean
consumer.heartbeat.interval.ms | int
consumer.session.timeout.ms | int
errors.deadletterqueue.copy.record.enable | boolean
errors.deadletterqueue.topic.name | string
share.assignment.interval.ms | int
share.assignor.offload.enable | boolean
share.auto.offset.reset | string
share.delivery.count.limit | int
share.heartbeat.interval.ms | int
share.isolation.level | string
share.partition.max.record.locks | int
share.record.lock.duration.ms | int
share.renew.acknowledge.enable | boolean
share.session.timeout.ms | int
streams.acceptable.recovery.lag | long
streams.assignment.interval.ms | int
streams.assignor.name | string
streams.assignor.offload.enable | boolean
streams.heartbeat.interval.ms | int
streams.initial.rebalance.delay.ms | int
streams.num.standby.replicas | int
streams.num.warmup.replicas | int
streams.rack.aware.assignment.tags | list
streams.session.timeout.ms | int
streams.task.offset.interval.ms | int
"""
CLIENT_METRICS = """
interval.ms | int
match | list
metrics | list
"""


def _types(table: str) -> Mapping[str, KeyType]:
    rows = (line.split(" | ") for line in table.splitlines() if line)
    return MappingProxyType({name: KeyType[kind.upper()] for name, kind in rows})


NEWER_TOPIC_KEYS, NEWER_BROKER_KEYS = _types(TOPICS), _types(BROKERS)
GROUP_KEYS, CLIENT_METRICS_KEYS = _types(GROUPS), _types(CLIENT_METRICS)
NEWER_KEYS: Mapping[str, KeyType] = MappingProxyType(
    {**CLIENT_METRICS_KEYS, **GROUP_KEYS, **NEWER_BROKER_KEYS, **NEWER_TOPIC_KEYS}
)
"""The types of all of these keys. None has two types."""
DEAD_LETTERS = "errors.deadletterqueue.topic.name"
"""The config of a share group that names the topic for records which nobody could process. Brokers
create it when it is needed (KIP-1191).
"""
