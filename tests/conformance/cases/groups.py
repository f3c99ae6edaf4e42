"""FindCoordinator, ListGroups and DescribeGroups on a cluster that has no groups.

The group coordinator's topic is placed by hand, so that node 1 coordinates every group; the
transactions' topic is left to be made.
"""

from tests.conformance.case import Case, creation, each_version, new_topic

OFFSETS = new_topic(
    "__consumer_offsets", placed={0: [1], 1: [1], 2: [1], 3: [1]}, configs={"cleanup.policy": "compact"}
)


def find(name: str, *keys: str, kind: int = 0, settles: bool = False, random_placement: bool = False) -> list[Case]:
    """Return requests of FindCoordinator: versions up to 3 seek one key, later ones many."""
    return [
        *[
            Case(
                name,
                "FindCoordinator",
                version,
                {"key": keys[0], **({"key_type": kind} if version else {})},
                settles=settles,
                random_placement=random_placement,
            )
            for version in range(4)
        ],
        *[
            Case(
                name,
                "FindCoordinator",
                version,
                {"coordinator_keys": list(keys), "key_type": kind},
                settles=settles,
                random_placement=random_placement,
            )
            for version in range(4, 7)
        ],
    ]


CASES = [
    *each_version("groups without a coordinator", "ListGroups", {}),
    Case("group without a coordinator", "DescribeGroups", 5, {"groups": ["g"]}, node_1=True),
    Case("setup groups", "CreateTopics", 7, creation(OFFSETS)),
    Case("internal", "Metadata", 12, {"topics": [{"name": "__consumer_offsets"}], "allow_auto_topic_creation": False}, once_led=("__consumer_offsets",)),
    *find("group", "g", "another", "g", settles=True),
    *find("empty group", "", settles=True),
    *find("share", "g", kind=2),
    *find("share with a proper key", "g:11111111-2222-3333-4444-555555555555:0", kind=2),
    *find("unknown kind", "g", kind=3),
    *find("negative kind", "g", kind=-1),
    *[Case("no keys", "FindCoordinator", version, {"coordinator_keys": []}) for version in range(4, 7)],
    *each_version("groups", "ListGroups", {}),
    *each_version("states", "ListGroups", {"states_filter": ["Stable", "empty", "nonsense"]}, since=4),
    Case("types", "ListGroups", 5, {"types_filter": ["Classic"]}),
    Case("unknown types", "ListGroups", 5, {"types_filter": ["nonsense", "consumer"]}),
    *each_version("unknown", "DescribeGroups", {"groups": ["g"]}, settles=True, node_1=True),
    *each_version("none", "DescribeGroups", {"groups": []}, node_1=True),
    *each_version("several", "DescribeGroups", {"groups": ["b", "a", "b"]}, node_1=True),
    *each_version("empty name", "DescribeGroups", {"groups": [""]}, node_1=True),
    *each_version("operations", "DescribeGroups", {"groups": ["g"], "include_authorized_operations": True}, since=3, node_1=True),
    # Its topic has to be made first: asked until there is an answer.
    *find("transaction", "t", kind=1, settles=True, random_placement=True),
    Case("transactions' topic", "Metadata", 12, {"topics": [{"name": "__transaction_state"}], "allow_auto_topic_creation": False}, random_placement=True, once_led=("__transaction_state",)),
    Case("transactions' configs", "DescribeConfigs", 4, {"resources": [{"resource_type": 2, "resource_name": "__transaction_state"}]}),
]  # fmt: skip
