"""Every config key of a Kafka 3.9 broker, one line each, so that existing files are valid.

    name | type | default | valid values (see validators.py) | how it may change while a node runs |
    description

`-` stands for nothing, `""` for the empty text, `max` for the largest long. The fifth column is
`cluster` (for one node or for all), `broker` (for one node only), `throttle` (only while a node
runs), `-` (not at all) or `internal` (not at all, and not shown). Names, types, defaults and limits
are Kafka's; the descriptions are ours.
"""

TABLE = """
# The node and its place in the cluster
broker.id | int | -1 | - | - | The number by which the cluster knows this node; it has to be given.
node.id | int | -1 | - | - | The same as broker.id, under the name that newer files use.
broker.id.generation.enable | boolean | true | - | - | Whether a node without a number may be given one; here it never is.
reserved.broker.max.id | int | 1000 | >=0 | - | The largest number that people may assign; generated ones lie above it.
broker.rack | string | - | - | - | The rack or zone of this node; new replicas are spread over the racks.
broker.heartbeat.interval.ms | int | 2000 | - | - | How often a node that follows a KRaft controller reports to it.
broker.session.timeout.ms | int | 9000 | - | - | After how long without a heartbeat a KRaft controller gives a node up.
initial.broker.registration.timeout.ms | int | 60000 | - | - | How long a starting node tries to register with a KRaft controller.
server.max.startup.time.ms | long | max | >=0 | internal | How long a start may take before it counts as failed.
process.roles | list | "" | broker|controller | - | The KRaft roles of this process; empty means that the cluster lives in ZooKeeper.
inter.broker.protocol.version | string | 3.9-IV0 | version | - | The version of Kafka whose formats the nodes use among themselves.
unstable.api.versions.enable | boolean | false | - | internal | Whether API versions that are not final are offered.
unstable.feature.versions.enable | boolean | false | - | internal | Whether feature versions that are not final are offered.
eligible.leader.replicas.enable | boolean | false | - | - | Whether replicas outside the in-sync set that are known to be complete may lead.
security.providers | string | - | - | - | Classes that provide security algorithms.

# Listeners and connections
listeners | string | PLAINTEXT://:9092 | - | broker | Where this node listens: NAME://host:port, separated by commas; an empty host means every interface.
advertised.listeners | string | - | - | broker | The addresses that clients connect to, if they differ from listeners.
listener.security.protocol.map | string | SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT | - | broker | The security protocol of each listener name, as NAME:PROTOCOL pairs.
inter.broker.listener.name | string | - | - | - | The listener on which the nodes talk to each other.
security.inter.broker.protocol | string | PLAINTEXT | PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL | - | The security protocol between nodes, when their listener is not named.
control.plane.listener.name | string | - | - | - | A separate listener for the controller's requests to nodes.
controller.listener.names | string | - | - | - | The listeners of a KRaft controller.
early.start.listeners | string | - | - | - | Listeners that accept connections before the authorizer is ready.
max.connections | int | 2147483647 | >=0 | cluster | How many connections this node holds at most, on all listeners or on one.
max.connections.per.ip | int | 2147483647 | >=0 | cluster | How many connections one address may hold.
max.connections.per.ip.overrides | string | "" | - | cluster | Other limits for some addresses, as address:count pairs.
max.connection.creation.rate | int | 2147483647 | >=0 | cluster | How many connections a second are accepted at most.
connections.max.idle.ms | long | 600000 | - | - | After how long without a request a connection is closed.
connections.max.reauth.ms | long | 0 | - | - | After how long a SASL client has to authenticate again; 0 means never.
connection.failed.authentication.delay.ms | int | 100 | >=0 | - | How long the answer to a failed authentication is held back.
socket.listen.backlog.size | int | 50 | >=1 | - | How many connections may wait to be accepted.
socket.receive.buffer.bytes | int | 102400 | - | - | The receive buffer of a connection; -1 leaves it to the operating system.
socket.send.buffer.bytes | int | 102400 | - | - | The send buffer of a connection; -1 leaves it to the operating system.
socket.request.max.bytes | int | 104857600 | >=1 | - | The largest request that is read; a larger one closes its connection.
socket.connection.setup.timeout.ms | long | 10000 | - | - | How long the first attempt to connect to another node may take.
socket.connection.setup.timeout.max.ms | long | 30000 | - | - | The longest time that an attempt to connect to another node may take.
queued.max.requests | int | 500 | >=1 | - | How many requests may wait before reading stops.
queued.max.request.bytes | long | -1 | - | - | How many bytes of large requests may come in or be carried out at once, over all connections; -1 for 256 MiB.
request.timeout.ms | int | 30000 | - | - | How long a request to another node may take.
num.network.threads | int | 3 | >=1 | cluster | Kafka's threads that read and write sockets; without effect here.
num.io.threads | int | 8 | >=1 | cluster | Kafka's threads that handle requests; without effect here.
background.threads | int | 10 | >=1 | cluster | Kafka's threads for background work; without effect here.

# Topics and their defaults
num.partitions | int | 1 | >=1 | - | How many partitions a topic gets when its creator leaves it open.
default.replication.factor | int | 1 | - | - | How many replicas a partition gets when its creator leaves it open.
auto.create.topics.enable | boolean | true | - | - | Whether asking for a topic that does not exist may create it.
delete.topic.enable | boolean | true | - | - | Whether topics can be deleted.
create.topic.policy.class.name | class | - | - | - | A policy of the older kind that judges new topics.
alter.config.policy.class.name | class | - | - | - | A policy of the older kind that judges changes of configs.
alter.config.policy.kraft.compatibility.enable | boolean | false | - | internal | Whether that policy sees the values of a topic after IncrementalAlterConfigs, as on KRaft, and not the operations.
min.insync.replicas | int | 1 | >=1 | cluster | How many replicas must have a record that its producer wants acknowledged by all; default of topics.
unclean.leader.election.enable | boolean | false | - | cluster | Whether a replica that is not in sync may lead when no other is left; default of topics.
unclean.leader.election.interval.ms | long | 300000 | >=1 | internal | How often partitions without a leader are checked.
compression.type | string | producer | uncompressed|zstd|lz4|snappy|gzip|producer | cluster | The codec in which batches are kept, or producer for the one they came in; default of topics.
compression.gzip.level | int | -1 | 1..9,-1 | cluster | How hard gzip tries; default of topics.
compression.lz4.level | int | 9 | 1..17 | cluster | How hard lz4 tries; default of topics.
compression.zstd.level | int | 3 | -131072..22 | cluster | How hard zstd tries; default of topics.
message.max.bytes | int | 1048588 | >=0 | cluster | The largest batch of records; default of the topic config max.message.bytes.
log.cleanup.policy | list | delete | compact|delete | cluster | What happens to old segments; default of the topic config cleanup.policy.
log.cleaner.delete.retention.ms | long | 86400000 | >=0 | cluster | Default of the topic config delete.retention.ms.
log.cleaner.max.compaction.lag.ms | long | max | >=1 | cluster | Default of the topic config max.compaction.lag.ms.
log.cleaner.min.compaction.lag.ms | long | 0 | >=0 | cluster | Default of the topic config min.compaction.lag.ms.
log.cleaner.min.cleanable.ratio | double | 0.5 | 0..1 | cluster | Default of the topic config min.cleanable.dirty.ratio.
log.flush.interval.messages | long | max | >=1 | cluster | Default of the topic config flush.messages.
log.flush.interval.ms | long | - | - | cluster | Default of the topic config flush.ms.
log.index.interval.bytes | int | 4096 | >=0 | cluster | Default of the topic config index.interval.bytes.
log.index.size.max.bytes | int | 10485760 | >=4 | cluster | Default of the topic config segment.index.bytes.
log.local.retention.bytes | long | -2 | >=-2 | cluster | Default of the topic config local.retention.bytes.
log.local.retention.ms | long | -2 | >=-2 | cluster | Default of the topic config local.retention.ms.
log.message.downconversion.enable | boolean | true | - | cluster | Default of the topic config message.downconversion.enable.
log.message.format.version | string | 3.0-IV1 | version | - | Default of the topic config message.format.version.
log.message.timestamp.after.max.ms | long | max | >=0 | cluster | Default of the topic config message.timestamp.after.max.ms.
log.message.timestamp.before.max.ms | long | max | >=0 | cluster | Default of the topic config message.timestamp.before.max.ms.
log.message.timestamp.difference.max.ms | long | max | >=0 | cluster | Default of the topic config message.timestamp.difference.max.ms.
log.message.timestamp.type | string | CreateTime | CreateTime|LogAppendTime | cluster | Default of the topic config message.timestamp.type.
log.preallocate | boolean | false | - | cluster | Default of the topic config preallocate.
log.retention.bytes | long | -1 | - | cluster | Default of the topic config retention.bytes.
log.retention.ms | long | - | - | cluster | Default of the topic config retention.ms; goes before the minutes and the hours.
log.retention.minutes | int | - | - | - | Default of the topic config retention.ms, in minutes; goes before the hours.
log.retention.hours | int | 168 | - | - | Default of the topic config retention.ms, in hours.
log.roll.ms | long | - | - | cluster | Default of the topic config segment.ms; goes before the hours.
log.roll.hours | int | 168 | >=1 | - | Default of the topic config segment.ms, in hours.
log.roll.jitter.ms | long | - | - | cluster | Default of the topic config segment.jitter.ms; goes before the hours.
log.roll.jitter.hours | int | 0 | >=0 | - | Default of the topic config segment.jitter.ms, in hours.
log.segment.bytes | int | 1073741824 | >=14 | cluster | Default of the topic config segment.bytes.
log.segment.delete.delay.ms | long | 60000 | >=0 | cluster | Default of the topic config file.delete.delay.ms.

# Controller and replication
auto.leader.rebalance.enable | boolean | true | - | - | Whether leadership returns to preferred replicas by itself.
leader.imbalance.check.interval.seconds | long | 300 | >=1 | - | How often the balance of leaders is checked.
leader.imbalance.per.broker.percentage | int | 10 | - | - | The percentage of a node's partitions that other nodes may lead before leadership is moved back.
controlled.shutdown.enable | boolean | true | - | - | Whether a node that stops hands its partitions over first.
controlled.shutdown.max.retries | int | 3 | - | - | How often a controlled shutdown is tried.
controlled.shutdown.retry.backoff.ms | long | 5000 | - | - | The pause between attempts of a controlled shutdown.
controller.socket.timeout.ms | int | 30000 | - | - | How long the controller waits for a node's answer.
controller.quota.window.num | int | 11 | >=1 | - | How many samples the quota of changes keeps.
controller.quota.window.size.seconds | int | 1 | >=1 | - | The length of a sample of the quota of changes.
replica.lag.time.max.ms | long | 30000 | - | - | After how long behind its leader a follower is out of sync.
replica.fetch.backoff.ms | int | 1000 | >=0 | - | How long a follower waits after a failed fetch.
replica.fetch.max.bytes | int | 1048576 | >=0 | - | How much of a partition a follower asks for at once.
replica.fetch.min.bytes | int | 1 | - | - | How much a leader gathers before it answers a follower.
replica.fetch.response.max.bytes | int | 10485760 | >=0 | - | How much a follower takes in one answer.
replica.fetch.wait.max.ms | int | 500 | - | - | How long a follower lets its leader gather.
replica.high.watermark.checkpoint.interval.ms | long | 5000 | - | - | How often high watermarks are written to disk.
replica.selector.class | string | - | - | - | A class that chooses the replica a consumer reads from.
replica.socket.receive.buffer.bytes | int | 65536 | - | - | The receive buffer of a follower's connection.
replica.socket.timeout.ms | int | 30000 | - | - | How long a follower waits for its leader.
num.replica.fetchers | int | 1 | - | cluster | Threads a follower uses for each leader; without effect here.
num.replica.alter.log.dirs.threads | int | - | - | - | Threads that move replicas between directories; without effect here.
num.recovery.threads.per.data.dir | int | 1 | >=1 | cluster | Threads that load logs at start; without effect here.
replication.quota.window.num | int | 11 | >=1 | - | How many samples the quota of replication keeps.
replication.quota.window.size.seconds | int | 1 | >=1 | - | The length of a sample of the quota of replication.
alter.log.dirs.replication.quota.window.num | int | 11 | >=1 | - | How many samples the quota of moves between directories keeps.
alter.log.dirs.replication.quota.window.size.seconds | int | 1 | >=1 | - | The length of a sample of the quota of moves between directories.
leader.replication.throttled.rate | long | max | >=0 | throttle | Bytes a second that this node sends for throttled replicas.
follower.replication.throttled.rate | long | max | >=0 | throttle | Bytes a second that this node fetches for throttled replicas.
replica.alter.log.dirs.io.max.bytes.per.second | long | max | >=0 | throttle | Bytes a second for moves between directories.

# Logs on disk (there are none here)
log.dir | string | /tmp/kafka-logs | - | - | The directory of the logs, where log.dirs is not set.
log.dirs | string | - | - | - | The directories of the logs, separated by commas.
log.dir.failure.timeout.ms | long | 30000 | >=1 | - | After how long a node stops that cannot report a failed directory.
log.initial.task.delay.ms | long | 30000 | >=0 | internal | How long the first housekeeping of the logs is put off.
log.flush.offset.checkpoint.interval.ms | int | 60000 | >=0 | - | How often the recovery points are written to disk.
log.flush.scheduler.interval.ms | long | max | - | - | How often logs are checked for data to flush.
log.flush.start.offset.checkpoint.interval.ms | int | 60000 | >=0 | - | How often the first offsets are written to disk.
log.retention.check.interval.ms | long | 300000 | >=1 | - | How often logs are checked for segments to delete.
log.cleaner.enable | boolean | true | - | - | Whether logs are compacted.
log.cleaner.threads | int | 1 | >=0 | cluster | How many threads compact.
log.cleaner.backoff.ms | long | 15000 | >=0 | cluster | How long a compacting thread sleeps when there is nothing to do.
log.cleaner.dedupe.buffer.size | long | 134217728 | - | cluster | Memory in which all compacting threads together remember keys.
log.cleaner.io.buffer.load.factor | double | 0.9 | - | cluster | The largest load of the buffer in which compacting threads remember keys, as a fraction.
log.cleaner.io.buffer.size | int | 524288 | >=0 | cluster | Memory of all compacting threads for reading and writing.
log.cleaner.io.max.bytes.per.second | double | 1.7976931348623157E308 | - | cluster | How fast compaction may read and write.
delete.records.purgatory.purge.interval.requests | int | 1 | - | - | After how many finished deletions of records the waiting list is swept.
fetch.purgatory.purge.interval.requests | int | 1000 | - | - | After how many finished fetches the waiting list is swept.
producer.purgatory.purge.interval.requests | int | 1000 | - | - | After how many finished produce requests the waiting list is swept.
fetch.max.bytes | int | 57671680 | >=1024 | - | How much one fetch may return.
max.incremental.fetch.session.cache.slots | int | 1000 | >=0 | - | How many fetch sessions are kept.
max.request.partition.size.limit | int | 2000 | >=1 | - | How many partitions one page of DescribeTopicPartitions holds, which Kafka serves with KRaft only.
producer.id.expiration.ms | int | 86400000 | >=1 | cluster | After how long without a write a producer id is forgotten.
producer.id.expiration.check.interval.ms | int | 600000 | >=1 | internal | How often expired producer ids are looked for.

# Groups and offsets (there are none here)
group.initial.rebalance.delay.ms | int | 3000 | - | - | How long a new group waits for more members.
group.max.session.timeout.ms | int | 1800000 | - | - | The longest session timeout a member may ask for.
group.min.session.timeout.ms | int | 6000 | - | - | The shortest session timeout a member may ask for.
group.max.size | int | 2147483647 | >=1 | - | How many members a group may have.
group.coordinator.new.enable | boolean | false | - | internal | Whether the newer coordinator serves the groups.
group.coordinator.rebalance.protocols | list | classic | consumer|classic|share|unknown | - | Which group protocols are served.
group.coordinator.threads | int | 1 | >=1 | - | How many threads the newer coordinator uses.
group.coordinator.append.linger.ms | int | 10 | >=0 | - | How long the coordinator gathers writes.
group.consumer.assignors | list | org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor | - | - | The assignors of consumer groups, the default first.
group.consumer.heartbeat.interval.ms | int | 5000 | >=1 | - | How often a member of a consumer group reports.
group.consumer.min.heartbeat.interval.ms | int | 5000 | >=1 | - | The shortest heartbeat interval of consumer groups that can be configured.
group.consumer.max.heartbeat.interval.ms | int | 15000 | >=1 | - | The longest heartbeat interval of consumer groups that can be configured.
group.consumer.session.timeout.ms | int | 45000 | >=1 | - | After how long a silent member of a consumer group is dropped.
group.consumer.min.session.timeout.ms | int | 45000 | >=1 | - | The shortest session timeout of consumer groups that can be configured.
group.consumer.max.session.timeout.ms | int | 60000 | >=1 | - | The longest session timeout of consumer groups that can be configured.
group.consumer.max.size | int | 2147483647 | >=1 | - | How many members a consumer group may have.
group.consumer.migration.policy | string | disabled | nocase:DISABLED|DOWNGRADE|UPGRADE|BIDIRECTIONAL | internal | Which moves between the classic and the consumer protocol are allowed.
group.share.enable | boolean | false | - | internal | Whether share groups are served.
group.share.delivery.count.limit | int | 5 | 2..10 | - | How often a record is delivered to a share group before it is given up.
group.share.heartbeat.interval.ms | int | 5000 | >=1 | - | How often a member of a share group reports.
group.share.min.heartbeat.interval.ms | int | 5000 | >=1 | - | The shortest heartbeat interval of share groups that can be configured.
group.share.max.heartbeat.interval.ms | int | 15000 | >=1 | - | The longest heartbeat interval of share groups that can be configured.
group.share.session.timeout.ms | int | 45000 | >=1 | - | After how long a silent member of a share group is dropped.
group.share.min.session.timeout.ms | int | 45000 | >=1 | - | The shortest session timeout of share groups that can be configured.
group.share.max.session.timeout.ms | int | 60000 | >=1 | - | The longest session timeout of share groups that can be configured.
group.share.record.lock.duration.ms | int | 30000 | 1000..60000 | - | How long a share group's consumer holds a record it was given.
group.share.min.record.lock.duration.ms | int | 15000 | 1000..30000 | - | The shortest duration of record locks that a group may choose.
group.share.max.record.lock.duration.ms | int | 60000 | 30000..3600000 | - | The longest duration of record locks that a group may choose.
group.share.max.groups | short | 10 | 1..100 | - | How many share groups there may be.
group.share.max.size | short | 200 | 10..1000 | - | How many members a share group may have.
group.share.partition.max.record.locks | int | 200 | 100..10000 | - | How many records of a partition may be held at once.
offset.metadata.max.bytes | int | 4096 | - | - | How much a client may note beside a committed offset.
offsets.commit.required.acks | short | -1 | - | - | How many replicas must have a commit before it is acknowledged.
offsets.commit.timeout.ms | int | 5000 | >=1 | - | How long a commit may take.
offsets.load.buffer.size | int | 5242880 | >=1 | - | How much is read at once when offsets are loaded.
offsets.retention.minutes | int | 10080 | >=1 | - | How long the offsets of a group without members are kept.
offsets.retention.check.interval.ms | long | 600000 | >=1 | - | How often expired offsets are looked for.
offsets.topic.compression.codec | int | 0 | - | - | The number of the codec in which offsets are kept.
offsets.topic.num.partitions | int | 50 | >=1 | - | Partitions of the offsets topic.
offsets.topic.replication.factor | short | 3 | >=1 | - | Replicas of the offsets topic.
offsets.topic.segment.bytes | int | 104857600 | >=1 | - | Segment size of the offsets topic.

# Transactions (there are none here)
transaction.abort.timed.out.transaction.cleanup.interval.ms | int | 10000 | >=1 | - | How often timed out transactions are looked for.
transaction.max.timeout.ms | int | 900000 | >=1 | - | The longest timeout a transaction may ask for.
transaction.partition.verification.enable | boolean | true | - | cluster | Whether a partition is checked to belong to the transaction that writes to it.
transaction.remove.expired.transaction.cleanup.interval.ms | int | 3600000 | >=1 | - | How often expired transactional ids are looked for.
transaction.state.log.load.buffer.size | int | 5242880 | >=1 | - | How much is read at once when transactions are loaded.
transaction.state.log.min.isr | int | 2 | >=1 | - | The topic config min.insync.replicas of the transactions topic.
transaction.state.log.num.partitions | int | 50 | >=1 | - | Partitions of the transactions topic.
transaction.state.log.replication.factor | short | 3 | >=1 | - | Replicas of the transactions topic.
transaction.state.log.segment.bytes | int | 104857600 | >=1 | - | Segment size of the transactions topic.
transactional.id.expiration.ms | int | 604800000 | >=1 | - | After how long without use a transactional id is forgotten.

# Quotas, metrics, telemetry
client.quota.callback.class | class | - | - | - | A class that computes the quotas of clients.
quota.window.num | int | 11 | >=1 | - | How many samples the quotas of clients keep.
quota.window.size.seconds | int | 1 | >=1 | - | The length of a sample of the quotas of clients.
metric.reporters | list | "" | - | cluster | Classes that receive metrics.
auto.include.jmx.reporter | boolean | true | - | - | Whether metrics go to JMX without being asked.
metrics.num.samples | int | 2 | >=1 | - | How many samples a metric keeps.
metrics.recording.level | string | INFO | - | - | From which level on metrics are recorded.
metrics.sample.window.ms | long | 30000 | >=1 | - | The length of a sample of a metric.
kafka.metrics.reporters | list | "" | - | - | Classes of the older kind that receive metrics.
kafka.metrics.polling.interval.secs | int | 10 | >=1 | - | How often the classes of kafka.metrics.reporters receive metrics.
telemetry.max.bytes | int | 1048576 | >=1 | - | The largest report of metrics that a client may push.

# ZooKeeper
zookeeper.connect | string | - | - | - | The servers of ZooKeeper as host:port, separated by commas, and a chroot after the last.
zookeeper.connection.timeout.ms | int | - | - | - | How long the first connection may take; as long as a session where it is not set.
zookeeper.session.timeout.ms | int | 18000 | - | - | After how long without a sign of life ZooKeeper ends this node's session.
zookeeper.max.in.flight.requests | int | 10 | >=1 | - | How many requests to ZooKeeper may be under way.
zookeeper.set.acl | boolean | false | - | - | Whether what this node writes is protected by ZooKeeper's ACLs.
zookeeper.metadata.migration.enable | boolean | false | - | - | Whether the cluster may be migrated to KRaft.
zookeeper.metadata.migration.min.batch.size | int | 200 | >=1 | internal | How many records a batch of that migration gathers.
zookeeper.clientCnxnSocket | string | - | - | - | The class of the client's connection to ZooKeeper; TLS needs another one.
zookeeper.ssl.client.enable | boolean | false | - | - | Whether TLS is spoken with ZooKeeper.
zookeeper.ssl.protocol | string | TLSv1.2 | - | - | The TLS protocol for ZooKeeper.
zookeeper.ssl.enabled.protocols | list | - | - | - | The TLS versions that may be negotiated with ZooKeeper.
zookeeper.ssl.cipher.suites | list | - | - | - | The cipher suites that may be negotiated with ZooKeeper.
zookeeper.ssl.endpoint.identification.algorithm | string | HTTPS | - | - | How ZooKeeper's host name is checked; empty for not at all.
zookeeper.ssl.crl.enable | boolean | false | - | - | Whether ZooKeeper's certificate is looked up in revocation lists.
zookeeper.ssl.ocsp.enable | boolean | false | - | - | Whether ZooKeeper's certificate is looked up by OCSP.
zookeeper.ssl.keystore.location | string | - | - | - | The key store shown to ZooKeeper.
zookeeper.ssl.keystore.password | password | - | - | - | The password of the key store shown to ZooKeeper.
zookeeper.ssl.keystore.type | string | - | - | - | The type of the key store shown to ZooKeeper; taken from the file name if it is not set.
zookeeper.ssl.truststore.location | string | - | - | - | The certificates against which ZooKeeper is checked.
zookeeper.ssl.truststore.password | password | - | - | - | The password of the trust store for ZooKeeper.
zookeeper.ssl.truststore.type | string | - | - | - | The type of the trust store for ZooKeeper; taken from the file name if it is not set.

# KRaft (accepted, without effect here)
controller.quorum.voters | list | "" | - | - | The voters of a KRaft quorum, as id@host:port.
controller.quorum.bootstrap.servers | list | "" | - | - | Where to find a KRaft quorum.
controller.quorum.append.linger.ms | int | 25 | - | - | How long the quorum's leader gathers records.
controller.quorum.election.backoff.max.ms | int | 1000 | - | - | How long a candidate waits at most before the next election.
controller.quorum.election.timeout.ms | int | 1000 | - | - | How long a candidate waits for votes.
controller.quorum.fetch.timeout.ms | int | 2000 | - | - | After how long without a fetch a voter stands for election.
controller.quorum.request.timeout.ms | int | 2000 | - | - | How long a request within the quorum may take.
controller.quorum.retry.backoff.ms | int | 20 | - | - | The pause before a request within the quorum is repeated.
metadata.log.dir | string | - | - | - | Where KRaft keeps its metadata.
metadata.log.max.record.bytes.between.snapshots | long | 20971520 | >=1 | - | After how many bytes a snapshot is taken.
metadata.log.max.snapshot.interval.ms | long | 3600000 | >=0 | - | After how long a snapshot is taken.
metadata.log.segment.bytes | int | 1073741824 | >=12 | - | Segment size of the metadata log.
metadata.log.segment.min.bytes | int | 8388608 | >=12 | internal | The smallest segment size of the metadata log.
metadata.log.segment.ms | long | 604800000 | - | - | After how long a segment of the metadata log is closed.
metadata.max.idle.interval.ms | int | 500 | >=0 | - | How often an idle controller writes a record.
metadata.max.retention.bytes | long | 104857600 | - | - | How large the metadata log and its snapshots may grow.
metadata.max.retention.ms | long | 604800000 | - | - | How long metadata is kept.

# Tiered storage (accepted, without effect here)
remote.log.storage.system.enable | boolean | false | - | - | Whether topics may keep segments in remote storage.
remote.log.storage.manager.class.name | string | - | non-empty | - | The class that stores segments remotely.
remote.log.storage.manager.class.path | string | - | - | - | The class path of remote.log.storage.manager.class.name.
remote.log.storage.manager.impl.prefix | string | rsm.config. | non-empty | - | The prefix of the keys that the class that stores segments receives.
remote.log.metadata.manager.class.name | string | org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager | non-empty | - | The class that remembers which segments are remote.
remote.log.metadata.manager.class.path | string | - | - | - | The class path of remote.log.metadata.manager.class.name.
remote.log.metadata.manager.impl.prefix | string | rlmm.config. | non-empty | - | The prefix of the keys that the class that remembers remote segments receives.
remote.log.metadata.manager.listener.name | string | - | non-empty | - | The listener on which the class that remembers remote segments reaches the nodes.
remote.log.metadata.custom.metadata.max.bytes | int | 128 | >=0 | - | The most bytes that the class that stores segments may keep with a segment.
remote.log.index.file.cache.total.size.bytes | long | 1073741824 | >=1 | cluster | How much disk the indexes of remote segments may take.
remote.log.manager.thread.pool.size | int | 10 | >=1 | - | Threads that follow the leaders' remote segments.
remote.log.manager.copier.thread.pool.size | int | -1 | - | - | Threads that copy segments; -1 for as many as the general pool has.
remote.log.manager.expiration.thread.pool.size | int | -1 | - | - | Threads that delete remote segments; -1 for as many as the general pool has.
remote.log.manager.task.interval.ms | long | 30000 | >=1 | - | The interval between runs of the threads for remote segments.
remote.log.manager.task.retry.backoff.ms | long | 500 | >=1 | internal | The first pause after a failure of a task for remote segments.
remote.log.manager.task.retry.backoff.max.ms | long | 30000 | >=1 | internal | The longest pause after failures of a task for remote segments.
remote.log.manager.task.retry.jitter | double | 0.2 | 0..0.5 | internal | The fraction by which these pauses vary.
remote.log.manager.copy.max.bytes.per.second | long | max | >=1 | cluster | How fast segments are copied.
remote.log.manager.copy.quota.window.num | int | 11 | >=1 | - | How many samples the quota of copying segments keeps.
remote.log.manager.copy.quota.window.size.seconds | int | 1 | >=1 | - | The length of a sample of the quota of copying segments.
remote.log.manager.fetch.max.bytes.per.second | long | max | >=1 | cluster | How fast remote segments are read.
remote.log.manager.fetch.quota.window.num | int | 11 | >=1 | - | How many samples the quota of reading remote segments keeps.
remote.log.manager.fetch.quota.window.size.seconds | int | 1 | >=1 | - | The length of a sample of the quota of reading remote segments.
remote.log.reader.threads | int | 10 | >=1 | - | Threads that read remote segments.
remote.log.reader.max.pending.tasks | int | 100 | >=1 | - | How many reads of remote segments may wait.
remote.fetch.max.wait.ms | int | 500 | >=1 | cluster | How long a fetch waits for remote segments.

# Who may do what
authorizer.class.name | string | "" | - | - | The class that decides who may do what; without one everybody may do everything.
principal.builder.class | class | org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder | - | broker | The class that names the principal of a connection.
delegation.token.secret.key | password | - | - | - | The secret from which delegation tokens are made.
delegation.token.master.key | password | - | - | - | The older name of delegation.token.secret.key.
delegation.token.expiry.time.ms | long | 86400000 | >=1 | - | How long a delegation token is valid without being renewed.
delegation.token.expiry.check.interval.ms | long | 3600000 | >=1 | - | How often expired delegation tokens are looked for and removed.
delegation.token.max.lifetime.ms | long | 604800000 | >=1 | - | How long a delegation token can be renewed.
password.encoder.secret | password | - | - | - | The secret that protects passwords in ZooKeeper.
password.encoder.old.secret | password | - | - | - | The previous password.encoder.secret, while it is being replaced.
password.encoder.cipher.algorithm | string | AES/CBC/PKCS5Padding | - | - | The cipher that protects passwords.
password.encoder.iterations | int | 4096 | >=1024 | - | How many rounds the key that protects passwords is derived in.
password.encoder.key.length | int | 128 | >=8 | - | How many bits the key that protects passwords has.
password.encoder.keyfactory.algorithm | string | - | - | - | How the key that protects passwords is derived.

# SASL
sasl.enabled.mechanisms | list | GSSAPI | - | broker | The SASL mechanisms that a listener offers.
sasl.mechanism.inter.broker.protocol | string | GSSAPI | - | broker | The SASL mechanism between nodes.
sasl.mechanism.controller.protocol | string | GSSAPI | - | - | The SASL mechanism between nodes and KRaft controllers.
sasl.jaas.config | password | - | - | broker | The login module and its options, in JAAS form; here under a listener's and mechanism's prefix.
sasl.client.callback.handler.class | class | - | - | - | The class that answers a mechanism's questions on the client's side.
sasl.server.callback.handler.class | class | - | - | - | The class that answers a mechanism's questions on the server's side.
sasl.server.max.receive.size | int | 524288 | - | - | The largest message before authentication.
sasl.login.class | class | - | - | - | The class that logs in.
sasl.login.callback.handler.class | class | - | - | - | The class that answers a login's questions.
sasl.login.connect.timeout.ms | int | - | - | - | How long connecting to a token endpoint may take.
sasl.login.read.timeout.ms | int | - | - | - | How long reading from a token endpoint may take.
sasl.login.retry.backoff.ms | long | 100 | - | - | The first pause before a login is repeated.
sasl.login.retry.backoff.max.ms | long | 10000 | - | - | The longest pause before a login is repeated.
sasl.login.refresh.buffer.seconds | short | 300 | - | broker | How long before its end a credential is refreshed at the latest.
sasl.login.refresh.min.period.seconds | short | 60 | - | broker | How long a credential is used at least before it is refreshed.
sasl.login.refresh.window.factor | double | 0.8 | - | broker | At what fraction of its life a credential is refreshed.
sasl.login.refresh.window.jitter | double | 0.05 | - | broker | The fraction by which the moment of a refresh varies.
sasl.kerberos.kinit.cmd | string | /usr/bin/kinit | - | broker | The path of kinit.
sasl.kerberos.min.time.before.relogin | long | 60000 | - | broker | How long to sleep between attempts to refresh a ticket.
sasl.kerberos.principal.to.local.rules | list | DEFAULT | - | broker | Rules that shorten Kerberos names.
sasl.kerberos.service.name | string | - | - | broker | The name of the service in Kerberos.
sasl.kerberos.ticket.renew.jitter | double | 0.05 | - | broker | By what fraction the renewal of a ticket is varied.
sasl.kerberos.ticket.renew.window.factor | double | 0.8 | - | broker | At what fraction of its life a ticket is renewed.
sasl.oauthbearer.clock.skew.seconds | int | 30 | - | - | By how much clocks may differ when a token is checked.
sasl.oauthbearer.expected.audience | list | - | - | - | For whom a token must have been issued.
sasl.oauthbearer.expected.issuer | string | - | - | - | Who must have issued a token.
sasl.oauthbearer.jwks.endpoint.url | string | - | - | - | The URL or file of the keys with which tokens are checked.
sasl.oauthbearer.jwks.endpoint.refresh.ms | long | 3600000 | - | - | How often the keys that check tokens are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | long | 100 | - | - | The first pause before the keys that check tokens are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | long | 10000 | - | - | The longest pause before the keys that check tokens are fetched again.
sasl.oauthbearer.scope.claim.name | string | scope | - | - | The claim of a token that holds its scope.
sasl.oauthbearer.sub.claim.name | string | sub | - | - | The claim of a token that holds its subject.
sasl.oauthbearer.token.endpoint.url | string | - | - | - | Where tokens are issued.

# TLS
ssl.client.auth | string | none | required|requested|none | broker | Whether clients must show a certificate, may, or need not.
ssl.protocol | string | TLSv1.3 | - | broker | The TLS protocol.
ssl.provider | string | - | - | broker | The security provider for TLS.
ssl.enabled.protocols | list | TLSv1.2,TLSv1.3 | - | broker | The TLS versions that may be negotiated.
ssl.cipher.suites | list | "" | - | broker | The cipher suites that may be negotiated; empty for all.
ssl.endpoint.identification.algorithm | string | https | - | broker | How a peer's host name is checked; empty for not at all.
ssl.engine.factory.class | class | - | - | broker | The class that makes TLS engines.
ssl.principal.mapping.rules | string | DEFAULT | - | - | Rules that make a short name of a certificate's subject.
ssl.secure.random.implementation | string | - | - | broker | The source of random numbers for TLS.
ssl.allow.dn.changes | boolean | false | - | - | Whether a new key store may have another subject.
ssl.allow.san.changes | boolean | false | - | - | Whether a new key store may have other alternative names.
ssl.keymanager.algorithm | string | SunX509 | - | broker | The algorithm of the key manager.
ssl.keystore.type | string | JKS | - | broker | The type of the key store.
ssl.keystore.location | string | - | - | broker | The file of the key store.
ssl.keystore.password | password | - | - | broker | The password of the key store.
ssl.keystore.key | password | - | - | broker | The private key itself, in PEM form.
ssl.keystore.certificate.chain | password | - | - | broker | The certificate chain itself, in PEM form.
ssl.key.password | password | - | - | broker | The password of the private key.
ssl.trustmanager.algorithm | string | PKIX | - | broker | The algorithm of the trust manager.
ssl.truststore.type | string | JKS | - | broker | The type of the trust store.
ssl.truststore.location | string | - | - | broker | The file of the trust store.
ssl.truststore.password | password | - | - | broker | The password of the trust store.
ssl.truststore.certificates | password | - | - | broker | The trusted certificates themselves, in PEM form.
"""
