"""The commands `sim`: start, stop, observe and check simulations of people who talk."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agents.sim.scenarios import SimLibrary
from bus_schema.replies import Code
from bus_schema.sim import GetSimStatus, SimCounts, SimState, StartSim, StopSim
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.cli.console import errors, local_time, note, say, show_json, show_result, show_table
from mindbus.cli.errors import INTERRUPTED, CommandError, read_settings, valid_options
from mindbus.cli.language import language
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_if_there, answer_to, on_the_bus, run
from mindbus_fleet.cli.simulation_files import check_file, scenarios_of, teams_of

app = typer.Typer(no_args_is_help=True, help="Let simulated people talk.")
_LOOKS_S = 0.5
_TELLS_S = 5.0


@dataclass
class SimStart:
    """The simulation that goes on if whoever waits for it leaves."""

    sim_id: str | None = None


@app.command()
def start(
    profiles: Annotated[
        str | None,
        typer.Option(
            "--profiles", metavar="TEAM", help="The team: see mindbus sim ls; default: one that speaks your language."
        ),
    ] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", help="The scenario; default: the one that the team names.")
    ] = None,
    speed: Annotated[float, typer.Option("--speed", metavar="X", help="How many times faster than real time.")] = 1,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same conversation.")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="Stop after this many messages; default: never.")
    ] = None,
    starts_at: Annotated[
        datetime | None,
        typer.Option("--starts-at", metavar="T", help="Simulated time of the start; default: 9:00 that day."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit 1 if a message got no answer.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Let a team of simulated people talk by a scenario; agents read and answer them like anybody else.

    [bold]Examples[/bold]

    mindbus sim start                    until `mindbus sim stop`

    mindbus sim start --profiles team_ru --seed 7 --speed 60

    mindbus sim start --profiles team_en --speed 600 --limit 200 --wait
    """
    with valid_options():
        order = StartSim(
            profiles=profiles or f"team_{language()}",
            scenario=scenario,
            speed=speed,
            seed=seed,
            limit=limit,
            starts_at=_aware(starts_at),
        )
    started = SimStart()
    try:
        counts = run(_start(order, started, acting, wait=wait, is_silent=as_json))
    except KeyboardInterrupt:
        if started.sim_id is not None:
            note("")
            note("The simulation goes on without you. Stop it: mindbus sim stop")
        raise typer.Exit(INTERRUPTED) from None
    if counts is not None:
        show_result(counts, _show_counts, as_json=as_json)
        if counts.failed:
            raise typer.Exit(1)
    else:
        text = f"{started.sim_id} has begun. See it: mindbus sim status. Stop it: mindbus sim stop"
        show_result({"sim_id": started.sim_id}, text, as_json=as_json)


def _aware(moment: datetime | None) -> datetime | None:
    """A time without a zone is this machine's."""
    return moment.astimezone() if moment else None


@app.command()
def stop(
    sim_id: Annotated[
        str | None, typer.Argument(metavar="[SIM]", help="Only this one; default: whichever runs.")
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Stop the simulation; return once all that was said is answered.

    [bold]Example[/bold]

    mindbus sim stop
    """
    show_result(answer_to(lambda: StopSim(sim_id=sim_id), acting), _show_counts, as_json=as_json)


@app.command()
def status(acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show the simulation that runs, or ran last.

    [bold]Example[/bold]

    mindbus sim status
    """
    show_result(answer_to(GetSimStatus, acting), _show_state, as_json=as_json)


@app.command("ls")
def list_(as_json: Json = False) -> None:
    """List the teams and the scenarios that there are: those of MINDBUS_SIM_DIR, those that come with MindBus.

    [bold]Example[/bold]

    mindbus sim ls
    """
    library = SimLibrary(read_settings(FleetSettings).sim_dir)
    teams, scenarios = teams_of(library), scenarios_of(library)
    if as_json:
        show_json({"teams": teams, "scenarios": scenarios})
        return
    show_table(
        ("team", "language", "people", "scenario", "description"),
        ((t.name, t.language, t.people, t.scenario, t.problem or t.description) for t in teams),
    )
    say("")
    show_table(
        ("scenario", "language", "events", "description"),
        ((s.name, s.language, s.triggers, s.problem or s.description) for s in scenarios),
    )


@app.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="Teams, scenarios in YAML.")
    ],
    as_json: Json = False,
) -> None:
    """Look over a team or a scenario of your own; show every problem with its line, exit 1 if there is any.

    [bold]Example[/bold]

    mindbus sim check my-sims/profiles/team_x.yaml my-sims/scenarios/fair.yaml
    """
    found = [check_file(file, SimLibrary(read_settings(FleetSettings).sim_dir)) for file in files]
    if as_json:
        show_json({"ok": not any(each.problems for each in found), "files": found})
    else:
        for each in found:
            for problem in each.problems:
                say(str(problem))
            if not each.problems:
                say(f"{each.file}: a {each.kind} that can be used")
    if any(each.problems for each in found):
        raise typer.Exit(1)


async def _start(order: StartSim, started: SimStart, identity: str, *, wait: bool, is_silent: bool) -> SimCounts | None:
    async with on_the_bus(identity, goes_on=None) as bus:
        started.sim_id = (await bus.request(order)).sim_id
        return await until_over(bus, started.sim_id, order.limit, is_silent=is_silent) if wait else None


def _show_counts(counts: SimCounts) -> None:
    say(f"{counts.sim_id}: {counts.sent} said, {counts.answered} answered, {counts.failed} without an answer")


def _show_state(state: SimState) -> None:
    counts = state.counts
    if counts is None and not state.is_running:
        say("There has been no simulation.")
        return
    rows: list[tuple[str, object]] = [
        ("simulation", counts.sim_id if counts else None),
        ("state", "running" if state.is_running else "over"),
        ("team", state.profiles),
        ("scenario", state.scenario),
        ("speed", state.speed),
        ("seed", state.seed),
        ("limit", state.limit or "none"),
        ("started", local_time(state.started_at) if state.started_at else None),
    ]
    if counts is not None:
        rows += [("said", counts.sent), ("answered", counts.answered), ("without an answer", counts.failed)]
    show_table(("", ""), rows)


async def until_over(bus: Client, sim_id: str, limit: int | None, *, is_silent: bool) -> SimCounts:
    """Wait for the end of a simulation; its counts. Raises ReplyError, CommandError if it no longer exists."""
    with _progress(limit, is_silent=is_silent) as tell:
        while True:
            state = await answer_if_there(bus, GetSimStatus())
            if state is not None:
                if state.counts is None or state.counts.sim_id != sim_id:
                    raise CommandError(f"{sim_id} is not there any more: its data were cleared", Code.NOT_FOUND)
                tell(state.counts)
                if not state.is_running:
                    return state.counts
            await asyncio.sleep(_LOOKS_S)


@contextmanager
def _progress(limit: int | None, *, is_silent: bool) -> Iterator[Callable[[SimCounts], None]]:
    """A bar on a terminal, else a line once in a while."""
    console = errors()
    said_at = time.monotonic()

    def tell_in_lines(counts: SimCounts) -> None:
        nonlocal said_at
        if not is_silent and time.monotonic() - said_at > _TELLS_S:
            said_at = time.monotonic()
            console.print(f"{counts.answered} of {limit or counts.sent} answered", markup=False)

    if not console.is_terminal:
        yield tell_in_lines
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("answered", total=limit)
        yield lambda counts: bar.update(task, completed=counts.answered + counts.failed)
