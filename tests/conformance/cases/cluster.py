"""DescribeCluster and ApiVersions, KIP-511's way down included."""

from tests.conformance.case import Case, each_version
from tests.support.wire import request_frame


def software(name: str, version: str = "1.0") -> dict[str, str]:
    return {"client_software_name": name, "client_software_version": version}


def in_version(version: int, written_in: int) -> bytes:
    """An ApiVersions request that says it is of another version than it is."""
    frame = bytearray(request_frame("ApiVersions", written_in, software("a", "1") if written_in >= 3 else {}))
    frame[6:8] = version.to_bytes(2, "big", signed=True)
    return bytes(frame)


CASES = [
    *each_version("cluster", "DescribeCluster", {}),
    *each_version("operations", "DescribeCluster", {"include_cluster_authorized_operations": True}),
    *[Case(f"endpoint type {kind}", "DescribeCluster", 1, {"endpoint_type": kind}) for kind in (0, 1, 2, 3, -1)],
    *each_version("plain", "ApiVersions", software("apache-kafka-java", "3.9.1")),
    *[
        Case(f"software {name!r} {version!r}", "ApiVersions", 3, software(name, version))
        for name, version in [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a-", "1"), ("a", "1/2"), ("a.b-c", "1-x.2")]
    ],
    Case("version 99", "ApiVersions", 0, frame=in_version(99, 3)),
    Case("version 5", "ApiVersions", 0, frame=in_version(5, 4)),
    Case("version 99 with an old header", "ApiVersions", 0, frame=in_version(99, 0)),
    Case("version -1", "ApiVersions", 0, frame=in_version(-1, 0)),
]  # fmt: skip
