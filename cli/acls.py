"""`minicontroller acls` lists, adds and removes the ACLs of any Kafka with an authorizer."""

import ipaddress
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

import click

from .. import client
from ..client.acls import AclBinding, AclBindingFilter
from ..client.errors import AdminError
from ..protocol.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ..text import escaped, plural
from .admin_options import AdminOptions, admin_options, ask
from .output import is_conversation
from .results import ChangeResult, conclude, print_list

Member = TypeVar("Member", bound=IntEnum)
Place = tuple[AclResourceType, str]


def word(member: IntEnum) -> str:
    """Return a member as the command writes it: `describe-configs`."""
    return member.name.lower().replace("_", "-")


def _words(members: Sequence[Member]) -> dict[str, Member]:
    return {word(each): each for each in members}


TYPES = _words([each for each in AclResourceType if each > AclResourceType.ANY])
OPERATIONS = _words([each for each in AclOperation if each > AclOperation.ANY])
PATTERN_TYPES = _words([each for each in PatternType if each > PatternType.UNKNOWN])
PERMISSIONS = _words([PermissionType.ALLOW, PermissionType.DENY])
RESOURCE_HELP = (
    "A RESOURCE is topic:NAME, group:NAME, transactional-id:NAME, delegation-token:ID, user:PRINCIPAL or cluster; "
    "the name * stands for all."
)


class ResourceName(click.ParamType[Place]):
    """Reads `topic:orders`, or `cluster`, whose name is known."""

    name = "resource"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        kind, colon, name = str(value).partition(":")
        if kind.lower() == word(AclResourceType.CLUSTER) and not colon:
            return AclResourceType.CLUSTER, CLUSTER_NAME
        if kind.lower() not in TYPES or not name:
            self.fail(
                f"{value!r} is not a resource, such as topic:orders. {RESOURCE_HELP}",
                param,
                ctx,
            )
        return TYPES[kind.lower()], name


def _choice(members: dict[str, Member]) -> click.Choice[str]:
    return click.Choice(list(members), case_sensitive=False)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--permission", type=_choice(PERMISSIONS), help="Only ACLs that allow, or that deny."),
        click.option(
            "--operation", type=_choice(OPERATIONS), metavar="OPERATION", help="Only ACLs for this operation."
        ),
        click.option("--host", help="Only ACLs for this host."),
        click.option("--principal", metavar="TYPE:NAME", help="Only ACLs of this principal."),
        click.option(
            "--pattern",
            type=_choice(PATTERN_TYPES),
            default="any",
            show_default=True,
            help="How the resource's name is compared: with literal or prefixed names, with both (any), "
            "or with everything that applies to it (match).",
        ),
        click.argument("resources", type=ResourceName(), metavar="[RESOURCE]...", nargs=-1),
    ):
        command = option(command)
    return command


def _filters(
    *,
    resources: Sequence[Place],
    pattern: str,
    principal: str | None,
    host: str | None,
    operation: str | None,
    permission: str | None,
) -> list[AclBindingFilter]:
    anywhere: list[tuple[AclResourceType, str | None]] = [(AclResourceType.ANY, None)]
    return [
        AclBindingFilter(
            resource_type=kind,
            name=name,
            pattern_type=PATTERN_TYPES[pattern],
            principal=principal,
            host=host,
            operation=AclOperation.ANY if operation is None else OPERATIONS[operation],
            permission_type=PermissionType.ANY if permission is None else PERMISSIONS[permission],
        )
        for kind, name in (dict.fromkeys(resources) or anywhere)
    ]


@click.group()
def acls() -> None:
    """List, add and remove ACLs, which say who may do what."""


@acls.command("list", epilog=RESOURCE_HELP)
@filter_options
@admin_options
def list_acls(*, options: AdminOptions, **chosen: Any) -> None:
    """List all ACLs, or those of RESOURCES."""
    found = ask(options, lambda admin: _found(admin, _filters(**chosen)))
    columns = ("resource", "pattern", "principal", "host", "operation", "")
    document = {"acls": [_facts(acl) for acl in found]}
    print_list(options, document, columns, [_cells(acl) for acl in found], "No ACLs.")


async def _found(admin: client.AdminClient, filters: Sequence[AclBindingFilter]) -> list[AclBinding]:
    return sorted({acl for each in filters for acl in await admin.describe_acls(each)})


def _cells(acl: AclBinding) -> Sequence[str]:
    pattern, entry = acl.pattern, acl.entry
    place = f"{word(pattern.resource_type)}:{pattern.name}"
    return (
        place, word(pattern.pattern_type), entry.principal, entry.host, word(entry.operation),
        word(entry.permission_type),
    )  # fmt: skip


