"""What no request can ever meet is a mistake, with its place and what to write instead; what only
some clusters have is a warning; and what somebody may mean is neither.
"""

from pathlib import Path

import pytest

from minicontroller.policies.rules.ruleset import read_rule_files
from tests.rules.reading import condition, mistakes, rules

NIGHT = 'request.time > timestamp("2026-12-02T00:00:00Z") && request.time < timestamp("2026-12-01T00:00:00Z")'


def bound(key: str, bounds: str) -> str:
    return f'[[config_bounds]]\nconfigs = {{ "{key}" = {{ {bounds} }} }}\n'


def table(kind: str, text: str) -> str:
    return f"[[{kind}]]\n{text}\n"


MISTAKEN: list[tuple[str, str]] = [
    # names and values of configs
    (bound("retention.sm", "max = 5"), "2:13: retention.sm is no config of Kafka; did you mean retention.ms?"),
    (bound("retention_ms", "max = 5"), "did you mean retention.ms?"),
    (bound("Min.Insync.Replicas", "min = 2"), "did you mean min.insync.replicas?"),
    (bound("log.retention.ms", "max = 5"), "is a key of brokers, which no topic has; did you mean retention.ms?"),
    (bound("num.partitions", "max = 5"), "num.partitions is a key of brokers, which no topic has"),
    (bound("cleanup.policy", 'allowed = ["deleet"]'), "allowed: 'deleet' is no value of cleanup.policy; did you mean delete?"),
    (bound("cleanup.policy", 'allowed = ["compact,delet"]'), "did you mean delete?"),
    (bound("compression.type", 'allowed = ["gzip", "ztsd"]'), "allowed: 'ztsd' is no value of compression.type; did you mean zstd?"),
    (bound("unclean.leader.election.enable", "max = 0"), "2:50: max is a limit of numbers, but unclean.leader.election.enable is a boolean: give allowed"),
    (bound("unclean.leader.election.enable", 'allowed = "no"'), "'no' is no value of unclean.leader.election.enable, which takes true, false"),
    (bound("cleanup.policy", "min = 1"), "min is a limit of numbers, but cleanup.policy is a list"),
    (bound("retention.ms", "min = -2"), "min: '-2' is no value of retention.ms: value must be at least -1"),
    (bound("min.insync.replicas", "max = 0"), "max: '0' is no value of min.insync.replicas"),
    (bound("min.cleanable.dirty.ratio", "max = 2"), "max: '2' is no value of min.cleanable.dirty.ratio"),
    (bound("segment.bytes", "max = 4294967296"), "max: '4294967296' is no value of segment.bytes: not a number of type INT"),
    (bound("retention.ms", "min = 5, max = 4"), "min 5 is more than max 4"),
    (bound("retention.ms", 'allowed = ["7d"]'), "allowed: '7d' is no value of retention.ms"),
    (bound("retention.ms", 'min = 1000, allowed = ["5", "5000"]'), "allowed: 5 is outside of min and max"),
    (bound("message.timestamp.type", 'allowed = ["createtime"]'), "did you mean CreateTime?"),
    (condition('after.configs["retention.sm"] == "5"'), "condition names retention.sm, which is no config of Kafka; did you mean retention.ms?"),
    (condition('"retention.sm" in after.configs'), "did you mean retention.ms?"),
    (condition('after.raw_configs["cleanup.policy"] == "deleet"'), "condition compares cleanup.policy with what it never is: 'deleet'"),
    (condition('after.effective_configs["cleanup.policy"] in ["delete", "compat"]'), "did you mean compact?"),
    (condition('after.configs["preallocate"] == "TRUE"'), "compares preallocate with 'TRUE', which rules see as 'true'"),
    (condition('after.configs["retention.ms"] == "7 days"'), "compares retention.ms with what it never is"),
    (condition('after.effective_configs["retention.ms"] > "9"'), "compares retention.ms as text, in which 10 is less than 9: convert it with int(...)"),
    (condition('int(after.configs["cleanup.policy"]) > 1'), "converts cleanup.policy to a number, which is a list"),
    (condition('int(after.effective_configs["min.cleanable.dirty.ratio"]) > 1'), "use double(...)"),
    (condition('request.config_operations["log.retention.ms"] == "5"'), "is a key of brokers"),
    (condition('request.config_operation_kinds["retention.ms"] == "remove"'), "no kind of operation"),
    # times
    (condition('request.time < timestamp("2026-12-01")'), "5:41: condition gives timestamp '2026-12-01', which it cannot read: a time has a zone, such as 2026-12-01T00:00:00Z"),
    (condition('request.time < timestamp("2026-12-01T00:00:00")'), "a time has a zone"),
    (condition('request.time < timestamp("2026-13-01T00:00:00Z")'), "which it cannot read"),
    (condition('request.time < timestamp("tomorrow")'), "which it cannot read"),
    (condition('request.time - request.created > duration("1d")', operations='"delete"'), "a duration has the units h, m, s and ms"),
    (condition("request.time.getHours() >= 25"), "compares getHours(), which is 0 to 23, with 25"),
    (condition("request.time.getMonth() == 12"), "compares getMonth(), which is 0 to 11, with 12"),
    (condition("request.time.getDayOfWeek() in [5, 7]"), "compares getDayOfWeek(), which is 0 to 6, with 7"),
    (condition(NIGHT), "is about times before 2026-12-01T00:00:00+00:00 and after 2026-12-02T00:00:00+00:00, which none is"),
    (table("change_window", "hours = '09:00-09:00'"), "a window that is never open"),
    (table("change_window", "days = 'monday'"), "days has 'monday'"),
    (table("change_window", "hours = '9-17'"), "takes times such as 09:00-17:00"),
    (table("deletion_age", "min = '2h'\nmax = '1h'"), "min is more than max"),
    # principals, hosts
    (condition('principal == "alice"'), "5:29: condition names 'alice', which can match no principal: write it with its type, as User:alice"),
    (condition('principal != "alice"'), "User:alice"),
    (condition('principal in ["User:a", "bob"]'), "names 'bob', which can match no principal"),
    (condition('principal == "user:alice"'), "can match no principal; did you mean User:alice?"),
    (condition('principal.startsWith("team-")'), "write it with its type, as User:team-"),
    (condition('principal.matches("^alice$")'), "User:alice"),
    (condition('request.client_host == "localhost"'), "can match no client: no IP address has 'l' in it"),
    (condition('request.client_host.startsWith("10.0.0.0/8")'), "no IP address has '/' in it"),
    (table("partitions", "max = 1\nexcept_principals = 'alice'"), "3:1: except_principals: 'alice' can match no principal: write it with its type, as User:alice"),
    (table("partitions", "max = 1\nprincipals = ['User:a', 'user:b']"), "did you mean User:b?"),
    (table("partitions", "max = 1\nprincipals = 'team-*'"), "write it with its type"),
    (table("partitions", "max = 1\nprincipals = '/alice/'"), "User:alice"),
    (table("partitions", "max = 1\nprincipals = 'User:a'\nexcept_principals = ['User:a', 'User:b']"), "except_principals leaves nothing that the rule could be about"),
    (table("partitions", "max = 1\nexcept_topics = '*'"), "except_topics leaves nothing"),
    (table("partitions", "max = 1\nhosts = '10.0.0.0/8'"), "no IP address has '/' in it"),
    (table("partitions", "max = 1\nhosts = '10.0.0.256'"), "it is no IP address"),
    # APIs, kinds, operations, fields
    (condition('request.api == "CreateTopic"'), "names 'CreateTopic', which is no API that rules judge; did you mean CreateTopics?"),
    (condition('request.api in ["DeleteTopics", "Fetch"]'), "names 'Fetch', which is no API that rules judge"),
    (condition('request.api.startsWith("create")'), "names 'create', which is no API that rules judge"),
    (condition('request.kind == "acls"', operations='"acls"'), "no kind of resource; did you mean acl?"),
    (condition('request.election_type == "uncleen"', operations='"elect_leaders"'), "no kind of election; did you mean unclean?"),
    (condition('request.operation == "creat"'), "did you mean create?"),
    (condition('request.topik == "a"'), "request has no topik; did you mean topic?"),
    (condition('after.num_partitions == "3"'), "are never equal"),
    (condition("after.num_partitions / 0 > 1"), "divides by 0"),
    # topics, placeholders, patterns
    (table("name_pattern", "pattern = '{team}[.].*'"), "2:1: pattern has the placeholder {team}, which stands for nothing; there is {user}"),
    (table("name_pattern", "pattern = 'orders#[a-z]+'"), "pattern can match no topic: it has '#' in it, and no name has that"),
    (table("name_pattern", "pattern = 'team/.+'"), "it has '/' in it"),
    (table("partitions", "max = 1\ntopics = '/orders:.*/'"), "it has ':' in it"),
    (table("partitions", "max = 1\ntopics = '{team}.*'"), "has the placeholder {team}"),
    (table("partitions", "max = 1\nmessage = 'Ask {team}.'"), "message has the placeholder {team}, which stands for nothing: message_expression can name"),
    (table("quota", "owned = '{principal}.*'\nmax_topics = 1"), "owned has the placeholder {principal}"),
    (condition('request.topic.startsWith("team/")'), "can match no topic: no name has '/' in it"),
    (condition('request.topic.matches("^team:.*$")'), "can match no topic: it has ':' in it"),
    (condition('request.topic == ""'), "is the name of no topic"),
    (table("protected_operations", "operations = 'acls'\nresources = 'orders*'"), "can match no ACL: these are named TYPE:PATTERN:NAME, such as Topic:LITERAL:orders*"),
    (table("protected_operations", "operations = 'acls'\nresources = 'topic:LITERAL:orders'"), "can match no ACL"),
    (table("protected_operations", "operations = 'alter_client_quotas'\nresources = 'alice'"), "such as user=alice"),
    # rules as a whole
    (condition("false", more="message = 'a'\nmessage_expression = \"'b'\""), "4:1: message stands beside message_expression, which makes the message: leave one out"),
    (table("partitions", "max = 1") + table("partitions", "name = 'again'\nmax = 1"), "3:1: this says what the rule partitions says already"),
    (table("partitions", "name = 'a'\nmax = 1") + table("partitions", "name = 'a'\nmax = 2"), "there is a rule a already"),
    (table("partitions", "max = 1\naction = 'warning'"), "did you mean warn?"),
    (table("partitions", "min = 2\nmax = 1"), "min 2 is more than max 1"),
]  # fmt: skip


