"""`minicontroller tokens` creates, lists, renews and expires delegation tokens.

Rule: a token is named by its id, and its HMAC is never an argument, which every user of the machine
could read. An HMAC is printed when the token is created, and when somebody asks to see it.
"""

import base64
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import click

from .. import client
from ..client.errors import AdminError
from ..client.tokens import DelegationToken
from ..protocol.error_codes import ErrorCode
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .output import print_json
from .results import ChangeResult, conclude, print_list
from .typed import INT64


def _principals(
    _context: click.Context, _parameter: click.Parameter, value: str | tuple[str, ...] | None
) -> str | tuple[str, ...] | None:
    for principal in (value,) if isinstance(value, str) else value or ():
        kind, _, name = principal.partition(":")
        if not (kind and name):
            raise click.BadParameter(f"{escaped(principal)!r} is no principal such as User:alice.")
    return value


ids_argument = click.argument("ids", metavar="ID...", nargs=-1, required=True)


@click.group()
def tokens() -> None:
    """Create, list, renew and expire delegation tokens, by which programs log in as their owner."""


@tokens.command()
@click.option("--owner", metavar="PRINCIPAL", callback=_principals, help="Owner of the token.  [default: you]")
@click.option(
    "--renewer",
    "renewers",
    metavar="PRINCIPAL",
    multiple=True,
    callback=_principals,
    help="Who may renew and expire the token besides its owner, such as User:bob; repeatable.",
)
@click.option(
    "--max-lifetime-ms",
    type=click.IntRange(1, INT64),
    help="Milliseconds until the token cannot be renewed any more.  [default: the cluster's]",
)
@admin_options
def create(*, owner: str | None, renewers: Sequence[str], max_lifetime_ms: int | None, options: AdminOptions) -> None:
    """Create a token, and print its id and HMAC.

    They are a user name and a password for SCRAM.
    """
    token = ask(
        options,
        lambda admin: admin.create_delegation_token(
            owner=owner, renewers=renewers, max_lifetime_ms=-1 if max_lifetime_ms is None else max_lifetime_ms
        ),
    )
    if options.as_json:
        print_json({"token": _token_json(token, show_hmac=True)})
        return
    click.echo(f"id       {escaped(token.token_id)}")
    click.echo(f"HMAC     {_text_of(token.hmac)}")
    click.echo(f"owner    {escaped(token.owner)}")
    click.echo(f"expires  {_time(token.expires_ms)}, can be renewed until {_time(token.max_ms)}")


@tokens.command("list")
@click.option(
    "--owner",
    "owners",
    metavar="PRINCIPAL",
    multiple=True,
    callback=_principals,
    help="Only tokens of which this is the owner or a renewer, such as User:alice; repeatable.",
)
@click.option("--show-hmac", is_flag=True, help="Show the HMACs, which are secret.")
@admin_options
def list_tokens(*, owners: Sequence[str], show_hmac: bool, options: AdminOptions) -> None:
    """Show the tokens that you may see."""
    found = ask(options, lambda admin: admin.describe_delegation_tokens(owners or None))
    document = {"tokens": [_token_json(token, show_hmac=show_hmac) for token in found]}
    names = ("id", "owner", "requester", "renewers", "expires", "ends")
    rows = [(*_row(token), _text_of(token.hmac)) if show_hmac else _row(token) for token in found]
    print_list(options, document, (*names, "HMAC") if show_hmac else names, rows, "No tokens.")


@tokens.command()
@ids_argument
@click.option(
    "--period-ms",
    type=click.IntRange(0, INT64),
    help="Milliseconds from now until the token expires.  [default: the cluster's]",
)
@admin_options
def renew(*, ids: Sequence[str], period_ms: int | None, options: AdminOptions) -> None:
    """Let tokens expire later."""
    period = -1 if period_ms is None else period_ms
    _alter(options, ids, lambda admin, hmac: admin.renew_delegation_token(hmac, renew_period_ms=period))


@tokens.command()
@ids_argument
@click.option(
    "--period-ms",
    type=click.IntRange(0, INT64),
    help="Milliseconds from now until the token expires.  [default: it is removed now]",
)
@admin_options
def expire(*, ids: Sequence[str], period_ms: int | None, options: AdminOptions) -> None:
    """Remove tokens, or let them expire earlier. Open connections end with them."""
    period = -1 if period_ms is None else period_ms
    _alter(
        options,
        ids,
        lambda admin, hmac: admin.expire_delegation_token(hmac, expiry_time_period_ms=period),
        "removed" if period_ms is None else "",
    )


def _alter(
    options: AdminOptions,
    ids: Sequence[str],
    change: Callable[[client.AdminClient, bytes], Awaitable[int]],
    done: str = "",
) -> None:
    """Change tokens that their ids name, and print what became of each."""
    unique = tuple(dict.fromkeys(ids))

    async def alter(admin: client.AdminClient) -> list[int | AdminError]:
        hmacs = {token.token_id: token.hmac for token in await admin.describe_delegation_tokens()}
        return [await _altered(admin, hmacs.get(token_id), change) for token_id in unique]

    results = zip(unique, ask(options, alter), strict=True)
    conclude(options, [_changed(token_id, result, done) for token_id, result in results])


async def _altered(
    admin: client.AdminClient,
    hmac: bytes | None,
    change: Callable[[client.AdminClient, bytes], Awaitable[int]],
) -> int | AdminError:
    if hmac is None:
        return AdminError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "There is no such token, or you may not see it.")
    try:
        return await change(admin, hmac)
    except AdminError as error:
        return error


def _changed(token_id: str, result: int | AdminError, done: str) -> ChangeResult:
    error = result if isinstance(result, AdminError) else None
    expires_ms = None if isinstance(result, AdminError) else result
    text = done or f"expires {'' if expires_ms is None else _time(expires_ms)}"
    return ChangeResult(token_id, text, {"id": token_id, "expires_ms": expires_ms}, error)


def _row(token: DelegationToken) -> tuple[str, ...]:
    people = (token.token_id, token.owner, token.requester, ", ".join(token.renewers))
    return (*people, _time(token.expires_ms), _time(token.max_ms))


def _token_json(token: DelegationToken, *, show_hmac: bool) -> dict[str, object]:
    return {
        "id": token.token_id,
        **({"hmac": _text_of(token.hmac)} if show_hmac else {}),
        "owner": token.owner,
        "requester": token.requester,
        "renewers": token.renewers,
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "max_ms": token.max_ms,
    }


def _text_of(hmac: bytes) -> str:
    """Write an HMAC as Kafka's tools do, which is the password for a login."""
    return base64.b64encode(hmac).decode()


def _time(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
