"""The command `up`."""

import asyncio
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import typer

from bus_schema.data import ClearData
from config.settings import FleetSettings
from gateway.access_tokens import Token, login_path, token_of
from mindbus.cli.console import note, say, show_json
from mindbus.cli.errors import UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, Json
from mindbus.cli.session import WITHIN_S, on_the_bus, run
from mindbus.cli.users import CLEAR, RemovalOutcome, ask_owners, others_that_take, require_consent
from mindbus.registry import WorkerRegistry, installed_workers
from mindbus.tasks import run_until_stopped
from mindbus_fleet.cli.background import ReadinessReport, running_fleet, say_stopping, start_detached
from mindbus_fleet.cli.config_overrides import require_usable_configuration
from mindbus_fleet.cli.status import without_password
from mindbus_fleet.supervision.children import Group
from mindbus_fleet.supervision.run_folder import AlreadyUp, RunFolder, UpState
from mindbus_fleet.supervision.supervisor import Supervisor, fleet_up

_GATEWAY = "gateway"
_SHOWN_BY = "(`mindbus status --show-secrets` shows the login)"
# They compute for seconds, and one model serves all of them.
_MEMORY = frozenset({"glm", "kps", "lsm"})
app = typer.Typer()


@dataclass(frozen=True)
class DataClearing:
    """Has every owner of data that is started clear its own."""

    owners: Sequence[str]
    others: Sequence[str]
    settings: FleetSettings

    @classmethod
    def by(cls, workers: Collection[str], settings: FleetSettings) -> Self:
        """Raises UsageError where none of the workers owns any data."""
        owners = [name for name in CLEAR if name in workers]
        if not owners:
            raise UsageError(f"none of these workers owns data; --clear needs some of {', '.join(CLEAR)}")
        others = [name for name in others_that_take(ClearData, settings) if name in workers]
        return cls(owners, others, settings)

    @property
    def question(self) -> str:
        # Imported here: neither `down` nor an `up` that clears nothing needs it.
        from sqlalchemy.engine import make_url

        settings = self.settings
        urls = {settings.database_of(name) for name in self.owners if name != "sim"}
        databases = sorted(make_url(url).render_as_string(hide_password=True) for url in urls)
        places = ", ".join([*databases, settings.files_url])
        return f"Remove all data of {', '.join([*self.owners, *self.others])} for good? They are in {places}"

    async def work(self) -> RemovalOutcome:
        """Raises Failed unless every owner has done it."""
        async with on_the_bus(LOCAL_USER, self.settings) as bus:
            command = ClearData(confirm=True)
            outcome = await ask_owners(bus, command, self.owners, self.others, within_s=WITHIN_S)
        outcome.require_all()
        return outcome


