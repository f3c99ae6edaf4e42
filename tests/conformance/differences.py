"""The answers and states in which we differ from Kafka 3.9 on purpose: docs/conformance.md gives
the reason of each, under the same name.

A difference turns the recorded answer (normalised) into the one that is expected of us; what it
does not touch must still be equal.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minicontroller.protocol.dry_runs import FEATURE
from tests.conformance.case import Case
from tests.conformance.normal import A_DUMP

Adapt = Callable[[Case, Any], Any]


def a_text(value: Any) -> bool:
    """A text for a human."""
    return isinstance(value, str) and bool(value)


@dataclass(frozen=True)
class Difference:
    name: str
    """The heading in docs/conformance.md that gives the reason."""
    cases: str
    """A pattern that matches the whole key of each case that it concerns."""
    adapt: Adapt


def every_row_refused(rows: str, code: int) -> Adapt:
    """Expect every row of the request to be refused with this code and a text."""

    def adapt(case: Case, recorded: Any) -> Any:
        kept = {"throttle_time_ms": 0} if recorded == "silent" else recorded
        asked = case.body["resources"]
        refused = [
            {
                "error_code": code,
                "error_message": a_text,
                "resource_type": each["resource_type"],
                "resource_name": each["resource_name"],
            }
            for each in asked
        ]
        return {**kept, rows: refused}

    return adapt


def markers_answered(_case: Case, _recorded: Any) -> Any:
    """Each marker of two has its row."""
    rows = [(1, "lea-here", 0), (5, "lea-none", 3)]
    return {
        "markers": [
            {
                "producer_id": number,
                "topics": [{"name": name, "partitions": [{"partition_index": 0, "error_code": code}]}],
            }
            for number, name, code in rows
        ]
    }


def topic_refused(code: int) -> Adapt:
    """The only topic of a CreateTopics request is refused."""

    def adapt(_case: Case, recorded: Any) -> Any:
        (row,) = recorded["topics"]
        empty = {"num_partitions": -1, "replication_factor": -1, "configs": []}
        return {**recorded, "topics": [{**row, **empty, "error_code": code, "error_message": a_text}]}

    return adapt


def refused_as(rows: str, code: int) -> Adapt:
    """The only row of the answer has this code instead, and a text."""

    def adapt(_case: Case, recorded: Any) -> Any:
        (row,) = recorded[rows]
        return {**recorded, rows: [{**row, "error_code": code, "error_message": a_text}]}

    return adapt


def whole_refused_as(code: int) -> Adapt:
    """The request as a whole is refused with this code instead, and a text."""

    def adapt(_case: Case, recorded: Any) -> Any:
        return {**recorded, "error_code": code, "error_message": a_text}

    return adapt


def refused_instead_of_failed(code: int) -> Adapt:
    """A request that Kafka fails to carry out is refused with this code, and a text."""

    def adapt(case: Case, recorded: Any) -> Any:
        return whole_refused_as(code)(case, recorded) if recorded["error_code"] == -1 else recorded

    return adapt


def with_texts(rows: str) -> Adapt:
    """Every row has a text."""

    def adapt(_case: Case, recorded: Any) -> Any:
        return {**recorded, rows: [{**row, "error_message": a_text} for row in recorded[rows]]}

    return adapt


def not_created(code: int) -> Adapt:
    """The only topic of a Metadata request is refused, not on its way."""

    def adapt(_case: Case, recorded: Any) -> Any:
        (row,) = recorded["topics"]
        return {**recorded, "topics": [{**row, "error_code": code}]}

    return adapt


def only_what_is_served(_case: Case, recorded: Any) -> Any:
    """Any part of Kafka's APIs, in Kafka's versions, and APIs that Kafka has in its newer form
    only.
    """
    if recorded == "closed" or not recorded["api_keys"]:
        return recorded
    kafkas = {key["api_key"]: key for key in recorded["api_keys"]}

    def in_kafkas_versions(keys: Any) -> bool:
        """A list of APIs in the versions of Kafka, the admin APIs among them."""
        ours = {key["api_key"]: key for key in keys}
        return set(ours) >= ADMIN_APIS and all(key == kafkas.get(number, key) for number, key in ours.items())

    return {**recorded, "api_keys": in_kafkas_versions}


def with_our_feature(_case: Case, recorded: Any) -> Any:
    if recorded == "closed" or not recorded["api_keys"]:
        return recorded
    return {**recorded, "supported_features": [{"name": FEATURE, "min_version": 1, "max_version": 1}]}


def answered_with_35(_case: Case, _recorded: Any) -> Any:
    """Expect the answer to a version that is too high."""
    return {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}


def clearer(text: str) -> Adapt:
    """Every text that matches this pattern as a whole is a text of ours."""

    def adapt(case: Case, recorded: Any) -> Any:
        if isinstance(recorded, dict):
            return {key: adapt(case, value) for key, value in recorded.items()}
        if isinstance(recorded, list):
            return [adapt(case, each) for each in recorded]
        return a_text if isinstance(recorded, str) and re.fullmatch(text, recorded) else recorded

    return adapt


def one_acl_refused(_case: Case, recorded: Any) -> Any:
    (row,) = recorded["results"]
    return {**recorded, "results": [{**row, "error_code": 42, "error_message": a_text}]}


def not_for_clients(_case: Case, recorded: Any) -> Any:
    return {**recorded, "error_code": 31}


def refused_partitions(case: Case, recorded: Any) -> Any:
    """Every partition of the request with GROUP_AUTHORIZATION_FAILED."""
    return {
        **recorded,
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    {"partition_index": index, "committed_offset": -1, "metadata": "", "error_code": 30}
                    for index in topic["partition_indexes"]
                ],
            }
            for topic in case.body["topics"]
        ],
    }


CHALLENGE = "a challenge with 4096 iterations and a nonce that continues the one of the client"


def challenged(_case: Case, recorded: Any) -> Any:
    """Kafka's refusal of the first message becomes a challenge."""
    return {**recorded, "error_code": 0, "error_message": "", "auth_bytes": CHALLENGE}


