"""The commands `topology`: compare the broker with the code, apply, prune, migrate."""

import dataclasses
import json
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlsplit

import typer

from config.settings import FleetSettings
from mindbus.broker_url import with_login
from mindbus.bus import topology_admin
from mindbus.bus.claims import Claims
from mindbus.bus.connection import find_broker, open_transport
from mindbus.bus.permissions import definitions_of, merged, topology_definitions, user_definition
from mindbus.bus.topology import Topology
from mindbus.bus.topology_admin import Difference
from mindbus.bus.worker import Worker
from mindbus.cli.console import note, say, show_result, show_table
from mindbus.cli.errors import read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import require_reachable, run
from mindbus.cli.worker import factories_at
from mindbus.files.disk import write_private
from mindbus.files.store import has_direct_access, open_files
from mindbus.management import Management, open_management
from mindbus.registry import Factory, installed_workers
from mindbus.run_dir import user_file
from mindbus.runtime.provision import Administrator, permissions_of, queues_of, shared_by_all
from mindbus.runtime.service import build
from mindbus.tenants import login_of

T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, help="Keep the broker's queues and exchanges as the code says.")
Work = Callable[[str, Management, Topology], Awaitable[T]]


@app.command()
def apply(
    workers: Annotated[
        list[str] | None,
        typer.Option("--worker", metavar="NAME", help="Only this one, with a user; your own as module:Class."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Declare what is missing; workers that share a user with all others do so for themselves when they start.

    With --worker, a worker gets a user of its own that may do what it needs and nothing else: its address is kept in
    a file. Needs the login of an administrator in MINDBUS_AMQP_URL, unless on the private node.

    [bold]Examples[/bold]

    mindbus topology apply

    mindbus topology apply --worker storage --worker counter:CounterWorker
    """
    if workers:
        _show_users(run(_apply_workers(workers)), as_json=as_json)
        return

    async def declare(amqp_url: str, management: Management, wanted: Topology) -> tuple[int, list[str]]:
        older = await topology_admin.made_otherwise(management, wanted)
        queues = tuple(queue for queue in wanted.queues if queue.name not in older)
        await topology_admin.apply(amqp_url, dataclasses.replace(wanted, queues=queues))
        await topology_admin.apply_policies(management, wanted)
        return len({queue.name for queue in queues}), older

    count, older = run(on_broker(declare))
    show_result({"queues": count, "to_migrate": older}, f"{count} queues are declared", as_json=as_json)
    if older:
        note(f"made with other arguments, and left as they are: {', '.join(older)}; run: mindbus topology migrate")


@app.command()
def diff(as_json: Json = False) -> None:
    """Show where the broker differs from the code; exit 1 if it does.

    [bold]Example[/bold]

    mindbus topology diff
    """
    found = run(on_broker(lambda _url, management, wanted: topology_admin.compare(management, wanted)))
    show_result([dataclasses.asdict(each) for each in found], lambda _all: _show_differences(found), as_json=as_json)
    if found:
        raise typer.Exit(1)


@app.command()
def prune(as_json: Json = False) -> None:
    """Delete exchanges the code does not know, and such queues if they are empty and unused.

    [bold]Example[/bold]

    mindbus topology prune
    """
    _show_names("pruned", run(on_broker(topology_admin.prune)), as_json=as_json)


@app.command()
def migrate(as_json: Json = False) -> None:
    """Rebuild queues whose arguments have changed, and redistribute messages over partitions whose number has.

    All messages are kept in their order; stop the fleet, and programs that send to it.

    [bold]Example[/bold]

    mindbus topology migrate
    """
    settings = read_settings(FleetSettings)
    claims = Claims(open_files(settings) if has_direct_access(settings) else None)

    async def move(amqp_url: str, management: Management, wanted: Topology) -> list[str]:
        redeem = claims.redeem if claims.files is not None else None
        return await topology_admin.migrate(amqp_url, management, wanted, redeem)

    _show_names("migrated", run(on_broker(move)), as_json=as_json)


@app.command()
def export(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; default: standard output.")] = None,
    passwords: Annotated[
        Path | None,
        typer.Option("--passwords", metavar="FOLDER", help="Make passwords; a file for each user's address."),
    ] = None,
) -> None:
    """Write the definitions that RabbitMQ imports: exchanges, queues, a user for each worker with its permissions.

    Without --passwords the users have none, and cannot log in until you set one. No broker is needed.

    [bold]Examples[/bold]

    mindbus topology export -o definitions.json --passwords secrets

    rabbitmqctl import_definitions definitions.json
    """
    settings = read_settings(FleetSettings)
    made = _new_passwords(settings, passwords) if passwords is not None else {}
    text = json.dumps(definitions(settings, made), indent=2) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        write_private(output, text)


async def _apply_workers(targets: Sequence[str]) -> dict[str, str | None]:
    """Files with the addresses of the new users, by worker; None of those who have one."""
    settings = read_settings(FleetSettings)
    amqp_url = find_broker(settings)
    await require_reachable(amqp_url)
    admin = Administrator.at(amqp_url, settings)
    is_private = settings.amqp_url is None
    makers = {name: make for target in targets for name, make in factories_at(target, is_private=is_private).items()}
    workers = [_built(name, make, settings) for name, make in makers.items()]
    new = await admin.add_users(makers, settings)
    await admin.provide(workers, settings)
    return {name: str(user_file(settings, name)) if name in new else None for name in makers}


def _new_passwords(settings: FleetSettings, folder: Path) -> dict[str, str]:
    """A password for each worker, with a file of its address."""
    address = settings.amqp_url or f"amqp://localhost:5672/{settings.tenant or ''}"
    passwords = {name: secrets.token_urlsafe(24) for name in installed_workers().checked().entries}
    for name, password in passwords.items():
        write_private(folder / name, with_login(address, login_of(settings.tenant, name), password))
    return passwords


def definitions(settings: FleetSettings, passwords: Mapping[str, str]) -> dict[str, Any]:
    """Exchanges, queues and users with their permissions, as RabbitMQ imports them, for all installed workers.

    A user without a password cannot log in until it has one.
    """
    vhost = unquote(urlsplit(settings.amqp_url or "").path.removeprefix("/")) or settings.tenant or "/"
    topology = shared_by_all(settings)
    parts: list[dict[str, list[Any]]] = []
    for name, make in installed_workers().checked().entries.items():
        worker = _built(name, make, settings)
        topology += queues_of(worker, settings)
        login = login_of(settings.tenant, name)
        parts.append({"users": [user_definition(login, passwords.get(name))]})
        parts.append(definitions_of(login, permissions_of(worker, settings), vhost))
    return {"vhosts": [{"name": vhost}], **merged([*parts, topology_definitions(topology, vhost)])}


def _built(name: str, make: Factory, settings: FleetSettings) -> Worker:
    """A worker that is not going to be started."""
    apart = settings.model_copy(update={"amqp_url": "memory://topology"})
    return build(make, name, apart, open_transport(apart, name)).worker


async def on_broker(work: Work[T]) -> T:
    settings = read_settings(FleetSettings)
    amqp_url = find_broker(settings)
    await require_reachable(amqp_url)
    is_private = settings.amqp_url is None
    # The address that `mindbus up` leaves for RabbitMQ's UI is that of a user who can only look.
    management = Administrator.at(amqp_url, settings).management if is_private else open_management(settings, amqp_url)
    return await work(amqp_url, management, _required_topology(settings))


def _required_topology(settings: FleetSettings) -> Topology:
    """The topology of all installed workers; they are built, but not started."""
    wanted = shared_by_all(settings)
    for name, make in installed_workers().checked().entries.items():
        wanted += queues_of(_built(name, make, settings), settings)
    return wanted


def _show_differences(differences: list[Difference]) -> None:
    if differences:
        show_table(("difference", "name", "detail"), ((x.kind, x.name, x.detail) for x in differences))
    else:
        say("The broker matches the code.")


def _show_users(files: dict[str, str | None], *, as_json: bool) -> None:
    lines = [f"{name}: {file or 'has its user'}" for name, file in files.items()]
    show_result({"users": files}, "Addresses with the logins of\n  " + "\n  ".join(lines), as_json=as_json)


def _show_names(done: str, names: list[str], *, as_json: bool) -> None:
    show_result({done: names}, f"{done} {len(names)}" + "".join(f"\n  {name}" for name in names), as_json=as_json)
