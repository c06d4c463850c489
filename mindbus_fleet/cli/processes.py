"""The commands `process`: run a card, list, show and cancel runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bus_schema.process import CancelProcess, GetProcess, ListProcesses
from bus_schema.runs import Run, RunStatus
from config.settings import FleetSettings
from mindbus.cli.console import local_time, note, say, show, show_result, show_table
from mindbus.cli.errors import INTERRUPTED, UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to, on_the_bus, run
from mindbus.sdk.artifacts import open_artifacts
from mindbus_fleet.cli.process_run import Progress, RunRequest, follow, misbehaviour_lines, start, step_table

app = typer.Typer(no_args_is_help=True, help="Run Process Cards and look at their runs.")

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Such as run_0192….")]


@app.command("run")
def run_(
    card: Annotated[str, typer.Argument(help="A shipped card (article, review) or the path of a YAML file.")],
    input_: Annotated[list[Path], typer.Option("--input", help="The brief, Markdown or text; may be repeated.")],
    param: Annotated[list[str] | None, typer.Option("--param", metavar="K=V", help="For the card's roles.")] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return once it has started.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Run a card on a brief; show progress until it is over. Exit 1 unless it completes.

    [bold]Examples[/bold]

    mindbus process run article --input brief.md

    mindbus process run my-card.yaml --input brief.md --param tone=dry --json
    """
    order = RunRequest.read(card, input_, dict(_param(text) for text in param or []))
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
    show_result(ended, _show_run, as_json=as_json)
    if not no_wait and ended.status is not RunStatus.COMPLETED:
        raise typer.Exit(1)


@app.command()
def status(run_id: RunId, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show a run with its steps.

    [bold]Example[/bold]

    mindbus process status run_0192…
    """
    show_result(answer_to(lambda: GetProcess(run_id=run_id), acting, trace=run_id), _show_run, as_json=as_json)


@app.command("ls")
def list_(
    status: Annotated[RunStatus | None, typer.Option("--status", help="Only runs in that state.")] = None,
    card: Annotated[str | None, typer.Option("--card", help="Only runs of that card.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="The newest so many.")] = 20,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List runs, newest first.

    [bold]Example[/bold]

    mindbus process ls --status running
    """
    runs = answer_to(lambda: ListProcesses(status=status, card=card, limit=limit), acting).items
    show_result(runs, _show_runs, as_json=as_json)


@app.command()
def cancel(
    run_id: RunId,
    reason: Annotated[str, typer.Option("--reason", help="For the record.")] = "",
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Stop a run: no further step is sent, late results are ignored.

    [bold]Example[/bold]

    mindbus process cancel run_0192… --reason "wrong brief"
    """
    cancelled = answer_to(lambda: CancelProcess(run_id=run_id, reason=reason), acting, trace=run_id)
    show_result(cancelled, _show_run, as_json=as_json)


async def _run(order: RunRequest, identity: str, *, as_json: bool, no_wait: bool) -> Run:
    settings = read_settings(FleetSettings)
    async with on_the_bus(identity, settings, goes_on=None) as bus:
        async with open_artifacts(bus, settings) as artifacts:
            await start(order, bus, artifacts)
        if no_wait:
            return await bus.request(GetProcess(run_id=order.run_id), trace=order.run_id)
        if not as_json:
            note(f"started {order.run_id}")
        with Progress(is_silent=as_json) as progress:
            return await follow(order.run_id, bus, progress)


def _show_runs(runs: Sequence[Run]) -> None:
    show_table(
        ("run", "card", "status", "steps", "started", "by"),
        ((r.run_id, r.card_name, r.status.value, _progress(r), local_time(r.started_at), r.started_by) for r in runs),
    )


def _show_run(found: Run) -> None:
    show(step_table(found))
    for line in misbehaviour_lines(found):
        say(line)
    if found.reason:
        say(f"reason: {found.reason}")
    if found.result is not None:
        say(f"result: {found.result.artifact_id}   (mindbus artifacts get {found.result.artifact_id} -o FILE)")


def _param(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--param {text!r} is not K=V")
    return key, value


def _progress(found: Run) -> str:
    done = sum(step.status.value == "completed" for step in found.steps)
    return f"{done}/{len(found.steps)}"
