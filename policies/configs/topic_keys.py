"""Every config key of topics in Kafka 3.9, a line each.

    name | type | default | valid values (see validators.py) | broker keys that give the default |
    description

The first of the broker's keys that has a value gives the default. `*60000` and `*3600000` convert
minutes and hours to milliseconds.
"""

TABLE = """
cleanup.policy | list | delete | compact|delete | log.cleanup.policy | What happens to old segments: delete drops them, compact keeps the last record of each key.
compression.gzip.level | int | -1 | 1..9,-1 | compression.gzip.level | How hard gzip tries, where compression.type is gzip.
compression.lz4.level | int | 9 | 1..17 | compression.lz4.level | How hard lz4 tries, where compression.type is lz4.
compression.type | string | producer | uncompressed|zstd|lz4|snappy|gzip|producer | compression.type | The codec in which batches are kept, or producer for the one they came in.
compression.zstd.level | int | 3 | -131072..22 | compression.zstd.level | How hard zstd tries, where compression.type is zstd.
delete.retention.ms | long | 86400000 | >=0 | log.cleaner.delete.retention.ms | How long a compacted topic remembers that a key was deleted.
file.delete.delay.ms | long | 60000 | >=0 | log.segment.delete.delay.ms | How long the file of a dropped segment stays on disk.
flush.messages | long | max | >=1 | log.flush.interval.messages | After how many records a log is forced to disk.
flush.ms | long | max | >=0 | log.flush.interval.ms log.flush.scheduler.interval.ms | After how long a log is forced to disk.
follower.replication.throttled.replicas | list | "" | replicas | - | The replicas whose fetching is throttled, as partition:broker pairs; * for all.
index.interval.bytes | int | 4096 | >=0 | log.index.interval.bytes | After how many bytes the index gets an entry.
leader.replication.throttled.replicas | list | "" | replicas | - | The replicas to which sending is throttled, as partition:broker pairs; * for all.
local.retention.bytes | long | -2 | >=-2 | log.local.retention.bytes | How large a partition of tiered storage may grow on the node; -2 for as large as retention.bytes.
local.retention.ms | long | -2 | >=-2 | log.local.retention.ms | How long a partition of tiered storage is kept on the node; -2 for as long as retention.ms.
max.compaction.lag.ms | long | max | >=1 | log.cleaner.max.compaction.lag.ms | After how long a record is compacted at the latest.
max.message.bytes | int | 1048588 | >=0 | message.max.bytes | The largest batch of records that is taken.
message.downconversion.enable | boolean | true | - | log.message.downconversion.enable | Whether older consumers get their batches converted.
message.format.version | string | 3.0-IV1 | version | log.message.format.version | The format of records for clusters older than 3.0; ignored since.
message.timestamp.after.max.ms | long | max | >=0 | log.message.timestamp.after.max.ms | How far a record's time may lie after the node's.
message.timestamp.before.max.ms | long | max | >=0 | log.message.timestamp.before.max.ms | How far a record's time may lie before the node's.
message.timestamp.difference.max.ms | long | max | >=0 | log.message.timestamp.difference.max.ms | How far a record's time may differ from the node's; before and after replace it.
message.timestamp.type | string | CreateTime | CreateTime|LogAppendTime | log.message.timestamp.type | Whose clock gives a record its time: the producer's or the node's.
min.cleanable.dirty.ratio | double | 0.5 | 0..1 | log.cleaner.min.cleanable.ratio | What fraction of a log must be new before it is compacted again.
min.compaction.lag.ms | long | 0 | >=0 | log.cleaner.min.compaction.lag.ms | For how long a record is not compacted.
min.insync.replicas | int | 1 | >=1 | min.insync.replicas | How many replicas must have a record that its producer wants acknowledged by all.
preallocate | boolean | false | - | log.preallocate | Whether a new segment takes its whole size on disk at once.
remote.log.copy.disable | boolean | false | - | - | Whether segments are no longer copied to tiered storage; KRaft only.
remote.log.delete.on.disable | boolean | false | - | - | Whether turning tiered storage off deletes what it holds; KRaft only.
remote.storage.enable | boolean | false | - | - | Whether old segments move to tiered storage.
retention.bytes | long | -1 | - | log.retention.bytes | How large a partition may grow before its oldest segments are dropped; -1 for no limit.
retention.ms | long | 604800000 | >=-1 | log.retention.ms log.retention.minutes*60000 log.retention.hours*3600000 | How long records are kept; -1 for ever.
segment.bytes | int | 1073741824 | >=14 | log.segment.bytes | How large a segment becomes before the next one is begun.
segment.index.bytes | int | 10485760 | >=4 | log.index.size.max.bytes | How large the index of a segment may become.
segment.jitter.ms | long | 0 | >=0 | log.roll.jitter.ms log.roll.jitter.hours*3600000 | By how much segment.ms is shortened at random, lest all segments end at once.
segment.ms | long | 604800000 | >=1 | log.roll.ms log.roll.hours*3600000 | After how long the next segment is begun even if there is room.
unclean.leader.election.enable | boolean | false | - | unclean.leader.election.enable | Whether a replica that is not in sync may lead when no other is left.
"""
