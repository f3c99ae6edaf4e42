"""`[[protected_operations]]`: administration that is only for some principals, clients or hosts.

Rule: it needs no state, so it judges changes of ACLs, users, quotas, delegation tokens, groups and
leaders, and nothing else: topics are protected by `[[protected_topics]]`.
"""

from collections.abc import Mapping

from ..interface import AdminRequest
from .facts import Facts
from .rule import Rule, read_scope
from .tables import TomlTable
from .vocabulary import ADMIN_OPERATIONS, ELECT_LEADERS, ELECTION_TYPE, ELECTION_TYPES, NAME, PRINCIPAL

WORDS: Mapping[str, str] = {
    "create_acls": "create ACLs of {}",
    "delete_acls": "delete ACLs of {}",
    "alter_user_scram_credentials": "change the credentials of user {}",
    "alter_client_quotas": "change the quotas of {}",
    "create_delegation_token": "create a delegation token",
    "renew_delegation_token": "renew a delegation token",
    "expire_delegation_token": "expire a delegation token",
    "delete_groups": "delete group {}",
    "offset_commit": "set offsets of group {}",
    "offset_delete": "delete offsets of group {}",
    "elect_leaders": "elect leaders of {}",
    "alter_replica_log_dirs": "move replicas of {} to other directories",
    "alter_group_configs": "change the configs of group {}",
    "alter_client_metrics": "change the client metrics {}",
}
"""The operations in words, with the place of the resource."""
MAX_NAME = 250
"""The longest name of a resource in a message, in characters."""


def read_protected_operations(table: TomlTable, name: str) -> Rule:
    """Read a `[[protected_operations]]`: operations that its `principals` may not carry out."""
    scope = read_scope(table, name, ADMIN_OPERATIONS, ADMIN_OPERATIONS)
    if not table.has("operations"):
        table.note("operations is missing: the operations that are protected")
    elections = table.choices("election_types", ELECTION_TYPES)
    if elections is not None and ELECT_LEADERS not in scope.operations:
        table.note(f"election_types is about {ELECT_LEADERS}, which operations does not name", "election_types")
    table.finish()

    def judge(facts: Facts) -> str | None:
        request = facts.request
        assert isinstance(request, AdminRequest)
        elects = request.election_type
        if elects is not None and elections is not None and elects not in elections:
            return None
        words = WORDS[facts.operation] if elects is None else f"elect {elects} leaders of {{}}"
        return scope.message or f"{facts.principal} may not {words.format(request.name[:MAX_NAME])}."

    return scope.rule(judge, {PRINCIPAL, NAME, ELECTION_TYPE})
