"""The command `process export`: a run with its artifacts and calls of models, as a folder."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bus_schema.artifacts import Manifest
from bus_schema.model_calls import MODEL_CALL
from bus_schema.process import GetProcess
from bus_schema.run_control import GetRunGraph
from bus_schema.storage import SearchArtifacts
from config.recorded_runs import RecordedRun
from config.settings import FleetSettings
from mindbus.cli.console import say, show_result
from mindbus.cli.errors import UsageError, read_settings, valid_options
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import on_the_bus, request_items, run
from mindbus.sdk.artifacts import open_artifacts
from mindbus.tasks import gather_limited
from mindbus_fleet.cli.process_control import RunId

_MOST = 2000
_AT_ONCE = 8


def export(
    run_id: RunId,
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Write a run into a folder: its state, its card, manifests, artifacts, every call of a model that is kept.

    Calls are of the run's starter, for operators of anybody. Names and texts are as they are: look before you share it.

    [bold]Example[/bold]

    mindbus process export run_0192… article-run
    """
    if folder.exists():
        raise UsageError(f"{folder} is there already; name a new folder")
    with valid_options():
        query = GetProcess(run_id=run_id)
    recorded = run(_recorded(query, acting))
    recorded.write(folder)
    told = {"folder": str(folder), "artifacts": len(recorded.artifacts), "calls": len(recorded.calls)}
    show_result(told, lambda _: say(f"{folder}: artifacts {told['artifacts']}, calls {told['calls']}"), as_json=as_json)


async def _recorded(query: GetProcess, acting: str) -> RecordedRun:
    settings, run_id = read_settings(FleetSettings), query.run_id
    async with on_the_bus(acting, settings) as bus:
        found = await bus.request(query, trace=run_id)
        graph = await bus.request(GetRunGraph(run_id=run_id), trace=run_id)
        owner = bus if found.started_by == bus.owner else bus.acting_as(found.started_by)
        manifests: list[Manifest] = []
        for wanted in (SearchArtifacts(trace_id=run_id), SearchArtifacts(trace_id=run_id, artifact_type=MODEL_CALL)):
            manifests += await request_items(owner, wanted, _MOST, run_id)
        artifacts = open_artifacts(owner, settings)
        ids = {each.sha256: each.id for each in manifests}
        reads = (partial(artifacts.get, each, trace=run_id) for each in ids.values())
        contents = dict(zip(ids, await gather_limited(reads, _AT_ONCE), strict=True))
        return RecordedRun(found, graph, tuple(manifests), contents)
