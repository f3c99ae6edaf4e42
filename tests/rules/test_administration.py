"""Rules about ACLs, users, quotas, tokens, groups and elections: what each of them judges."""

from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from minicontroller.policies import AdminRequest
from minicontroller.policies.rules.builtin import BUILT_IN
from minicontroller.policies.rules.mistakes import RuleFileError
from minicontroller.policies.rules.ruleset import RuleSet
from minicontroller.policies.rules.vocabulary import (
    ADMIN_OPERATIONS,
    CONFIG_APIS,
    GROUPS,
    OPERATION_OF_API,
    OPERATION_OF_KIND,
)
from minicontroller.policies.verdict import RuleAction
from tests.policies.asking import ALICE, administer, alter, cluster, create, delete, delete_records, reassign
from tests.rules.reading import condition, mistake, rules, said

PROTECTED = "[[protected_operations]]\noperations = {}\n"
APIS = {operation: api for api, operation in OPERATION_OF_API.items()} | dict.fromkeys(
    OPERATION_OF_KIND.values(), "IncrementalAlterConfigs"
)
KINDS = {operation: kind for kind, operation in OPERATION_OF_KIND.items()}
LIMITS = """
[[partitions]]
max = 1

[[name_pattern]]
pattern = "x"

[[replication]]
max = 1

[[quota]]
owned = "*"
max_topics = 0

[[protected_topics]]
topics = "*"

[[deletion_age]]
min = "1d"

[[config_bounds]]
configs = { "retention.ms" = { max = 1 } }

[[change_window]]
hours = "00:00-00:01"

[[rule]]
name = "never"
condition = "false"
"""
"""A rule of each kind that refuses all topics, and names no operations."""


def carrying_out(operation: str, **said: Any) -> AdminRequest:
    return administer(APIS[operation], KINDS.get(operation, "acl"), **said)


def test_a_rule_about_topics_never_judges_them() -> None:
    """No kind of rule judges administration unless the rule names it."""
    topics = rules(LIMITS)
    assert {rule.name for rule in topics.rules} == {*BUILT_IN, "never"} - {"protected_operations"}
    for operation, api in APIS.items():
        assert topics.judge(carrying_out(operation, client_host="::1"), cluster()) == ()
        assert api not in topics.judged_apis


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_all_of_its_operations(group: str) -> None:
    """A rule with the name of a group judges what is in it, and nothing else."""
    judged = rules(PROTECTED.format(f"'{group}'"))
    assert judged.judged_apis >= {APIS[operation] for operation in GROUPS[group]}
    assert judged.judged_apis <= {APIS[operation] for operation in GROUPS[group]} | CONFIG_APIS
    for request in (create(), alter(), delete(), reassign(), delete_records()):
        assert judged.judge(request, cluster()) == ()
    for operation in ADMIN_OPERATIONS:
        assert bool(judged.judge(carrying_out(operation), cluster())) == (operation in GROUPS[group])


def test_all_operations_are_in_groups_or_stand_alone() -> None:
    assert GROUPS["admin"] == ADMIN_OPERATIONS
    assert rules(PROTECTED.format("'acls'")).judged_apis == {"CreateAcls", "DeleteAcls"}


@pytest.mark.parametrize(
    ("api", "name", "message"),
    [
        ("CreateAcls", "Topic:LITERAL:orders", "User:alice may not create ACLs of Topic:LITERAL:orders."),
        ("OffsetCommit", "sales", "User:alice may not set offsets of group sales."),
        ("AlterClientQuotas", "user=<default>", "User:alice may not change the quotas of user=<default>."),
        ("CreateDelegationToken", "", "User:alice may not create a delegation token."),
        ("ElectLeaders", "{}", "User:alice may not elect leaders of {}."),
        ("DeleteGroups", "g" * 300, f"User:alice may not delete group {'g' * 250}."),
    ],
)
def test_the_message_says_who_may_not_do_what(api: str, name: str, message: str) -> None:
    assert said(PROTECTED.format("'admin'"), administer(api, name=name)) == [message]
    assert said(PROTECTED.format("'admin'") + "message = 'No.'", administer(api, name=name)) == ["No."]


