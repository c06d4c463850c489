"""The commands `process`: run a card, list, show and steer runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bus_schema.process import GetProcess, ListProcesses
from bus_schema.runs import Run, RunStatus
from config.settings import FleetSettings
from mindbus.cli.console import local_time, note, show_result, show_table
from mindbus.cli.errors import INTERRUPTED, read_settings
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to, on_the_bus, run
from mindbus.sdk.artifacts import open_artifacts
from mindbus_fleet.cli.model_calls import calls
from mindbus_fleet.cli.process_control import RunId, approve, cancel, cost, pause, reject, replace, rerun, resume, retry
from mindbus_fleet.cli.process_export import export
from mindbus_fleet.cli.process_run import NoWait, RunRequest, Set, end_of, finish, params_of, show_run, start

app = typer.Typer(no_args_is_help=True, help="Run Process Cards, look at their runs and steer them.")


@app.command("run")
def run_(
    card: Annotated[str, typer.Argument(help="A card by name (mindbus card ls), or the path of a YAML file.")],
    input_: Annotated[list[Path], typer.Option("--input", help="The brief, Markdown or text; may be repeated.")],
    changes: Set = None,
    no_wait: NoWait = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Run a card on a brief; show progress until it is over. Exit 1 unless it completes.

    [bold]Examples[/bold]

    mindbus process run article --input brief.md

    mindbus process run my-card.yaml --input brief.md --set tone=dry --json
    """
    order = RunRequest.read(card, input_, params_of(changes))
    try:
        ended = run(_run(order, acting, as_json=as_json, no_wait=no_wait))
    except KeyboardInterrupt:
        note("")
        if order.is_started:
            note(f"The run goes on without you. See it: mindbus process status {order.run_id}")
            note(f"Stop it: mindbus process cancel {order.run_id}")
        else:
            note("Interrupted.")
        raise typer.Exit(INTERRUPTED) from None
    finish(ended, as_json=as_json, no_wait=no_wait)


@app.command()
def status(run_id: RunId, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show a run with its steps.

    [bold]Example[/bold]

    mindbus process status run_0192…
    """
    show_result(answer_to(lambda: GetProcess(run_id=run_id), acting, trace=run_id), show_run, as_json=as_json)


@app.command("ls")
def list_(
    status: Annotated[RunStatus | None, typer.Option("--status", help="Only runs in that state.")] = None,
    card: Annotated[str | None, typer.Option("--card", help="Only runs of that card.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many to show, newest first.")] = 20,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List runs, newest first.

    [bold]Example[/bold]

    mindbus process ls --status running
    """
    runs = answer_to(lambda: ListProcesses(status=status, card=card, limit=limit), acting).items
    show_result(runs, show_runs, as_json=as_json)


for command in (calls, cost, cancel, pause, resume, retry, rerun, approve, reject, replace, export):
    app.command()(command)


async def _run(order: RunRequest, identity: str, *, as_json: bool, no_wait: bool) -> Run:
    settings = read_settings(FleetSettings)
    async with on_the_bus(identity, settings, goes_on=None, speaks=True) as bus:
        async with open_artifacts(bus, settings) as artifacts:
            await start(order, bus, artifacts)
        if no_wait:
            return await bus.request(GetProcess(run_id=order.run_id), trace=order.run_id)
        if not as_json:
            note(f"{translate('started')} {order.run_id}")
        return await end_of(order.run_id, bus, as_json=as_json)


def show_runs(runs: Sequence[Run]) -> None:
    show_table(
        ("run", "card", "status", "steps", "started", "by"),
        ((r.run_id, r.card_name, r.status.value, _progress(r), local_time(r.started_at), r.started_by) for r in runs),
    )


def _progress(found: Run) -> str:
    done = sum(step.status.value == "completed" for step in found.steps)
    return f"{done}/{len(found.steps)}"
