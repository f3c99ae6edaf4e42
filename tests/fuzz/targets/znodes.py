"""Znodes with any content: read as what a Kafka writes, or malformed."""

from collections.abc import Callable

from minicontroller.cluster.entities import Partition
from minicontroller.cluster.znodes import (
    acls,
    broker_notifications,
    cluster,
    configs,
    entity_names,
    groups,
    membership,
    registrations,
    requests,
    tokens,
    topics,
)
from minicontroller.cluster.znodes.content import MalformedZnodeError

PARTITION = Partition(replicas=(1, 2, 3), leader=1, leader_epoch=0, isr=(1, 2, 3), partition_epoch=0)


def _topic(data: bytes) -> None:
    topic = topics.decode_topic("a", data)
    assert topics.decode_topic("a", topics.encode_topic(topic)) == topic


def _state(data: bytes) -> None:
    state = topics.decode_partition_state(PARTITION, data, 0)
    assert topics.decode_partition_state(PARTITION, topics.encode_partition_state(state), 0) == state


def _reassignments(data: bytes) -> None:
    wanted = requests.decode_reassignments(data)
    assert requests.decode_reassignments(requests.encode_reassignments(wanted)) == wanted


def _acls(data: bytes) -> None:
    entries = acls.decode_acls(data)
    assert acls.decode_acls(acls.encode_acls(entries)) == entries


def _configs(data: bytes) -> None:
    found = configs.decode_config(data)
    assert configs.decode_config(configs.encode_config(found)) == found


def _token(data: bytes) -> None:
    token = tokens.decode_token("id", data, 0)
    assert tokens.decode_token("id", tokens.encode_token(token), 0) == token


def _group(data: bytes) -> None:
    header = groups.decode_header("g", data, 0)
    written = groups.encode_header(header)
    assert groups.encode_header(groups.decode_header("g", written, 0)) == written


def _offset(data: bytes) -> None:
    offset = groups.decode_offset(data, 0)
    assert groups.decode_offset(groups.encode_offset(offset), 0) == offset


def _broker(data: bytes) -> None:
    broker = registrations.decode_broker(1, data, 7)
    written = registrations.encode_broker(broker, 0)
    assert registrations.encode_broker(registrations.decode_broker(1, written, 7), 0) == written


def _paths(data: bytes) -> None:
    path = data.decode("utf-8", "replace")
    acls.pattern_at(path)
    entity_names.client_entity_at(path)
    entity_names.unsanitized(entity_names.sanitized(path))
    registrations.decode_broker_id(path)


READERS: tuple[Callable[[bytes], object], ...] = (
    _topic,
    _state,
    _reassignments,
    _acls,
    _configs,
    _token,
    _group,
    _broker,
    _paths,
    requests.decode_elections,
    acls.decode_literal_acl_change,
    acls.decode_extended_acl_change,
    broker_notifications.decode_isr_change,
    broker_notifications.decode_log_dir_event,
    cluster.decode_cluster_id,
    cluster.decode_controller,
    cluster.decode_controller_epoch,
    cluster.features_are_disabled,
    cluster.finalized_features,
    cluster.decode_producer_ids,
    configs.decode_config_change,
    tokens.decode_token_change,
    groups.decode_group_change,
    membership.decode_membership,
    _offset,
)
"""The first byte of an input is the place of its reader."""


def read_znode(data: bytes) -> None:
    """A znode is read or malformed, and what was read is the same after it was written."""
    if not data or data[0] >= len(READERS):
        return
    try:
        READERS[data[0]](data[1:])
    except MalformedZnodeError:
        return


def znode_seeds() -> list[bytes]:
    """Return what Kafka writes, for each kind."""
    written: dict[Callable[[bytes], object], list[bytes]] = {
        _topic: [
            (
                b'{"removing_replicas":{"0":[3]},"partitions":{"0":[1,2],"1":[2,3]},'
                b'"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","adding_replicas":{},"version":3}'
            )
        ],
        _state: [b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'],
        _reassignments: [b'{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2]}]}'],
        _acls: [
            b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}'
        ],
        _configs: [b'{"version":1,"config":{"retention.ms":"1"}}'],
        _token: [
            (
                b'{"version":3,"owner":"User:a","tokenRequester":"User:a","renewers":["User:b"],"issueTimestamp":1,'
                b'"maxTimestamp":2,"expiryTimestamp":2,"tokenId":"id"}'
            )
        ],
        _group: [
            (
                b'{"version":1,"group":"g","topics":{"a":{"id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":'
                b'{"0":{"offset":1,"leader_epoch":0,"committed_ms":1,"metadata":""}}}}}'
            )
        ],
        _broker: [
            (
                b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":'
                b'["PLAINTEXT://h:9092"],"jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"1"}'
            )
        ],
        _paths: [b"/kafka-acl/Topic/a", b"/config/users/a%20b/clients/<default>", b"7"],
        requests.decode_elections: [b'{"version":1,"partitions":[{"topic":"a","partition":0}]}'],
        acls.decode_literal_acl_change: [b"Topic:a"],
        acls.decode_extended_acl_change: [
            b'{"version":1,"resourceType":"TOPIC","name":"a","resourcePatternType":"PREFIXED"}'
        ],
        broker_notifications.decode_isr_change: [b'{"version":1,"partitions":[{"topic":"a","partition":0}]}'],
        broker_notifications.decode_log_dir_event: [b'{"version":1,"broker":1,"event":1}'],
        cluster.decode_cluster_id: [b'{"version":"1","id":"9dJzdGvfTPaCY4e8klXaDQ"}'],
        cluster.decode_controller: [b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}'],
        cluster.decode_controller_epoch: [b"1"],
        cluster.features_are_disabled: [b'{"features":{},"status":1,"version":1}'],
        cluster.finalized_features: [
            b'{"features":{"a":{"min_version_level":1,"max_version_level":2}},"status":1,"version":1}'
        ],
        cluster.decode_producer_ids: [b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'],
        configs.decode_config_change: [b'{"version":2,"entity_path":"topics/a"}'],
        membership.decode_membership: [b'{"version":1,"secret":"QUJD"}'],
    }
    return [bytes([number]) + each for number, reader in enumerate(READERS) for each in written.get(reader, [b"id"])]