def test_rules_tell_unclean_elections_from_preferred_ones() -> None:
    """The kind of an election is a key of a table and a field of expressions."""
    unclean = administer("ElectLeaders", name="t", election_type="unclean")
    preferred = administer("ElectLeaders", name="t", election_type="preferred")
    for text, words in (
        (PROTECTED.format("['elect_leaders', 'acls']") + "election_types = 'unclean'", "User:alice may not elect unclean leaders of t."),
        (condition('request.election_type != "unclean"', operations='"elect_leaders"') + "message = 'No.'", "No."),
    ):  # fmt: skip
        assert said(text, unclean) == [words]
        assert said(text, preferred) == []
    assert said(PROTECTED.format("['elect_leaders', 'acls']") + "election_types = 'unclean'", administer()) != []


@pytest.mark.parametrize(
    ("keys", "is_meant"),
    [
        ("principals = 'User:alice'", True),
        ("except_principals = 'User:a*'", False),
        ("principals = 'User:ANONYMOUS'", False),
        ("hosts = '10.0.0.*'", True),
        ("hosts = ['10.0.1.*', 'fe80::*']", False),
        ("except_hosts = '/10[.]0[.].*/'", False),
        ("client_ids = 'terraform-*'", True),
        ("except_client_ids = 'terraform-7'", False),
        ("resources = 'Topic:*:orders'", True),
        ("resources = 'Topic:PREFIXED:*'", False),
        ("except_resources = '/Topic:.*/'", False),
        ("resources = '*:orders'\nexcept_resources = '*:{user}.*'", True),
    ],
)
def test_who_is_meant(keys: str, is_meant: bool) -> None:
    """A rule applies by the caller's principal, host and client id, and by the resource."""
    request = administer(client_id="terraform-7")
    assert bool(said(PROTECTED.format("'create_acls'") + keys, request)) is is_meant


def test_hosts_and_client_ids_are_for_rules_about_topics_too() -> None:
    text = "[[partitions]]\nmax = 1\nhosts = '10.*'\n"
    assert said(text, create()) == []  # its host is not known
    assert said("[[partitions]]\nmax = 1\nexcept_client_ids = '?*'", create()) != []


def test_the_name_of_the_user_in_a_resource() -> None:
    """`{user}` is the caller's name, without a special meaning of its characters."""
    text = PROTECTED.format("'groups'") + "except_resources = '{user}-*'"
    assert said(text, administer("DeleteGroups", name="alice-reports")) == []
    assert said(text, administer("DeleteGroups", name="bob-reports")) != []
    assert said(text, administer("DeleteGroups", name="x-reports", principal="User:*")) != []
    assert said(text, administer("DeleteGroups", name="-reports", principal=None)) != []


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ('request.kind == "acl" && request.name == "Topic:LITERAL:orders" && request.api == "CreateAcls"', True),
        ('request.operation == "create_acls" && principal == "User:alice" && request.client_host == "10.0.0.9"', True),
        ('request.config_operations == {"Allow Read to User:bob from *": ""}', True),
        ('request.config_operation_kinds["Allow Read to User:bob from *"] == "set"', True),
        ('request.config_operations.exists(acl, acl.startsWith("Allow All "))', False),
        ("before == null && after == null && request.broker == null", True),
        ("request.time.getFullYear() == 1970 && !request.validate_only && cluster.cluster_size == 3", True),
    ],
)
def test_expressions_know_the_fields(expression: str, holds: bool) -> None:
    found = rules(condition(expression, operations='"acls"')).judge(administer(), cluster())
    assert [finding.error for finding in found] == ([] if holds else [None])