def login_refused(_case: Case, _recorded: Any) -> Any:
    return {"error_code": 58, "error_message": a_text, "auth_bytes": "", "session_lifetime_ms": 0}


def closed(_case: Case, _recorded: Any) -> Any:
    return "closed"


def answered_with_versions(_case: Case, _recorded: Any) -> Any:
    def some_apis(keys: Any) -> bool:
        """A list of the admin APIs and perhaps others."""
        return {key["api_key"] for key in keys} >= ADMIN_APIS

    return {"error_code": 0, "api_keys": some_apis}


def token_refused(_case: Case, recorded: Any) -> Any:
    recorded = {**recorded, "principal_name": "bob", "token_requester_principal_name": "admin", "principal_type": ""}
    times = dict.fromkeys(("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"), -1)
    return {**recorded, **times, "error_code": 67, "token_id": "", "hmac": ""}


def volumes_unknown(_case: Case, recorded: Any) -> Any:
    results = [{**row, "total_bytes": -1, "usable_bytes": -1} for row in recorded["results"]]
    return {**recorded, "results": results}


def with_its_id(_case: Case, recorded: Any) -> Any:
    made, refused = recorded["topics"]
    return {**recorded, "topics": [{**made, "topic_id": f"id of {made['name']}"}, refused]}


def until_its_end(_case: Case, recorded: Any) -> Any:
    return {**recorded, "expiry_timestamp_ms": "10080 minutes after it was issued"}


def no_rows(rows: str) -> Adapt:
    """A request that is refused as a whole has no rows."""

    def adapt(_case: Case, recorded: Any) -> Any:
        return {**recorded, rows: []} if recorded["error_code"] else recorded

    return adapt


def no_group(_case: Case, recorded: Any) -> Any:
    (group,) = recorded["groups"]
    return {**recorded, "groups": [{**group, "group_state": "Dead"}]}


def no_group_to_delete(_case: Case, recorded: Any) -> Any:
    (row,) = recorded["results"]
    return {**recorded, "results": [{**row, "error_code": 69}]}


REFUSED_ACLS = "blank principal|no type in principal|any operation|any permission|any type|match|any pattern"
UNKNOWN_TOKENS = "by (an unknown token|a token that is no user|tokenauth=false|a removed token)"
UNKNOWN_USERS = "SCRAM-SHA-(256|512) (unknown user|user of PLAIN|a comma in the name)"
ADMIN_APIS = (
    {
        2,
        3,
        10,
        15,
        16,
        17,
        18,
        19,
        20,
        29,
        30,
        31,
        32,
        33,
        34,
        35,
        36,
        37,
        38,
        39,
        40,
        41,
        43,
        44,
        45,
        46,
        48,
        49,
        50,
        51,
        60,
    }
    | {8, 9, 21, 42, 47}
    | {13, 22, 27, 57, 61, 65, 66, 68, 69}
)
SERVED = r"ApiVersions-v[0-4]-(plain|software 'a\.b-c' '1-x\.2'|.*, (step [0-9]|after))"