def _facts(acl: AclBinding) -> dict[str, object]:
    pattern, entry = acl.pattern, acl.entry
    return {
        "resource_type": word(pattern.resource_type),
        "resource": pattern.name,
        "pattern": word(pattern.pattern_type),
        "principal": entry.principal,
        "host": entry.host,
        "operation": word(entry.operation),
        "permission": word(entry.permission_type),
    }


def _text(acl: AclBinding) -> str:
    """Return an ACL in one line: `allow User:alice from * to read topic:orders (literal)`."""
    place, pattern, principal, host, operation, permission = _cells(acl)
    return f"{permission} {principal} from {host} to {operation} {place} ({pattern})"


@acls.command(epilog=RESOURCE_HELP)
@click.argument("resources", type=ResourceName(), metavar="RESOURCE...", nargs=-1, required=True)
@click.option(
    "--principal",
    "principals",
    metavar="TYPE:NAME",
    multiple=True,
    required=True,
    help="Principal, such as User:alice; User:* for everybody; repeatable.",
)
@click.option(
    "--operation",
    "operations",
    type=_choice(OPERATIONS),
    metavar="OPERATION",
    multiple=True,
    required=True,
    help=f"Operation: {', '.join(OPERATIONS)}; repeatable.",
)
@click.option(
    "--host",
    "hosts",
    default=[WILDCARD],
    multiple=True,
    help="IP address of clients; * for every address; repeatable.  [default: *]",
)
@click.option("--prefixed", is_flag=True, help="The names are prefixes.")
@click.option("--deny", is_flag=True, help="Deny instead of allow.")
@admin_options
def add(
    *,
    resources: Sequence[Place],
    principals: Sequence[str],
    operations: Sequence[str],
    hosts: Sequence[str],
    prefixed: bool,
    deny: bool,
    options: AdminOptions,
) -> None:
    """Add ACLs that allow, or deny, operations on RESOURCES."""
    pattern_type = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    permission = PermissionType.DENY if deny else PermissionType.ALLOW
    wanted = [
        AclBinding(
            ResourcePattern(kind, name, pattern_type),
            AccessControlEntry(principal, host, OPERATIONS[operation], permission),
        )
        for kind, name in resources
        for principal in principals
        for host in hosts
        for operation in operations
    ]
    for host in dict.fromkeys(hosts):
        _warn_of(host)
    results = ask(options, lambda admin: admin.create_acls(wanted))
    conclude(options, (ChangeResult(_text(acl), "added", _facts(acl), result) for acl, result in results.items()))


def _warn_of(host: str) -> None:
    """Warn of a host that no client has. Kafka and its tools take it without a word."""
    from ..security.authorizer import java_address

    if host == WILDCARD:
        return
    try:
        ipaddress.ip_address(host)
    except ValueError:
        advice = "a host is one address, such as 10.0.0.9, or *; names and networks match nobody"
    else:
        if java_address(host) == host:
            return
        advice = f"write the address as Java does, {java_address(host)}"
    click.echo(f"Warning: no client has the host {escaped(host)}: {advice}.", err=True)


@acls.command(epilog=RESOURCE_HELP)
@filter_options
@click.option("--yes", is_flag=True, help="Remove without asking for confirmation.")
@click.option("--all", "every", is_flag=True, help="Remove all ACLs of the cluster.")
@admin_options
def remove(*, yes: bool, every: bool, options: AdminOptions, **chosen: Any) -> None:
    """Remove the ACLs of RESOURCES, or those that the options choose."""
    narrowed = any(value for name, value in chosen.items() if name != "pattern") or chosen["pattern"] != "any"
    if narrowed == every:
        raise click.UsageError("Name a RESOURCE or an option that chooses ACLs, or else --all.")
    filters = _filters(**chosen)
    if not yes and is_conversation():
        found = ask(options, lambda admin: _found(admin, filters))
        for acl in found:
            click.echo(escaped(_text(acl)))
        if not click.confirm(f"Remove {plural(len(found), 'ACL')}?"):
            raise click.ClickException("Nothing was removed.")
    removals = _removals(ask(options, lambda admin: admin.delete_acls(filters)))
    conclude(options, removals, nothing="No such ACLs.")


def _removals(results: client.Results[AclBindingFilter, tuple[AclBinding, ...]]) -> list[ChangeResult]:
    verdicts = []
    for wanted, result in results.items():
        if isinstance(result, AdminError):
            name = "the cluster" if wanted.name is None else f"{word(wanted.resource_type)}:{wanted.name}"
            facts: dict[str, object] = {"resource_type": word(wanted.resource_type), "resource": wanted.name}
            verdicts.append(ChangeResult(f"ACLs of {name}", "", facts, result))
        else:
            verdicts += [ChangeResult(_text(acl), "removed", _facts(acl)) for acl in result]
    return verdicts
