"""The command `status`: workers and addresses of a data folder, and what of them is not well."""

import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any
from urllib.parse import quote, urlsplit, urlunsplit

import typer

from bus_schema.codes import Code
from config.settings import FleetSettings
from gateway.access_tokens import login_path, token_of
from mindbus.broker_url import endpoints_of
from mindbus.cli.console import say, show_json, show_result, show_table
from mindbus.cli.errors import CommandError, read_settings
from mindbus.cli.options import Json
from mindbus.health import Health, HealthFolder, is_alive
from mindbus.management import management_url
from mindbus.run_dir import broker_file, last_gateway_url
from mindbus.running_fleets import where_to_look
from mindbus.tenants import web_url
from mindbus_fleet.supervision.run_folder import RunFolder, UpState

_BROKER_ANSWERS_WITHIN_S = 2.0

app = typer.Typer()


@dataclass(frozen=True)
class WorkerStatus:
    """A worker of this machine; `trouble` is None where it is well."""

    name: str
    pid: int | None
    state: str
    at_work: int
    trouble: str | None


@dataclass(frozen=True)
class FleetStatus:
    """Workers and addresses of a data folder; `troubles` are sentences, none where all is well."""

    data_dir: str
    status: str
    pid: int | None
    gateway_url: str | None
    gateway_token: str | None
    amqp_url: str | None
    management_url: str | None
    workers: tuple[WorkerStatus, ...]
    troubles: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        return not self.troubles

    def as_json(self, *, with_secrets: bool) -> dict[str, Any]:
        """The fields and `is_well`; without secrets the URLs have no passwords, and there is no token."""
        fields = {"is_well": self.is_well} | asdict(self)
        if not with_secrets:
            urls = {name: without_password(fields[name]) for name in ("amqp_url", "management_url")}
            fields |= urls | {"gateway_token": None}
        return fields


@app.command()
def status(
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="With passwords and the web app's token.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what runs on this data folder and where; exit 1 if something of it is not well.

    [bold]Examples[/bold]

    mindbus status

    mindbus status --show-secrets --json
    """
    found = fleet_status(read_settings(FleetSettings))
    if as_json:
        show_json(found.as_json(with_secrets=show_secrets))
    else:
        _show(found, with_secrets=show_secrets)
    if not found.is_well:
        raise typer.Exit(1)


@app.command("open")
def open_app(
    page: Annotated[str, typer.Argument(metavar="[PAGE]", help="Such as /fleet or /runs/run_0192….")] = "/",
    as_json: Json = False,
) -> None:
    """Open the web app, signed in.

    [bold]Examples[/bold]

    mindbus open

    mindbus open /runs/run_0192…
    """
    settings = read_settings(FleetSettings)
    found = fleet_status(settings)
    if found.gateway_url is None:
        raise CommandError("the web app does not run here: start it with `mindbus up -d`", Code.UNAVAILABLE)
    link = link_into(found.gateway_url, settings, page)
    is_open = webbrowser.open(link)
    # The link lets in whoever has it, once: it is for a terminal, not for a log.
    shown = link if sys.stdout.isatty() else found.gateway_url
    show_result({"url": shown, "is_open": bool(is_open)}, f"{'Opened' if is_open else 'Open'} {shown}", as_json=as_json)


def link_into(gateway_url: str, settings: FleetSettings, page: str = "/") -> str:
    """Address of a page of the web app that signs in whoever opens it, once."""
    token, target = token_of(settings), quote(f"/{page.lstrip('/')}")
    base = web_url(gateway_url, settings.tenant) if settings.tenant else gateway_url
    return f"{base}{target}" if token is None else f"{base}{login_path(token)}&next={target}"


def fleet_status(settings: FleetSettings) -> FleetStatus:
    """The fleet of a data folder as its files and its broker tell."""
    folder, health = RunFolder(settings), HealthFolder(settings)
    up = folder.state() if folder.is_taken() else None
    workers = tuple(_workers(up, health))
    addresses = broker_file(settings)
    amqp_url = settings.amqp_url or (addresses.read_text().strip() if addresses.exists() else None)
    token = token_of(settings) if up is not None else None
    return FleetStatus(
        data_dir=str(folder.data_dir),
        status=up.status if up is not None else "workers only" if workers else "down",
        pid=up.pid if up is not None else None,
        gateway_url=last_gateway_url(settings) if any(worker.name == "gateway" for worker in workers) else None,
        gateway_token=token.text if token is not None else None,
        amqp_url=amqp_url,
        management_url=management_url(settings, amqp_url) if amqp_url else None,
        workers=workers,
        troubles=tuple(_troubles(settings, up, workers, amqp_url)),
    )


def without_password(url: str | None) -> str | None:
    """The URL with asterisks for a password."""
    parts = urlsplit(url or "")
    if parts.password is None:
        return url
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{address}"))


def _workers(up: UpState | None, health: HealthFolder) -> Iterator[WorkerStatus]:
    """The workers that `up` has started, and those that were started apart, as their health files tell."""
    seen: set[str] = set()
    for each in health.all_here():
        if is_alive(each.pid):
            seen.add(each.name)
            yield _worker(each, health)
    for process in up.workers if up is not None else ():
        for name in process.workers:
            if name not in seen:
                yield WorkerStatus(name, process.pid, "absent", 0, "does not run; see its log, or `mindbus doctor`")


def _worker(each: Health, health: HealthFolder) -> WorkerStatus:
    return WorkerStatus(each.name, each.pid, str(each.state), each.at_work, health.trouble(each))


def _troubles(
    settings: FleetSettings, up: UpState | None, workers: tuple[WorkerStatus, ...], amqp_url: str | None
) -> Iterator[str]:
    if up is None and not workers:
        yield f"nothing runs here: start it with `mindbus up -d`. {where_to_look(settings)}"
        return
    if up is not None and up.status != "ready":
        yield "the fleet is still starting"
    if amqp_url is None or not _answers(amqp_url):
        yield f"RabbitMQ does not answer at {without_password(amqp_url) or 'any known address'}"
    yield from (f"{worker.name} {worker.trouble}" for worker in workers if worker.trouble)
    yield from (f"{name} was left out: {reason}" for name, reason in (up.broken if up is not None else {}).items())


def _answers(amqp_url: str) -> bool:
    for endpoint in endpoints_of(amqp_url):
        with suppress(OSError):
            socket.create_connection(endpoint, _BROKER_ANSWERS_WITHIN_S).close()
            return True
    return False


def _show(found: FleetStatus, *, with_secrets: bool) -> None:
    fields = found.as_json(with_secrets=with_secrets)
    say(f"MindBus is {found.status}{'' if found.is_well or found.status == 'down' else ', but not all is well'}.")
    for label, name in (
        ("Web app", "gateway_url"),
        ("Token", "gateway_token"),
        ("RabbitMQ", "amqp_url"),
        ("RabbitMQ UI", "management_url"),
        ("Data", "data_dir"),
    ):
        if fields[name]:
            say(f"  {label:<13} {fields[name]}")
    if found.workers:
        show_table(("worker", "state", "process", "trouble"), map(_row, found.workers))
    for trouble in found.troubles:
        say(f"- {trouble}")


def _row(worker: WorkerStatus) -> tuple[str, str, str, str]:
    return worker.name, worker.state.replace("_", " "), str(worker.pid or "-"), worker.trouble or ""
