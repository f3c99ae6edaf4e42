"""Rule files and CEL of any bytes: rules, or mistakes with their places; and rules judge whatever
is requested without an error.
"""

from minicontroller.policies.rules.mistakes import RuleFileError, RuleSource
from minicontroller.policies.rules.ruleset import load_rules
from tests.policies.asking import administer, alter, cluster, create, delete, delete_records, reassign
from tests.rules.reading import condition

REQUESTS = (create(), alter(), reassign(), delete(), delete_records(), administer())


def read_rules(data: bytes) -> None:
    """A rule file gives rules that judge, or mistakes."""
    try:
        rules = load_rules([RuleSource("rules.toml", data)])
    except RuleFileError:
        return
    for request in REQUESTS:
        rules.judge(request, cluster())


def read_expression(data: bytes) -> None:
    """An expression of CEL is a rule's condition or a mistake."""
    text = data.decode("utf-8", "replace")
    if "'''" not in text:
        for operations in ('["create", "alter"]', '"admin"'):
            read_rules(condition(text, operations=operations).encode("utf-8", "replace"))


def rule_seeds() -> list[bytes]:
    """Return a file with rules of some kinds, and one of each."""
    files = (
        "[[replication]]\nmin = 2\nmax = 9\n",
        "[[partitions]]\nmax = 5\n",
        "[[name_pattern]]\npattern = '{user}.*'\naction = 'deny'\n",
        "[[rule]]\nname = 'a'\noperations = ['create']\ncondition = 'after.num_partitions > 1'\nmessage = 'm'\n",
        "[[change_window]]\ndays = 'mon-fri'\nhours = '09:00-17:00'\ntimezone = 'Europe/Berlin'\n",
        "[[deletion_age]]\nmin = '2h'\n",
        "[[quota]]\nowned = '{user}.*'\nmax_topics = 3\n",
        "[[config_bounds]]\nconfigs = {'retention.ms' = {min = 1, max = 2}}\n",
        "[[protected_topics]]\ntopics = ['a*', '/b+/']\nexcept_principals = ['User:a']\n",
        "[[protected_operations]]\noperations = ['acls', 'offset_commit']\nexcept_resources = '*:{user}-*'\nhosts = '10.*'\n",
    )
    return [each.encode() for each in (*files, "".join(files))]


def expression_seeds() -> list[bytes]:
    """Return expressions over what rules know."""
    return [
        each.encode()
        for each in (
            "after.num_partitions > 1",
            "request.principal == 'User:a' && has(after.configs)",
            "after.configs.all(k, k.startsWith('a'))",
            "topic.matches('^a+$') || size(topic) < 3",
            "before.num_partitions * 2 >= after.num_partitions ? true : false",
            "'a' in {'a': 1} && [1, 2, 3].exists(x, x > 2)",
            "duration('1h') < duration('2h') && timestamp('2024-01-01T00:00:00Z').getHours() == 0",
            "request.kind == 'acl' && request.name.startsWith('T') && request.config_operations == null",
            "int('1') + 1 == 2 && -9223372036854775807 - 1 < 0",
        )
    ]
