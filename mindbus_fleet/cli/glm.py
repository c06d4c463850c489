"""The commands `glm`: check, rebuild and re-embed the global memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer
from sqlalchemy.exc import SQLAlchemyError

from bus_schema.glm import CheckMemory, MemoryReport, Reindex, ReindexProgress
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.glm.service import database_of, rebuild_vectors
from mindbus.cli.console import errors, say, show_result, show_table
from mindbus.cli.errors import CommandError, read_settings, valid_options
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to, on_the_bus, progress_of, run
from mindbus.sql.database import Database
from mindbus.sql.leadership import single_writer

app = typer.Typer(no_args_is_help=True, help="Maintain the global memory: do rows and vectors agree?")

_WITHIN_S = 300.0
_NAMED = 20


@app.command()
def check(acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Compare the vectors with the units that they belong to; exit code 1 if they differ.

    What differs is mended whenever glm starts.

    [bold]Example[/bold]

    mindbus glm check --json
    """
    report = answer_to(CheckMemory, acting, longer_by_s=_WITHIN_S)
    shown = report.model_dump(mode="json") | {"clean": report.is_clean}
    show_result(shown, lambda _shown: _show(report), as_json=as_json)
    if not report.is_clean:
        raise typer.Exit(1)


@app.command()
def rebuild(as_json: Json = False) -> None:
    """Rebuild the vector index from the units, where it is lost, broken, or of another model; glm must not run.

    Units that another model has embedded are found by words alone until they are embedded again.

    [bold]Example[/bold]

    mindbus down; mindbus glm rebuild; mindbus up -d
    """
    with errors().status("Making the index anew…"):
        count = run(_rebuild())
    show_result({"vectors": count}, f"the index has {count} vectors", as_json=as_json)


@app.command()
def reindex(
    model: Annotated[str | None, typer.Argument(help="Default: that of MINDBUS_EMBEDDING_MODEL.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Embed all units with another model while the older vectors keep answering; resume where it was interrupted.

    Set MINDBUS_EMBEDDING_MODEL first, then start glm anew: it keeps to the older model until this is done.

    [bold]Example[/bold]

    mindbus glm reindex
    """
    with valid_options():
        command = Reindex(model=model or read_settings(FleetSettings).embedding_model)
    done = run(_reindex(command, acting))
    show_result(done, f"{done.total} units are in the space of {done.model}", as_json=as_json)


async def _reindex(command: Reindex, identity: str) -> ReindexProgress:
    async with on_the_bus(identity) as bus:
        with progress_of("embedding") as tell:
            while True:
                progress = await bus.request(command, timeout_s=_WITHIN_S)
                tell(progress.done, progress.total)
                if progress.done == progress.total:
                    return progress


async def _rebuild() -> int:
    settings = read_settings(FleetSettings)
    database = database_of(settings)
    try:
        async with _alone(database):
            return await rebuild_vectors(database, settings)
    except SQLAlchemyError as away:
        raise CommandError(f"the database of glm: {getattr(away, 'orig', away)}", Code.UNAVAILABLE) from away
    finally:
        await database.dispose()


@asynccontextmanager
async def _alone(database: Database) -> AsyncIterator[None]:
    writer = single_writer(database)
    if not await writer.try_acquire():
        raise CommandError("glm is running and keeps the index itself: stop it first, with mindbus down", Code.CONFLICT)
    try:
        yield
    finally:
        await writer.release()


def _show(report: MemoryReport) -> None:
    say(f"{report.kems} units, {report.with_vector} with a vector; {report.vectors} vectors in the index")
    differing = [(kind, kem_id) for kind in ("missing", "stale", "surplus") for kem_id in getattr(report, kind)]
    if differing:
        show_table(("vector", "unit"), differing[:_NAMED])
        say(f"{len(differing)} differ; they are mended when glm starts: mindbus down; mindbus up -d")
    elif report.waiting:
        say(f"{report.waiting} vectors are on their way; is the index away? See glm's log")
    else:
        say("rows and vectors agree")