DIFFERENCES = [
    Difference("no-volumes", "DescribeLogDirs-v4-.*", volumes_unknown),
    Difference(
        "server-error-for-a-request", "IncrementalAlterConfigs-v.-append unknown config", refused_as("responses", 40)
    ),
    Difference(
        "server-error-for-a-request",
        "IncrementalAlterConfigs-v.-(unknown operation|logger with another operation|"
        "unknown topic before unknown operation)",
        refused_as("responses", 42),
    ),
    Difference("server-error-for-a-request", "CreatePartitions-v3-(dot|empty name)", refused_as("results", 3)),
    Difference(
        "server-error-for-a-request",
        "DescribeClientQuotas-v1-((strict )?(nobody|unknown match|negative match|empty .*)|step [0-9]+)",
        refused_instead_of_failed(42),
    ),
    Difference(
        "server-error-for-a-request", r"AlterClientQuotas-v1-(dry )?SCRAM-SHA-256=1\.0", refused_as("entries", 42)
    ),
    Difference(
        "a-text-where-kafka-has-none",
        "DeleteTopics-v6-.*id and name in one|DeleteTopics-v6-empty name and id in one",
        with_texts("responses"),
    ),
    Difference("only-what-is-served", SERVED, only_what_is_served),
    Difference("a-feature-of-ours", SERVED.replace("[0-4]", "[34]"), with_our_feature),
    Difference("blocks-for-nodes-only", "AllocateProducerIds-.*", not_for_clients),
    Difference("no-refusal-unsaid", "OffsetFetch-v1-alice: .*, offsets", refused_partitions),
    Difference("old-header-of-a-new-version", "ApiVersions-v0-version 99 with an old header", answered_with_35),
    Difference("no-request-unanswered", "AlterConfigs-v2-topic twice", every_row_refused("responses", 42)),
    Difference("no-request-unanswered", "WriteTxnMarkers-v1-some markers here", markers_answered),
    Difference(
        "unusable-placement",
        "CreateTopics-v7-placed (at -1|on unknown node|on negative node|nowhere|partition twice)",
        topic_refused(39),
    ),
    Difference("longest-text", "CreateTopics-v7-longest string", refused_as("topics", 17)),
    Difference("longest-text", "CreatePartitions-v3-longest string", refused_as("results", 3)),
    Difference("no-topic-by-the-back-door", "Metadata-v12-create cluster metadata", not_created(17)),
    Difference("no-dump-of-objects", "(.*-alice: .*(acl|acls|reassignments|topics)|.*-step [0-9]+)", clearer(A_DUMP)),
    Difference("no-dump-of-objects", "CreateTopics-.*", clearer(r"Duplicate replica assignment found: HashMap.*")),
    Difference("reason-named", "(DescribeConfigs|FindCoordinator)-.*", clearer("This most likely occurs because .*")),
    Difference("reason-named", "CreateAcls-.*", clearer("Failed to create ACL")),
    Difference("reason-named", "IncrementalAlterConfigs-v1-logger of '-1'", clearer("Unexpected node id.*")),
    Difference("one-acl-refused", f"CreateAcls-v3-admin: create ({REFUSED_ACLS})", one_acl_refused),
    Difference("nobody-learns-who-is-known", f"SaslAuthenticate-v2-({UNKNOWN_TOKENS}), first", challenged),
    Difference("nobody-learns-who-is-known", f"SaslAuthenticate-v2-({UNKNOWN_TOKENS}), final", login_refused),
    Difference("nobody-learns-who-is-known", f"SaslAuthenticate-v2-{UNKNOWN_USERS}, step 2", challenged),
    Difference("nobody-learns-who-is-known", f"SaslAuthenticate-v2-{UNKNOWN_USERS}, step 3", login_refused),
    Difference("versions-asked-again", "ApiVersions-v0-versions twice, step 2", answered_with_versions),
    Difference("closed-in-the-middle-of-a-login", "Metadata-v12-topics after the handshake, step 2", closed),
    Difference(
        "closed-in-the-middle-of-a-login", "ApiVersions-v0-topics after the handshake, step 3", answered_with_versions
    ),
    Difference("login-bound-to-its-beginning", "SaslAuthenticate-v2-.* another binding, step 3", login_refused),
    Difference("login-bound-to-its-beginning", "Metadata-v12-.* another binding, step 4", closed),
    Difference(
        "tokens-of-nobody", "SaslAuthenticate-v2-by (an expired token|the token of a group), final", login_refused
    ),
    Difference("tokens-of-nobody", "CreateDelegationToken-v3-admin: for bob of (no kind|null)", token_refused),
    Difference("tokens-of-nobody", "RenewDelegationToken-v2-alice: renew for ever", until_its_end),
    Difference("tokens-of-nobody", "ExpireDelegationToken-v2-alice: expire never", until_its_end),
    Difference("id-of-a-created-topic", "CreateTopics-v7-alice: own topics", with_its_id),
    Difference("users-without-names", "DescribeUserScramCredentials-v0-(alice: .*|step [0-9]+)", no_rows("results")),
    Difference("no-group-of-nothing", "DescribeGroups-v5-a group of nothing", no_group),
    Difference("no-group-of-nothing", "DeleteGroups-v2-a group of nothing", no_group_to_delete),
    Difference("not-a-number", "CreateTopics-v7-config .*=NaN", topic_refused(40)),
    Difference(
        "not-a-number", r"AlterClientQuotas-v1-(dry )?request_percentage=(-1\.0|nan)", refused_as("entries", 42)
    ),
]