@app.command()
def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when every worker is ready.")] = False,
    isolate: Annotated[bool, typer.Option("--isolate", help="A process for every worker.")] = False,
    workers: Annotated[str | None, typer.Option("--workers", help="Only these, separated by commas.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Then remove all data, for good; asks first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --clear: do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Start RabbitMQ and the workers; keep them alive.

    With MINDBUS_AMQP_URL that broker is used, else a private RabbitMQ node is started in the data folder.

    [bold]Examples[/bold]

    mindbus up                        in this terminal, until Ctrl-C

    mindbus up -d                     in the background, until mindbus down; a second time it says where all is

    mindbus up --workers storage,orchestrator --isolate

    mindbus up -d --clear --yes       on an empty world
    """
    settings = read_settings(FleetSettings)
    require_usable_configuration()
    # A tenant's people go to the gateway of its host.
    left_out = {_GATEWAY} if settings.tenant else set()
    groups, broken = groups_of(installed_workers().checked(apart=True), workers, isolate=isolate, left_out=left_out)
    running = running_fleet(settings)
    if running is not None:
        if clear:
            raise AlreadyUp(RunFolder(settings).data_dir, running.pid)
        announce(running, token_of(settings) if running.gateway_url else None, None, as_json=as_json, is_new=False)
        _warn_of_other_workers(running, {name for group in groups for name in group.workers}, is_asked=bool(workers))
        return
    clearing = _clearing(settings, groups, is_agreed=yes) if clear else None
    # Made here, where it can be shown to whoever starts it: the gateway itself only has a log.
    token = token_of(settings) if any(_GATEWAY in group.workers for group in groups) else None
    names = [name for group in groups for name in group.workers]
    arrivals = ReadinessReport(settings, names, is_silent=as_json)
    if detach:
        state = start_detached(settings, groups, broken, arrivals.look)
    else:
        supervisor = Supervisor(settings, groups, broken)
        run(run_until_stopped(_stay_up(supervisor, arrivals, clearing, token, as_json=as_json), say_stopping))
        return
    cleared = run(clearing.work()) if clearing else None
    announce(state, token, cleared, as_json=as_json)


def groups_of(
    fleet: WorkerRegistry, chosen: str | None, *, isolate: bool, left_out: Collection[str] = ()
) -> tuple[list[Group], dict[str, str]]:
    """Which workers share a process: ours do, since they mostly wait; those of memory, which compute, have another.

    Some are left out unless they are chosen.
    """
    names = (
        [name for name in fleet.entries if name not in left_out]
        if chosen is None
        else [name.strip() for name in chosen.split(",") if name.strip()]
    )
    if not names:
        raise UsageError("--workers names none")
    for name in names:
        fleet.require(name)
    ours = [name for name in dict.fromkeys(names) if name not in fleet.third_party]
    if isolate:
        together = [Group(name, (name,)) for name in ours]
    else:
        memory = tuple(name for name in ours if name in _MEMORY)
        light = tuple(name for name in ours if name not in _MEMORY)
        together = [group for group in (Group("workers", light), Group("memory", memory)) if group.workers]
    theirs = [Group(name, (name,), is_third_party=True) for name in dict.fromkeys(names) if name in fleet.third_party]
    return together + theirs, dict(fleet.broken) if chosen is None else {}


async def _stay_up(
    supervisor: Supervisor,
    arrivals: ReadinessReport,
    clearing: DataClearing | None,
    token: Token | None,
    *,
    as_json: bool,
) -> None:
    looking = asyncio.create_task(arrivals.keep_looking(), name="look for workers")
    async with fleet_up(supervisor) as state:
        looking.cancel()
        arrivals.look()
        cleared = await clearing.work() if clearing else None
        announce(state, token, cleared, as_json=as_json)
        await asyncio.Event().wait()


def _clearing(settings: FleetSettings, groups: Sequence[Group], *, is_agreed: bool) -> DataClearing:
    """The clearing to do once the workers are ready, confirmed before anything is started."""
    clearing = DataClearing.by({name for group in groups for name in group.workers}, settings)
    require_consent(clearing.question, is_given=is_agreed)
    return clearing


def _warn_of_other_workers(running: UpState, wanted: set[str], *, is_asked: bool) -> None:
    missing = sorted(wanted.difference(*(process.workers for process in running.workers)))
    if is_asked and missing:
        note(f"warning: {', '.join(missing)} do not run here; `mindbus down` first, then start them", style="yellow")


def announce(
    state: UpState, token: Token | None, cleared: RemovalOutcome | None, *, as_json: bool, is_new: bool = True
) -> None:
    if as_json:
        urls = {name: without_password(getattr(state, name)) for name in ("amqp_url", "management_url")}
        hidden = {**urls, "password": None}
        show_json(state.as_json() | hidden | ({"cleared": cleared.removed} if cleared else {}))
        return
    if cleared is not None:
        cleared.show()
    count = sum(len(process.workers) for process in state.workers)
    amount = f"{_many(count, 'worker', 's')} in {_many(len(state.workers), 'process', 'es')}"
    say(f"MindBus is up: {amount}." if is_new else f"MindBus is up already: {amount}.")
    if state.gateway_url:
        say(f"  Open          {state.gateway_url}{_way_in(token)}")
    if state.management_url:
        say(f"  RabbitMQ UI   {without_password(state.management_url)}{login_of(state)}")
    say(f"  Data          {state.data_dir}")
    say("  Try           mindbus process run article --input FILE")
    say("  Stop          mindbus down")
    for trouble in state.broken.values():
        note(f"warning: left out: {trouble}", style="yellow")


def _way_in(token: Token | None) -> str:
    if token is None:
        return ""
    if not sys.stdout.isatty():
        return "   (`mindbus open` signs you in)"
    return f"{login_path(token)}   (signs you in once, within ten minutes)"


def login_of(state: UpState) -> str:
    """The login of RabbitMQ's UI, which only looks; for the eyes of whoever sits at a terminal, never for a log."""
    if state.username is None:
        return ""
    return f"   login {state.username} / {state.password}" if sys.stdout.isatty() else f"   {_SHOWN_BY}"


def _many(count: int, noun: str, ending: str) -> str:
    return f"{count} {noun}{ending if count != 1 else ''}"
