"""`minicontroller quotas` lists, sets and removes the quotas of users, clients and addresses."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from .. import client
from ..client.errors import Results
from ..client.quotas import ClientQuotaEntity, ClientQuotaFilterComponent
from .admin_options import AdminOptions, admin_options, ask
from .changes import parse_settings
from .results import ChangeResult, conclude, print_list

WORDS = {"user": "user", "client-id": "client id", "ip": "address"}
"""The types of entities, and what people call them."""


def entity_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name an entity, and pass it to the command as `entity`."""

    @wraps(function)
    def command(**options: Any) -> None:
        names: dict[str, str | None] = {}
        for kind in WORDS:
            name, is_default = (options.pop(f"{prefix}{kind.replace('-', '_')}") for prefix in ("", "default_"))
            if name is not None and is_default:
                raise click.UsageError(f"--{kind} and --default-{kind} exclude each other.")
            if name is not None or is_default:
                names[kind] = name
        if "ip" in names and len(names) > 1:
            raise click.UsageError("An address has quotas of its own: name no user and no client id beside it.")
        function(entity=ClientQuotaEntity.of(names), **options)

    for kind, word in reversed(WORDS.items()):
        name = kind.replace("-", "_")
        for option in (
            click.option(f"--default-{kind}", f"default_{name}", is_flag=True, help=f"Each {word} without its own."),
            click.option(f"--{kind}", name, metavar="NAME", help=f"The {word} of this name."),
        ):
            command = option(command)
    return command


@click.group()
def quotas() -> None:
    """List, set and remove the quotas of users, clients and addresses.

    --user and --client-id together name the pair. Rates are per second.
    """


@quotas.command("list")
@entity_options
@click.option("--strict", is_flag=True, help="Leave out pairs if only one of their names is given.")
@admin_options
def list_quotas(*, entity: ClientQuotaEntity, strict: bool, options: AdminOptions) -> None:
    """Show quotas. Without options, show all."""
    components = [ClientQuotaFilterComponent(kind, name) for kind, name in entity.entries]
    found = ask(options, lambda admin: admin.describe_client_quotas(components, strict=strict))
    document = {"quotas": [{"entity": dict(each.entries), "quotas": values} for each, values in found.items()]}
    rows = [
        (str(each), key, f"{value:.17g}") for each, values in found.items() for key, value in sorted(values.items())
    ]
    print_list(options, document, ("entity", "quota", "value"), rows, "No quotas.")


@quotas.command("set")
@click.argument("settings", metavar="QUOTA=VALUE...", nargs=-1, required=True, callback=parse_settings)
@entity_options
@click.option("--dry-run", is_flag=True, help="Only check whether the quotas can be set.")
@admin_options
def set_quotas(*, settings: dict[str, str], entity: ClientQuotaEntity, dry_run: bool, options: AdminOptions) -> None:
    """Set quotas of an entity; its others stay."""
    values: dict[str, float | None] = {key: _number(key, text) for key, text in settings.items()}
    _change(options, _named(entity), values, f"set {', '.join(values)}", dry_run=dry_run)


@quotas.command()
@click.argument("keys", metavar="[QUOTA]...", nargs=-1)
@entity_options
@click.option("--dry-run", is_flag=True, help="Only check whether the quotas can be removed.")
@admin_options
def remove(*, keys: Sequence[str], entity: ClientQuotaEntity, dry_run: bool, options: AdminOptions) -> None:
    """Remove quotas of an entity; without a QUOTA, all of them."""
    named = _named(entity)
    if not keys:
        components = [ClientQuotaFilterComponent(kind, name) for kind, name in named.entries]
        found = ask(options, lambda admin: admin.describe_client_quotas(components, strict=True))
        keys = sorted(found.get(named, {}))
        if not keys:
            conclude(options, [ChangeResult(str(named), "has no quotas", _facts(named, ()))])
    _change(options, named, dict.fromkeys(keys), f"removed {', '.join(keys)}", dry_run=dry_run)


def _change(
    options: AdminOptions, entity: ClientQuotaEntity, values: dict[str, float | None], done: str, *, dry_run: bool
) -> None:
    async def question(admin: client.AdminClient) -> Results[ClientQuotaEntity, None]:
        return await admin.alter_client_quotas({entity: values}, validate_only=dry_run)

    result = ask(options, question)[entity]
    conclude(options, [ChangeResult(str(entity), done, _facts(entity, tuple(values)), result)], dry_run=dry_run)


def _facts(entity: ClientQuotaEntity, keys: Sequence[str]) -> dict[str, object]:
    return {"entity": dict(entity.entries), "quotas": list(keys)}


def _named(entity: ClientQuotaEntity) -> ClientQuotaEntity:
    if not entity.entries:
        raise click.UsageError("Name a --user, a --client-id, an --ip, or one of the defaults, such as --default-user.")
    return entity


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{key}={text!r} is not a number.") from None
