"""`python -m benchmarks.describing`: how fast everything is described in a cluster with 10,000
partitions and 10,000 ACLs, beside a real Kafka.

Rule: each row is what a client sends to describe all of a kind, in the newest version of Kafka 3.9,
over and over to the controller's node, by one client who may do everything. The systems are up side
by side and take turns; ratios are taken within a round. The things in each answer are counted once.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.config_resources import ResourceType
from minicontroller.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from minicontroller.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from minicontroller.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from minicontroller.protocol.messages.list_offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct

from . import messages
from .cluster import Cluster, batches
from .driver import DriverError, over_and_over
from .turns import NODES, creation, frame, in_turns, running, say, wait_until

SYSTEMS: Final = ("minicontroller-memory", "minicontroller-zookeeper", "kafka")
TOPICS, PARTITIONS, ACLS_OF_A_TOPIC = 1000, 10, 10
TOPICS_A_REQUEST = 50
"""A real Kafka must answer requests before the driver gives up."""
ROUNDS, SECONDS = 5, 1.0
CONFIGS: Final = {"retention.ms": "3600000", "cleanup.policy": "compact"}
SETTINGS: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
NAMES: Final = [f"described-{number:04}" for number in range(TOPICS)]
ALL: Final = TOPICS * PARTITIONS


@dataclass(frozen=True)
class Row:
    """The requests that describe all of a kind, and how many things their answers describe."""

    key: ApiKey
    version: int
    requests: Sequence[WireStruct]
    count: Callable[[WireStruct], int]
    expected: int

    @property
    def frames(self) -> list[bytes]:
        return [frame(self.key, self.version, request) for request in self.requests]

    def check(self, answers: Sequence[bytes]) -> None:
        found = sum(self.count(KAFKA.decode_response(self.key, self.version, answer)[1]) for answer in answers)
        if found != self.expected:
            raise DriverError(f"{self.key.name} describes {found} of {self.expected}")


def of_metadata(response: WireStruct) -> int:
    assert isinstance(response, MetadataResponse)
    return sum(len(topic.partitions) for topic in response.topics if not topic.error_code)


def of_configs(response: WireStruct) -> int:
    assert isinstance(response, DescribeConfigsResponse)
    return sum(bool(result.configs) for result in response.results if not result.error_code)


def of_acls(response: WireStruct) -> int:
    assert isinstance(response, DescribeAclsResponse)
    return sum(len(resource.acls) for resource in response.resources)


def of_log_dirs(response: WireStruct) -> int:
    assert isinstance(response, DescribeLogDirsResponse)
    topics = (topic for result in response.results if not result.error_code for topic in result.topics)
    return sum(len(topic.partitions) for topic in topics)


def of_offsets(response: WireStruct) -> int:
    assert isinstance(response, ListOffsetsResponse)
    return sum(not row.error_code for topic in response.topics for row in topic.partitions)


EVERY_ACL = DescribeAclsRequest(
    resource_type_filter=AclResourceType.ANY,
    resource_name_filter=None,
    pattern_type_filter=PatternType.ANY,
    principal_filter=None,
    host_filter=None,
    operation=AclOperation.ANY,
    permission_type=PermissionType.ANY,
)


def replicas(partition: int) -> list[int]:
    return [partition % NODES + 1]


def rows(cluster: Cluster) -> dict[str, Row]:
    """Return what the controller's node is asked, which leads a third of the partitions."""
    own = [index for index in range(PARTITIONS) if replicas(index) == [cluster.controller]]
    resources = [
        DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=None)
        for name in NAMES
    ]
    offsets = [ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP) for index in own]
    every_offset = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=offsets) for name in NAMES]
    )
    return {
        "Metadata": Row(
            ApiKey.METADATA, 12, [MetadataRequest(topics=None, allow_auto_topic_creation=False)], of_metadata, ALL
        ),
        "DescribeConfigs": of_all_configs(DescribeConfigsRequest(resources=resources)),
        "DescribeConfigs, all about them": of_all_configs(
            DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
        ),
        "DescribeAcls": Row(ApiKey.DESCRIBE_ACLS, 3, [EVERY_ACL], of_acls, TOPICS * ACLS_OF_A_TOPIC),
        "DescribeLogDirs": Row(
            ApiKey.DESCRIBE_LOG_DIRS, 4, [DescribeLogDirsRequest(topics=None)], of_log_dirs, TOPICS * len(own)
        ),
        "ListOffsets": Row(ApiKey.LIST_OFFSETS, 9, [every_offset], of_offsets, TOPICS * len(own)),
    }


def of_all_configs(request: DescribeConfigsRequest) -> Row:
    return Row(ApiKey.DESCRIBE_CONFIGS, 4, [request], of_configs, TOPICS)


def fill(cluster: Cluster) -> None:
    """Create the topics and the ACLs."""
    say(f"{cluster.system.name}: topics and ACLs are created")
    for names in batches(NAMES, TOPICS_A_REQUEST):
        messages.check_created(cluster.at_controller.call(creation(names, PARTITIONS, replicas, CONFIGS)))
        check_acls_created(cluster.at_controller.call(acl_creation(names)))
    cluster.wait_led(messages.metadata(None), TOPICS, PARTITIONS)
    acls = rows(cluster)["DescribeAcls"]
    wait_until(lambda: every_acl_shown(acls, cluster.at_controller.call(acls.frames[0])))


def acl_creation(names: Sequence[str]) -> bytes:
    creations = [
        AclCreation(
            resource_type=AclResourceType.TOPIC,
            resource_name=name,
            principal=f"User:team-{number}",
            host="*",
            operation=AclOperation.READ,
            permission_type=PermissionType.ALLOW,
        )
        for name in names
        for number in range(ACLS_OF_A_TOPIC)
    ]
    return frame(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations=creations))


def check_acls_created(answer: bytes) -> None:
    _, response = KAFKA.decode_response(ApiKey.CREATE_ACLS, 3, answer)
    assert isinstance(response, CreateAclsResponse)
    if codes := {result.error_code for result in response.results} - {0}:
        raise DriverError(f"ACLs are refused: {codes}")


def every_acl_shown(acls: Row, answer: bytes) -> bool:
    _, response = KAFKA.decode_response(acls.key, acls.version, answer)
    return acls.count(response) == acls.expected


def described(seconds: float, cluster: Cluster, _turn: int) -> dict[str, float]:
    """Return for each row how often a second everything was described."""
    rates = {}
    for name, row in rows(cluster).items():
        repeated = over_and_over(cluster.at_controller, row.frames, seconds=seconds)
        row.check(repeated.answers)
        rates[name] = repeated.rate
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", action="append", choices=SYSTEMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each row in each round")
    asked = parser.parse_args()
    with running(asked.systems or SYSTEMS, SETTINGS) as clusters:
        for cluster in clusters.values():
            fill(cluster)
        results = in_turns(clusters, asked.rounds, partial(described, asked.seconds))
    for row in next(iter(results.values()))[0]:
        cells = []
        for name, rounds in results.items():
            cells.append(f"{name} {statistics.median(rates[row] for rates in rounds):.1f}/s")
            if "kafka" in results and name != "kafka":
                ratios = [own[row] / peer[row] for own, peer in zip(rounds, results["kafka"], strict=True)]
                cells[-1] += f" ({statistics.median(ratios):.1f} times)"
        print(f"{row}: {', '.join(cells)}")


if __name__ == "__main__":
    main()