def test_each_mistake_is_told_with_its_place() -> None:
    """Each file has exactly one mistake, and every file is refused."""
    untold = []
    for text, complaint in MISTAKEN:
        found = [str(each) for each in mistakes(text)]
        if len(found) != 1 or complaint not in found[0]:
            untold.append((text, complaint, found))
    assert untold == []


def test_all_mistakes_are_told_at_once() -> None:
    """A file with many mistakes names them all, each with its line."""
    single = [text for text, complaint in MISTAKEN if text.startswith("[[config_bounds]]")]
    renamed = [text.replace("]]\n", f"]]\nname = 'r{number}'\n", 1) for number, text in enumerate(single)]
    found = mistakes("".join(renamed))
    assert [each.line for each in found] == [3 * number for number in range(1, len(single) + 1)]


DOUBTFUL = [
    (bound("max.decompressed.message.bytes", "max = 5"), "max.decompressed.message.bytes is a config that Kafka has since 4.0"),
    (bound("remote.copy.lag.ms", "max = 5"), "since 4.0"),
    (bound("redpanda.remote.write", 'allowed = "true"'), "is no config of Kafka up to 4.4: only another kind of cluster can have it"),
    (condition('"errors.deadletterqueue.group.enable" in after.configs'), "condition names errors.deadletterqueue.group.enable, which is a config that Kafka has since 4.0"),
    (condition('after.configs["confluent.value.schema.validation"] == "true"'), "is no config of Kafka up to 4.4"),
]  # fmt: skip


