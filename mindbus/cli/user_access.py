"""Access of users: make and revoke accounts, each with a login to RabbitMQ and a token for the web app and HTTP."""

import re
import secrets
from collections.abc import Sequence
from typing import Annotated

import typer

from bus_schema.delegation import is_of_fleet
from bus_schema.identities import SERVICE_NAME
from bus_schema.replies import Code
from mindbus.accounts import AccessRole, Account, Accounts, accounts_of
from mindbus.bus.connection import find_broker
from mindbus.bus.permissions import instance_mark
from mindbus.cli.console import say, show_result
from mindbus.cli.errors import CommandError, UsageError, read_settings
from mindbus.cli.options import Json, UserArgument
from mindbus.cli.session import require_reachable, run
from mindbus.registry import installed_workers
from mindbus.runtime.provision import Administrator, client_definitions
from mindbus.settings import Settings
from mindbus.tenants import login_of

_ROLES = {role.value: role for role in AccessRole}

RoleOption = Annotated[
    str | None,
    typer.Option("--role", metavar="ROLE", help="user, operator or agent: makes a login and a token, shown once."),
]
OfRole = Annotated[str | None, typer.Option("--role", metavar="ROLE", help="That of this role alone.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="The token may look, and change nothing.")]


def access_role(text: str) -> AccessRole | None:
    """The role that a word names, if it is one."""
    return _ROLES.get(text)


def grant(name: str, role: AccessRole, *, can_write: bool) -> dict[str, str]:
    """Make an account with its login: name, role, AMQP address, token. Raises AccountExists, BusUnavailable."""
    if role is AccessRole.AGENT:
        _require_agent_name(name)
    return run(_grant(read_settings(), name, role, can_write=can_write))


def show_grant(granted: dict[str, str]) -> None:
    say(f"{granted['name']} has the role {granted['role']}. Shown this once:")
    say(f"  Token     {granted['token']}   (web app, HTTP)")
    say(f"  RabbitMQ  {granted['amqp_url']}   (MINDBUS_AMQP_URL of programs and the command line)")


def logins(role: AccessRole | None = None) -> list[Account]:
    """The accounts of the data folder, of all roles or of one."""
    return [each for each in accounts_of(read_settings()).all() if role in (None, each.role)]


def revoke(user: UserArgument, role: OfRole = None, as_json: Json = False) -> None:
    """End the access of a user or an agent: the token, sessions of browsers, the login to RabbitMQ; at once.

    What is known of them stays: `users forget` removes that.

    [bold]Examples[/bold]

    mindbus users revoke anna

    mindbus users revoke scout --role agent --json
    """
    settings = read_settings()
    accounts = accounts_of(settings)
    found = _found(accounts, user, role)
    run(_revoke(settings, accounts, found))
    ended = [{"name": each.name, "role": each.role.value} for each in found]
    show_result({"revoked": ended}, f"{user} has no access any more", as_json=as_json)


def renew(user: UserArgument, role: OfRole = None, as_json: Json = False) -> None:
    """Make another token and login of RabbitMQ for whoever has access; the former ones and open sessions end at once.

    Role, read-only tokens and all that is theirs stay as they are.

    [bold]Examples[/bold]

    mindbus users renew anna

    mindbus users renew scout --role agent --json
    """
    settings = read_settings()
    accounts = accounts_of(settings)
    found = _found(accounts, user, role)
    if len(found) > 1:
        raise UsageError(f"{user} is a person and an agent: say which with --role")
    show_result(run(_renew(settings, accounts, found[0])), show_grant, as_json=as_json)


async def end_access(settings: Settings, user_id: str) -> int:
    """Revoke whatever access a person has; number of accounts. Raises BusUnavailable."""
    accounts = accounts_of(settings)
    found = [each for each in accounts.all() if each.user_id == user_id]
    if found:
        await _revoke(settings, accounts, found)
    return len(found)


async def _grant(settings: Settings, name: str, role: AccessRole, *, can_write: bool) -> dict[str, str]:
    admin = await _administrator(settings)
    accounts, account = accounts_of(settings), Account(name, role)
    token = accounts.add(name, role, can_write=can_write)
    try:
        amqp_url = await _new_login(admin, account, settings)
    except BaseException:
        accounts.revoke(account.identity)
        raise
    return _granted(account, amqp_url, token)


async def _renew(settings: Settings, accounts: Accounts, account: Account) -> dict[str, str]:
    # First what is on this machine: should the broker not answer, the former token is worth nothing all the same.
    token = accounts.renew(account.identity)
    admin = await _administrator(settings)
    login = login_of(settings.tenant, account.login)
    if login in await admin.management.users():
        # Its connections end with it.
        await admin.management.delete_user(login)
    return _granted(account, await _new_login(admin, account, settings), token)


async def _new_login(admin: Administrator, account: Account, settings: Settings) -> str:
    """Make the user of RabbitMQ, and return its address with the password."""
    password, login = secrets.token_urlsafe(24), login_of(settings.tenant, account.login)
    await admin.management.import_definitions(client_definitions(login, password, admin.management.vhost))
    return admin.url_of(login, password)


def _granted(account: Account, amqp_url: str, token: str) -> dict[str, str]:
    prefix = instance_mark(account.login)
    shown = {"name": account.name, "role": account.role.value, "amqp_url": amqp_url, "token": token}
    return shown | {"instance_prefix": prefix}


def _found(accounts: Accounts, user: str, role: str | None) -> list[Account]:
    """Accounts of a name, of one role where it is given. Raises UsageError, CommandError."""
    if role is not None and access_role(role) is None:
        raise UsageError(f"{role!r} is not a role: write user, operator or agent")
    found = [each for each in accounts.all() if each.name == user and role in (None, each.role)]
    if not found:
        raise CommandError(f"{user} has no access; `mindbus users ls` lists who has", Code.NOT_FOUND)
    return found


async def _revoke(settings: Settings, accounts: Accounts, found: Sequence[Account]) -> None:
    # The token and its sessions end even where the broker does not answer.
    for account in found:
        accounts.revoke(account.identity)
    admin = await _administrator(settings)
    known = set(await admin.management.users())
    for login in {login_of(settings.tenant, account.login) for account in found} & known:
        await admin.management.delete_user(login)


async def _administrator(settings: Settings) -> Administrator:
    amqp_url = find_broker(settings)
    await require_reachable(amqp_url)
    return Administrator.at(amqp_url, settings)


def _require_agent_name(name: str) -> None:
    if is_of_fleet(f"agent.{name}"):
        raise UsageError(f"{name!r} is a worker of the fleet: give the agent another name")
    installed_workers().require_free(name, "users add")
    if not re.fullmatch(SERVICE_NAME, name):
        raise UsageError(f"{name!r} is not a valid agent name: use only lower-case Latin letters, digits, _ and -")