def on_purpose(case: Case, recorded: Any) -> Any:
    """The recorded answer, changed by every difference that concerns the case."""
    return concerning(case, recorded)[1]


def concerning(case: Case, recorded: Any) -> tuple[set[str], Any]:
    """Return the names of the differences that change the answer to a case, and what they make of
    it.
    """
    names = set()
    for difference in DIFFERENCES:
        if re.fullmatch(difference.cases, case.key):
            adapted = difference.adapt(case, recorded)
            names |= {difference.name} if adapted != recorded else set()
            recorded = adapted
    return names, recorded


@dataclass(frozen=True)
class StateDifference:
    name: str
    """The heading in docs/conformance.md that gives the reason."""
    keys: str
    """A pattern that matches the whole key of each entry of the state that it concerns."""
    explains: Callable[[str | None, str | None], bool] = lambda theirs, ours: theirs != ours


def only_kafkas(theirs: str | None, ours: str | None) -> bool:
    return theirs is not None and ours is None


def only_ours(theirs: str | None, ours: str | None) -> bool:
    return theirs is None and ours is not None


OF_OURS = (',"INTERNAL":"SASL_PLAINTEXT"', ',"INTERNAL://127.0.0.1:<port>"', ',"minicontroller":1')
"""The listener for requests between nodes, and the mark, in a registration."""


def a_node_of_ours(theirs: str | None, ours: str | None) -> bool:
    """Whether a registration is Kafka's but for a listener and a mark."""
    if ours is None or not all(part in ours for part in OF_OURS):
        return False
    for part in OF_OURS:
        ours = ours.replace(part, "", 1)
    return ours == theirs


def in_other_order(theirs: str | None, ours: str | None) -> bool:
    """Whether only the keys or the ACLs of a JSON document come in another order."""
    if theirs is None or ours is None or sorted(theirs) != sorted(ours):
        return False
    try:
        return bool(ordered(json.loads(theirs)) == ordered(json.loads(ours)))
    except ValueError:
        return False


def joined_in_other_order(theirs: str | None, ours: str | None) -> bool:
    """Whether replicas of equal partitions have come into the ISR in another order."""
    if theirs is None or ours is None:
        return False
    try:
        return bool(with_sorted_isr(json.loads(theirs)) == with_sorted_isr(json.loads(ours)))
    except ValueError:
        return False


def with_sorted_isr(part: Any) -> Any:
    if isinstance(part, list):
        return [with_sorted_isr(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: sorted(value) if key in ("isr", "isr_nodes") and isinstance(value, list) else with_sorted_isr(value)
        for key, value in part.items()
    }


def ordered(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: ordered(value) for key, value in part.items()}
    return sorted(part, key=str) if isinstance(part, list) and part and isinstance(part[0], dict) else part


STATE_DIFFERENCES = [
    StateDifference("registrations-of-our-nodes", r"/brokers/ids/[0-9]+", a_node_of_ours),
    StateDifference("security-that-may-be-switched-on", "/(delegation_token|kafka-acl)(/.*)?", only_ours),
    StateDifference("security-that-may-be-switched-on", "/kafka-acl-(changes|extended.*)", only_ours),
    StateDifference("no-topic-by-the-back-door", ".*__cluster_metadata.*", only_kafkas),
    StateDifference("nothing-to-announce", "/config/changes/config_change_<number> .*", only_kafkas),
    StateDifference("order-within-a-znode", "/(config|kafka-acl|kafka-acl-extended)/.*", in_other_order),
    StateDifference("order-of-replicas-in-sync", "/brokers/topics/.*/state|Metadata of .*", joined_in_other_order),
    StateDifference("offsets-in-one-place", "/consumers/.*", only_kafkas),
    StateDifference("tokens-of-nobody", "/delegation_token/.*of no kind.*", only_kafkas),
    StateDifference("tokens-of-nobody", "/delegation_token/token_changes/.*for a group.*", only_kafkas),
    StateDifference("not-a-number", "/config/users/quotas-n"),
]


def state_difference(key: str, theirs: str | None, ours: str | None) -> str | None:
    """Return the name of the difference on purpose that explains an entry, if there is one."""
    for each in STATE_DIFFERENCES:
        if re.fullmatch(each.keys, key) and each.explains(theirs, ours):
            return each.name
    return None
