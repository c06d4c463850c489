"""The commands `process pause|resume|retry|rerun|approve|reject|replace|cancel`: control of runs that are there."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from bus_schema.ids import mint
from bus_schema.process import CancelProcess, GetProcess
from bus_schema.run_control import (
    ApproveStep,
    Costs,
    GetCosts,
    PauseProcess,
    RejectStep,
    RerunProcess,
    ResumeProcess,
    RetryProcess,
)
from bus_schema.runs import Run, Spent
from config.settings import FleetSettings
from mindbus.cli.console import note, show_result, show_table
from mindbus.cli.errors import read_settings, valid_options
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, TIMES, As, Json
from mindbus.cli.session import answer_to, on_the_bus, run
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.steps import replace_output
from mindbus_fleet.cli.briefs import read_brief
from mindbus_fleet.cli.process_run import NoWait, Set, end_of, finish, params_of, show_run

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Such as run_0192….")]
StepArgument = Annotated[str, typer.Argument(metavar="STEP", help="The step's id in the card, such as draft.")]
Note = Annotated[str, typer.Option("--note", help="Your comment.")]
Reason = Annotated[str, typer.Option("--reason", help="The reason; it is recorded with the run.")]


def cancel(run_id: RunId, reason: Reason = "", acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Stop a run: no further step is sent, late results are ignored.

    [bold]Example[/bold]

    mindbus process cancel run_0192… --reason "wrong brief"
    """
    cancelled = answer_to(lambda: CancelProcess(run_id=run_id, reason=reason), acting, trace=run_id)
    show_result(cancelled, show_run, as_json=as_json)


def pause(run_id: RunId, reason: Reason = "", acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Send no further step of a run; results of those under way are taken in.

    [bold]Example[/bold]

    mindbus process pause run_0192… --reason "the brief may change"
    """
    paused = answer_to(lambda: PauseProcess(run_id=run_id, reason=reason), acting, trace=run_id)
    show_result(paused, show_run, as_json=as_json)


def resume(run_id: RunId, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Resume a paused run.

    [bold]Example[/bold]

    mindbus process resume run_0192…
    """
    show_result(answer_to(lambda: ResumeProcess(run_id=run_id), acting, trace=run_id), show_run, as_json=as_json)


def retry(
    run_id: RunId,
    from_step: Annotated[
        str | None, typer.Option("--from", metavar="STEP", help="Redo this step, and everything made from it.")
    ] = None,
    no_wait: NoWait = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Resume a run where it failed; existing outputs are reused, and not paid for again.

    [bold]Examples[/bold]

    mindbus process retry run_0192…

    mindbus process retry run_0192… --from edit
    """

    with valid_options():
        request = RetryProcess(run_id=run_id, from_step=from_step)

    async def ask() -> Run:
        async with on_the_bus(acting, goes_on=None) as bus:
            retried = await bus.request(request, trace=run_id)
            return retried if no_wait else await end_of(run_id, bus, as_json=as_json)

    finish(run(ask()), as_json=as_json, no_wait=no_wait)


def rerun(
    run_id: RunId,
    changes: Set = None,
    no_wait: NoWait = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Start a new run with the card and brief of an earlier one; parameters that you set replace its own.

    [bold]Example[/bold]

    mindbus process rerun run_0192… --set tone=dry
    """
    params = params_of(changes)
    with valid_options():
        again = RerunProcess(run_id=mint("run"), of_run=run_id, params=params)

    async def ask() -> Run:
        async with on_the_bus(acting, goes_on=None) as bus:
            await bus.request(again, trace=again.run_id)
            if no_wait:
                return await bus.request(GetProcess(run_id=again.run_id), trace=again.run_id)
            if not as_json:
                note(f"{translate('started')} {again.run_id}")
            return await end_of(again.run_id, bus, as_json=as_json)

    finish(run(ask()), as_json=as_json, no_wait=no_wait)


def cost(
    run_id: Annotated[str | None, typer.Argument(metavar="RUN", help="One run; default: all that you may see.")] = None,
    by: Annotated[
        Literal["step", "run", "card", "user", "day"] | None, typer.Option("--by", help="What to add up by.")
    ] = None,
    since: Annotated[datetime | None, typer.Option("--since", formats=TIMES, help="Only runs started since.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Add up tokens, calls, seconds and price of runs; prices are a table in models.yaml.

    [bold]Examples[/bold]

    mindbus process cost run_0192…

    mindbus process cost --by user --since 2026-11-01
    """
    start = since.astimezone() if since else None
    group = by or ("step" if run_id else "run")
    costs = answer_to(lambda: GetCosts(run_id=run_id, since=start, by=group), acting, trace=run_id)
    show_result(costs, lambda found: _show_costs(found, group), as_json=as_json)


def _show_costs(costs: Costs, by: str) -> None:
    def row(key: str, runs: object, spent: Spent) -> tuple[object, ...]:
        price = "" if spent.price is None else f"{spent.price:.4f}"
        numbers = (spent.model_calls, spent.prompt_tokens, spent.completion_tokens)
        return key, runs, *numbers, f"{spent.took_ms / 1000:.1f}", price

    rows = [row(line.key, line.runs, line.spent) for line in costs.lines]
    columns = (by, "runs", "calls", "tokens in", "tokens out", "seconds", "price")
    show_table(columns, [*rows, row("total", "", costs.total)])
    if not costs.is_all:
        note("Older runs are not among them: there are too many to be added up. Name a time with --since, or a run.")


def approve(
    run_id: RunId, step_id: StepArgument, note: Note = "", acting: As = LOCAL_USER, as_json: Json = False
) -> None:
    """Approve a step that waits for you; the run goes on.

    [bold]Example[/bold]

    mindbus process approve run_0192… sign --note "fine, publish it"
    """
    answered = answer_to(lambda: ApproveStep(run_id=run_id, step_id=step_id, note=note), acting, trace=run_id)
    show_result(answered, show_run, as_json=as_json)


def reject(
    run_id: RunId, step_id: StepArgument, note: Note = "", acting: As = LOCAL_USER, as_json: Json = False
) -> None:
    """Reject a step that waits for you; a loop repeats with your note, otherwise the run fails.

    [bold]Example[/bold]

    mindbus process reject run_0192… sign --note "too long by half"
    """
    answered = answer_to(lambda: RejectStep(run_id=run_id, step_id=step_id, note=note), acting, trace=run_id)
    show_result(answered, show_run, as_json=as_json)


def replace(run_id: RunId, step_id: StepArgument, file: Path, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Replace a step's output by your own text, as a new version. What was made from the old one is redone.

    [bold]Example[/bold]

    mindbus process replace run_0192… draft draft.md
    """
    text = read_brief(file)
    with valid_options():
        GetProcess(run_id=run_id)

    async def ask() -> Run:
        settings = read_settings(FleetSettings)
        async with on_the_bus(acting, settings) as bus, open_artifacts(bus, settings) as artifacts:
            return await replace_output(bus, artifacts, run_id, step_id, text.decode())

    show_result(run(ask()), show_run, as_json=as_json)