def test_actions_and_windows() -> None:
    """Warnings and audits pass; a change window judges administration that it names."""
    for action in RuleAction:
        [finding] = rules(PROTECTED.format("'acls'") + f"action = '{action.value}'").judge(administer(), cluster())
        assert finding.action is action
    assert said("[[change_window]]\nhours = '01:00-02:00'\noperations = 'acls'", administer()) != []
    assert said("[[change_window]]\nhours = '00:00-01:00'\noperations = 'acls'", administer()) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[protected_operations]]", "rules.toml:1:1: operations is missing: the operations that are protected"),
        (PROTECTED.format("'acl'"), "rules.toml:2:1: operations names 'acl', which does not exist; did you mean acls?"),
        (PROTECTED.format("['acls', 'create']"), "rules.toml:2:23: operations names 'create', which this kind of rule never judges; it judges create_acls, "),
        ("[[partitions]]\nmax = 1\noperations = 'acls'", "operations names 'acls', which this kind of rule never judges; it judges create, alter"),
        ("[[quota]]\nowned = 'a'\nmax_topics = 1\noperations = ['create', 'elect_leaders']", "operations names 'elect_leaders', which this kind of rule never judges"),
        (PROTECTED.format("'elect_leaders'") + "election_types = 'uncleen'", "election_types names 'uncleen', which does not exist; did you mean unclean?"),
        (PROTECTED.format("'acls'") + "election_types = 'unclean'", "election_types is about elect_leaders, which operations does not name"),
        (PROTECTED.format("'elect_leaders'") + "topics = 'a'", "operations names 'elect_leaders', which is matched by resources, but the rule is only about some topics"),
        ("[[partitions]]\nmax = 1\nresources = 'a'", "rules.toml:3:1: resources is about acls, tokens, groups, admin and the operations in them, but the rule judges alter, create: narrow operations, or name topics"),
        (PROTECTED.format("'acls'") + "resources = '/(/'", "resources: '/(/' is a bad regular expression"),
        (PROTECTED.format("'acls'") + "resources = []", "resources is empty, so nothing can ever match"),
        (PROTECTED.format("'acls'") + "hosts = 'localhost'", "hosts: 'localhost' can match no client: no IP address has 'l' in it"),
        (PROTECTED.format("'acls'") + "client_ids = 7", "client_ids is a whole number, but must be a string or a list of strings"),
        (condition("after.internal", operations='"acls"'), "condition reads after, which is null for create_acls and delete_acls"),
        (condition('request.topic == "a"', operations='"elect_leaders"'), "condition reads request.topic, which is null for elect_leaders: read request.name"),
        (condition('request.name == "a"'), "condition reads request.kind or request.name, which are null for alter, create, reassign"),
        (condition('request.operation == "acls"', operations='"acls"'), "condition compares request.operation with 'acls', which stands for several operations: name create_acls or delete_acls"),
    ],
)  # fmt: skip
def test_mistakes(text: str, complaint: str) -> None:
    """A mistake is a sentence that says what to do."""
    assert complaint in mistake(text)


NAMES = ["Topic:LITERAL:orders", "alice-g", "a.b", "*", "{user}", "alice", "[x]", ""]
PATTERNS = ["*", "a*", "{user}-*", "Topic:*", "a.b", "?", "alice"]


def matches(pattern: str, name: str) -> bool:
    pattern = pattern.replace("{user}", "alice")
    if pattern == "?":
        return len(name) == 1
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


@given(
    st.sampled_from(ADMIN_OPERATIONS),
    st.lists(st.sampled_from([*ADMIN_OPERATIONS, *GROUPS]), min_size=1, max_size=3, unique=True),
    st.tuples(*[st.none() | st.sampled_from(PATTERNS)] * 2),
    st.sampled_from(NAMES),
    st.sampled_from([None, ALICE, "User:bob"]),
)
def test_a_protected_operation_is_one_for_the_principals(
    operation: str, named: list[str], patterns: tuple[str | None, str | None], name: str, principal: str | None
) -> None:
    """A rule refuses exactly what its operations, resources and principals mean together."""
    wanted, excepted = patterns
    keys = [PROTECTED.format(named), "except_principals = 'User:bob'\n"]
    keys += [f"{key} = '{value}'\n" for key, value in (("resources", wanted), ("except_resources", excepted)) if value]
    try:
        judged: RuleSet = rules("".join(keys))
    except RuleFileError:
        reject()  # nothing could ever be judged
    user = "alice" if principal == ALICE else None

    def has(pattern: str) -> bool:
        return ("{user}" not in pattern or user is not None) and matches(pattern, name)

    is_refused = (
        operation in {each for group in named for each in GROUPS.get(group, (group,))}
        and principal != "User:bob"
        and (wanted is None or has(wanted))
        and not (excepted is not None and has(excepted))
    )
    assert bool(judged.judge(carrying_out(operation, name=name, principal=principal), cluster())) is is_refused
