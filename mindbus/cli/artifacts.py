"""The commands `artifacts`: put, get, list, show, lineage."""

import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from bus_schema.artifacts import ARTIFACT_ID, Manifest, Visibility
from bus_schema.storage import GetLineage, GetVersions, SearchArtifacts
from mindbus.cli.artifact_download import fetch, parse_range, progress_bar, read_preview, require_writable
from mindbus.cli.artifact_upload import artifact_session, line_of, show_uploads, summary_of, upload, upload_all
from mindbus.cli.console import local_time, say, show, show_json, show_result, show_table
from mindbus.cli.errors import UsageError
from mindbus.cli.failed_artifacts import failed, retry
from mindbus.cli.options import LOCAL_USER, TIMES, As, Json, RequiredTrace, Trace
from mindbus.cli.session import answer_to, items_of, run
from mindbus.sdk.preview import Preview
from mindbus.sdk.transfers import PutOptions, ReadOptions, ReadRange
from mindbus.terminal import escape_controls

_STDOUT = Path("-")
app = typer.Typer(no_args_is_help=True, help="Put, get and inspect artifacts.")

_PAGE = 200


def _artifact_id(text: str) -> str:
    if not re.fullmatch(ARTIFACT_ID, text):
        raise typer.BadParameter(f"{text!r} is not an artifact id like art_0192…; `mindbus artifacts ls` lists them")
    return text


ArtifactId = Annotated[str, typer.Argument(metavar="ID", callback=_artifact_id, help="Such as art_0192….")]


