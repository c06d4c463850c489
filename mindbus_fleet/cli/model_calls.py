"""The command `process calls`: the calls of models that a run has made, with prompts and answers."""

from collections.abc import Sequence
from typing import Annotated

import typer

from bus_schema.artifacts import Manifest
from bus_schema.model_calls import MODEL_CALL, ModelCall, SaidToModel
from bus_schema.process import GetProcess
from bus_schema.storage import SearchArtifacts
from config.settings import FleetSettings
from mindbus.cli.console import local_time, say, say_data, show_result, show_table
from mindbus.cli.errors import read_settings, valid_options
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import on_the_bus, request_items, run
from mindbus.sdk.artifacts import open_artifacts

_MOST = 500
Kept = Sequence[tuple[Manifest, ModelCall | None]]


def calls(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Such as run_0192….")],
    step: Annotated[str | None, typer.Option("--step", help="Only of this step.")] = None,
    full: Annotated[bool, typer.Option("--full", help="With prompts and answers.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List the calls of models that a run has made: of its starter, and operators, as long as they are kept.

    [bold]Examples[/bold]

    mindbus process calls run_0192…

    mindbus process calls run_0192… --step draft --full
    """
    with valid_options():
        query = SearchArtifacts(trace_id=GetProcess(run_id=run_id).run_id, step_id=step, artifact_type=MODEL_CALL)
    kept = run(_kept(run_id, query, acting, with_content=full or as_json))
    told = [call.model_dump(mode="json") | {"call_id": each.id, "step_id": each.step_id} for each, call in kept if call]
    show_result(told, lambda _told: show_full(kept) if full else _show_table(kept), as_json=as_json)


async def _kept(run_id: str, query: SearchArtifacts, acting: str, *, with_content: bool) -> Kept:
    settings = read_settings(FleetSettings)
    async with on_the_bus(acting, settings) as bus:
        found = await bus.request(GetProcess(run_id=run_id), trace=run_id)
        owner = bus if found.started_by == bus.owner else bus.acting_as(found.started_by)
        manifests = await request_items(owner, query, _MOST, run_id)
        if not with_content:
            return [(each, None) for each in manifests]
        artifacts = open_artifacts(owner, settings)
        return [(each, ModelCall.model_validate_json(await artifacts.get(each.id, trace=run_id))) for each in manifests]


def _show_table(kept: Kept) -> None:
    columns = ("call", "at", "step", "model", "tokens in", "tokens out", "seconds", "price")
    show_table(columns, (_row(each) for each, _call in kept))


def _row(kept: Manifest) -> tuple[object, ...]:
    context = kept.context
    if context is None:
        return kept.id, local_time(kept.created_at), kept.step_id or "", "", "", "", "", ""
    seconds, price = (context.execution_time_ms or 0) / 1000, context.price
    tokens = (context.prompt_tokens, context.completion_tokens)
    shown = "" if price is None else f"{price:.4f}"
    return (
        kept.id,
        local_time(kept.created_at),
        kept.step_id or "",
        context.model_name,
        *tokens,
        f"{seconds:.1f}",
        shown,
    )


def show_full(kept: Kept) -> None:
    """Every call with its prompt and its answer."""
    for manifest, call in kept:
        if call is None:
            continue
        retries = f", {call.retries} retries" if call.retries else ""
        spent = f"{call.prompt_tokens} + {call.completion_tokens} tokens, {call.took_ms / 1000:.1f} s{retries}"
        say(f"== {manifest.id}  {manifest.step_id or ''}  {call.caller}  {call.model_name}  {spent}")
        if call.tools:
            say_data(f"{translate('tools:')} {', '.join(call.tools)}")
        for said in (*call.prompt, *([call.answer] if call.answer else [])):
            _show_said(said)
        if call.failure:
            say_data(f"{translate('failed:')} {call.failure}")


def _show_said(said: SaidToModel) -> None:
    say(f"-- {said.role}")
    if said.content:
        say_data(said.content)
    for name, arguments in said.tool_calls:
        say_data(f"{name} {arguments}")
