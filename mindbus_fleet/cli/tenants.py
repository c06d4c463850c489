"""The commands `tenants`: fleets that share the servers of this one, each for itself, with quotas."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from config.settings import FleetSettings
from mindbus.cli.console import say, show_result, show_table
from mindbus.cli.errors import UsageError, read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import run
from mindbus.cli.users import require_consent
from mindbus_fleet.tenants import Quotas, Tenant, TenantHost

app = typer.Typer(no_args_is_help=True, help="Host fleets that share this one's servers, each for itself.")

_SIZES = TypeAdapter(ByteSize)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name, such as acme.")]
Queues = Annotated[int | None, typer.Option("--queues", min=0, help="Queues, at most; 0: any number.")]
Connections = Annotated[
    int | None, typer.Option("--connections", min=0, help="Connections to RabbitMQ, at most; 0: any number.")
]
Bytes = Annotated[
    str | None, typer.Option("--bytes", metavar="SIZE", help="How much artifacts may weigh, as 20GB; 0: any amount.")
]
Tokens = Annotated[
    int | None, typer.Option("--tokens-per-day", min=0, help="Tokens of models on a day (UTC); 0: any number.")
]


@app.command()
def add(
    name: NameArgument,
    queues: Queues = None,
    connections: Connections = None,
    size: Bytes = None,
    tokens: Tokens = None,
    as_json: Json = False,
) -> None:
    """Make a tenant: a virtual host, a folder and, on PostgreSQL, a database of its own.

    The broker has to run, as the host's `mindbus up -d` sees to. Quotas are for the tenant as a whole.

    [bold]Examples[/bold]

    mindbus tenants add acme --bytes 20GB --tokens-per-day 2000000

    MINDBUS_TENANT=acme mindbus up -d     its workers; every other command is told alike whose it is
    """
    made = run(_host().add(name, _quotas(queues, connections, size, tokens)))
    start = f"MINDBUS_TENANT={name} mindbus up -d"
    show_result(_plain(made), f"{name} is there; start its workers with `{start}`", as_json=as_json)


@app.command("ls")
def list_(as_json: Json = False) -> None:
    """List the tenants with their quotas.

    [bold]Example[/bold]

    mindbus tenants ls
    """
    found = [_plain(each) for each in run(_host().all())]
    show_result(found, lambda rows: _show(rows), as_json=as_json)


@app.command("set")
def change(
    name: NameArgument,
    queues: Queues = None,
    connections: Connections = None,
    size: Bytes = None,
    tokens: Tokens = None,
    as_json: Json = False,
) -> None:
    """Change quotas; those of bytes and tokens hold from the next start of the tenant's workers on.

    [bold]Example[/bold]

    mindbus tenants set acme --tokens-per-day 5000000 --connections 0
    """
    wanted = _quotas(queues, connections, size, tokens)
    if wanted == Quotas():
        raise UsageError("say which quota: --queues, --connections, --bytes or --tokens-per-day")
    changed = _plain(run(_host().change(name, wanted)))
    show_result(changed, lambda row: _show([row]), as_json=as_json)


@app.command("rm")
def remove(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a tenant with all that it has, for good; asks first.

    [bold]Examples[/bold]

    MINDBUS_TENANT=acme mindbus backup /media/disk/acme     first, if anybody may want it back

    mindbus tenants rm acme
    """
    host = _host()
    tenant = run(host.show(name))
    question = f"Remove {tenant.name} with its {tenant.queues} queues, its data and its users, for good?"
    require_consent(question, is_given=yes)
    run(host.remove(name))
    show_result({"removed": name}, f"the tenant {name} is removed", as_json=as_json)


def _host() -> TenantHost:
    settings = read_settings(FleetSettings)
    if settings.tenant:
        raise UsageError(f"this is the tenant {settings.tenant}: unset MINDBUS_TENANT, as tenants are their host's")
    return TenantHost(settings)


def _quotas(queues: int | None, connections: int | None, size: str | None, tokens: int | None) -> Quotas:
    try:
        size_bytes = None if size is None else int(_SIZES.validate_python(size))
    except ValidationError as error:
        raise UsageError(f"{size!r} is not a size; write 20GB, 500MB or a number of bytes") from error
    return Quotas(queues, connections, size_bytes, tokens)


def _plain(tenant: Tenant) -> dict[str, Any]:
    return {"name": tenant.name, "running": tenant.is_running, "queues": tenant.queues, "quotas": asdict(tenant.quotas)}


def _show(rows: list[dict[str, Any]]) -> None:
    columns = ("tenant", "runs", "queues", "of", "connections", "bytes", "tokens a day")
    show_table(columns, [_row(**row) for row in rows])
    if not rows:
        say("`mindbus tenants add NAME` makes one")


def _row(name: str, running: bool, queues: int, quotas: dict[str, int | None]) -> tuple[object, ...]:
    size = quotas["artifact_bytes"]
    weight = ByteSize(size).human_readable(decimal=True) if size else None
    bounds = (quotas["queues"], quotas["connections"], weight, quotas["tokens_per_day"])
    return (name, "yes" if running else "no", queues, *("any" if each is None else each for each in bounds))