@app.command()
def put(
    files: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, readable=True, metavar="FILE...")],
    artifact_type: Annotated[str, typer.Option("--type", help="What it is: draft, research_report, ….")],
    trace: RequiredTrace,
    visibility: Annotated[Visibility, typer.Option("--visibility", help="Who may read it.")] = "trace",
    step: Annotated[str | None, typer.Option("--step", help="The step of the run.")] = None,
    content_type: Annotated[str | None, typer.Option("--content-type", help="Default: from the file's name.")] = None,
    supersedes: Annotated[str | None, typer.Option("--supersedes", metavar="ID", help="The version before it.")] = None,
    retention: Annotated[str, typer.Option("--retention", help="infinite, or days such as 30d.")] = "infinite",
    artifact_id: Annotated[str | None, typer.Option("--id", help="An id of your own: makes repeating safe.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Make a file an artifact; several are registered together, and one that is refused harms no other.

    [bold]Examples[/bold]

    mindbus artifacts put notes.md --type notes --trace t1

    mindbus artifacts put chapters/*.md --type draft --trace t1

    mindbus artifacts put draft.md --type draft --trace t1 --as agent.editor
    """
    about: PutOptions = {
        "artifact_type": artifact_type,
        "trace": trace,
        "visibility": visibility,
        "step": step,
        "content_type": content_type,
        "retention": retention,
        "artifact_id": artifact_id,
    }
    if len(files) > 1:
        if artifact_id is not None or supersedes is not None:
            raise UsageError("--id and --supersedes are for one file")
        show_uploads(files, run(upload_all(files, about, acting)), as_json=as_json)
        return
    with progress_bar(is_wanted=not as_json) as progress:
        done = run(upload(files[0], about, supersedes, acting, progress))
    show_result(summary_of(done), line_of(done), as_json=as_json)


@app.command()
def get(
    artifact_id: ArtifactId,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Else, or as -, to standard output.")] = None,
    byte_range: Annotated[
        str | None, typer.Option("--range", metavar="FIRST-LAST", help="These bytes alone, counted from 0; unchecked.")
    ] = None,
    trace: Trace = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Fetch an artifact's bytes, digest-checked; a range has no digest, so that only its length is.

    [bold]Examples[/bold]

    mindbus artifacts get art_0192… -o article.md

    mindbus artifacts get art_0192… --trace run_0192… --as agent.editor | less

    mindbus artifacts get art_0192… --range 0-1023 | xxd
    """
    output = None if output == _STDOUT else output
    require_writable(output)
    if as_json and output is None:
        raise UsageError("--json leaves standard output to JSON: say with -o where the bytes go")
    with progress_bar(is_wanted=not as_json and (output is not None or not sys.stdout.isatty())) as progress:
        options: ReadOptions = {**parse_range(byte_range), "trace": trace, "progress": progress}
        manifest, span = run(_get(artifact_id, output, options, acting))
    if as_json:
        show_json(manifest)
    elif output is not None and span.is_whole:
        say(f"{output}: {manifest.size_bytes} bytes, sha256 {manifest.sha256} checked")
    elif output is not None:
        say(f"{output}: {span.length} of {manifest.size_bytes} bytes from {span.start} on, not digest-checked")


@app.command("ls")
def list_(
    trace: Trace = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Made by this agent, any instance.")] = None,
    step: Annotated[str | None, typer.Option("--step", help="Made in this step.")] = None,
    artifact_type: Annotated[str | None, typer.Option("--type", help="Of this type.")] = None,
    since: Annotated[datetime | None, typer.Option("--since", formats=TIMES, help="From this time on.")] = None,
    until: Annotated[datetime | None, typer.Option("--until", formats=TIMES, help="Before this time.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="The most to show.")] = 200,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List artifacts in the order in which they were registered, as far as you may see them.

    [bold]Examples[/bold]

    mindbus artifacts ls --trace run_0192…

    mindbus artifacts ls --type final --agent agent.pushkin --json

    mindbus artifacts ls --since 2026-03-14 --until 2026-03-15T12:00:00
    """
    manifests = items_of(
        lambda: SearchArtifacts(
            trace_id=trace,
            agent=agent,
            step_id=step,
            artifact_type=artifact_type,
            created_after=since.astimezone() if since else None,
            created_before=until.astimezone() if until else None,
            limit=min(limit, _PAGE),
        ),
        acting,
        limit,
        trace=trace,
    )
    show_result(manifests, _show_manifests, as_json=as_json)


@app.command()
def versions(artifact_id: ArtifactId, trace: Trace = None, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """List all versions of an artifact, the oldest first; the id of any of them will do.

    [bold]Example[/bold]

    mindbus artifacts versions art_0192…
    """
    chain = answer_to(lambda: GetVersions(artifact_id=artifact_id), acting, trace=trace).items
    show_result(list(chain), _show_manifests, as_json=as_json)


@app.command("show")
def show_artifact(
    artifact_id: ArtifactId,
    wants_preview: Annotated[bool, typer.Option("--preview", help="Show the beginning of its content, too.")] = False,
    lines: Annotated[int, typer.Option("--lines", min=1, max=1000, help="How many lines of a text to show.")] = 40,
    trace: Trace = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Show an artifact's manifest and, on demand, its content: text, formatted JSON, or a dump.

    [bold]Examples[/bold]

    mindbus artifacts show art_0192… --trace run_0192…

    mindbus artifacts show art_0192… --preview --lines 10
    """
    manifest, begins = run(_look(artifact_id, lines if wants_preview else 0, trace, acting))
    if as_json:
        show_json({"manifest": manifest, "preview": begins} if begins else manifest)
        return
    fields = manifest.model_dump(mode="json", exclude_none=True)
    show_table(("field", "value"), ((name, value) for name, value in fields.items()))
    if begins is not None:
        say(f"\n{escape_controls(begins.looks_like)}{', its beginning' if begins.is_cut else ''}:\n{begins.text}")


@app.command()
def lineage(
    artifact_id: ArtifactId,
    direction: Annotated[
        Literal["up", "down", "both"], typer.Option("--direction", help="up: made from; down: went into.")
    ] = "up",
    depth: Annotated[int, typer.Option("--depth", min=1, max=100, help="How far to follow.")] = 10,
    trace: Trace = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Draw what an artifact was made from, or what was made from it.

    [bold]Examples[/bold]

    mindbus artifacts lineage art_0192…

    mindbus artifacts lineage art_0192… --direction down --json
    """
    graph = answer_to(
        lambda: GetLineage(artifact_id=artifact_id, direction=direction, depth=depth), acting, trace=trace
    )
    from mindbus.cli.lineage_view import lineage_tree

    trees = [lineage_tree(graph, artifact_id, way) for way in ("up", "down") if direction in (way, "both")]
    show_result(graph, lambda _graph: show(*trees), as_json=as_json)


app.command()(failed)
app.command()(retry)


async def _get(
    artifact_id: str, output: Path | None, options: ReadOptions, identity: str
) -> tuple[Manifest, ReadRange]:
    async with artifact_session(identity) as artifacts:
        return await fetch(artifacts, artifact_id, output, **options)


async def _look(artifact_id: str, lines: int, trace: str | None, identity: str) -> tuple[Manifest, Preview | None]:
    async with artifact_session(identity) as artifacts:
        if lines:
            return await read_preview(artifacts, artifact_id, lines, trace)
        return await artifacts.manifest(artifact_id, trace=trace), None


def _show_manifests(manifests: list[Manifest]) -> None:
    show_table(
        ("artifact", "v", "type", "step", "made by", "bytes", "sha256", "at"),
        (
            (
                m.id,
                m.version,
                m.artifact_type,
                m.step_id,
                m.created_by,
                m.size_bytes,
                m.sha256[:12],
                local_time(m.created_at),
            )
            for m in manifests
        ),
    )