def test_what_only_some_clusters_have_is_a_warning() -> None:
    """Configs of newer Kafkas and of other distributions are warned of, with their place, and the
    rules can be used.
    """
    for text, warned in DOUBTFUL:
        [warning] = rules(text).warnings
        assert warning.startswith("rules.toml:") and warned in warning


SOUND = [
    *(bound(key, bounds) for key, bounds in (("retention.ms", "min = -1, max = 604800000"), ("cleanup.policy", 'allowed = ["delete", "compact,delete"]'), ("min.cleanable.dirty.ratio", "min = 0, max = 1"), ("compression.gzip.level", "min = -1"), ("segment.bytes", "min = 1048576"))),
    *(condition(text) for text in (
        'principal == "User:alice" || principal == null',
        'principal.startsWith("User:team-") || principal.endsWith("-bot") || principal.startsWith("Us")',
        'principal.matches("^User:(a|b)$") || principal.matches("alice")',
        'request.api in ["CreateTopics", "Metadata"] || request.api.startsWith("Create")',
        'request.time < timestamp("2026-12-01T00:00:00Z") || request.time > timestamp("2026-12-31T23:00:00+01:00")',
        "request.time.getHours() >= 6 && request.time.getHours() < 24 && request.time.getDayOfWeek() in [1, 5]",
        'int(after.effective_configs["retention.ms"]) < 5 && double(after.effective_configs["min.cleanable.dirty.ratio"]) < 0.9',
        'request.topic.matches("^[a-z]+[.](orders|bills)(#1)?$") || request.topic.matches("a\\\\.b|c")',
        'request.client_host.startsWith("10.") || request.client_host == "::1" || request.client_host == "fe80::1"',
        'after.configs["cleanup.policy"] != "compact" || "retention.ms" in after.configs',
    )),
    condition('after.configs["a.logger.of.mine"] == "DEBUG"', operations='"alter_loggers"'),
    condition('request.config_operations["Allow All to User:a from *"] == ""', operations='"create_acls"'),
    condition('after.configs["log.retention.ms"] == "5"', operations='"alter_broker"'),
    *(table("partitions", f"max = 1\n{text}") for text in (
        "principals = ['User:a', 'User:team-*', '/User:[ab]/', '*']",
        "topics = ['orders.*', '/orders[.].+/', '{user}-*', '/[a-z]{3}[.]x/']",
        "hosts = ['10.0.*', '10.0.0.9', '::1', '/10[.]0[.].*/']",
        "principals = ['User:a', 'User:b']\nexcept_principals = 'User:b'",
        "message = 'At most 12 {in words: twelve}.'",
    )),
    table("name_pattern", "pattern = '{user}[.][a-z]{2,20}(?:[.]v\\d{1,2})?'"),
    table("name_pattern", "pattern = '\\p{Lu}.*|x'"),
    table("protected_operations", "operations = 'acls'\nresources = ['Topic:*', 'Group:PREFIXED:a', '*', 'T*', 'Topic:L*']"),
    table("change_window", "hours = '22:00-06:00'\ndays = 'sat-mon'"),
]  # fmt: skip


def test_what_may_be_meant_is_no_mistake() -> None:
    """Conditions, patterns and bounds that something can meet are used without a word."""
    for text in SOUND:
        assert rules(text).warnings == (), text


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", sorted((ROOT / "config").glob("*rules.toml")), ids=lambda file: file.name)
def test_the_samples_are_sound(file: Path) -> None:
    """The rules to begin with have neither mistakes nor doubts."""
    assert read_rule_files([file]).warnings == ()
