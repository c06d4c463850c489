"""The command `memory import`: documents of a folder as artifacts and units."""

import asyncio
import codecs
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from bus_schema.artifacts import ArtifactId, ArtifactRef, Manifest, Visibility
from bus_schema.ids import derived
from bus_schema.kem import KemRights
from bus_schema.kps import Chunking, KemProcessingProgress, ProcessedData, ProcessRawData
from bus_schema.replies import Code
from bus_schema.storage import GetVersions
from config.settings import FleetSettings
from memory.kps.formats import CONTENT_TYPES, content_type_of
from mindbus.bus.client import Client
from mindbus.cli.artifact_upload import put_or_fail
from mindbus.cli.console import say, show_result, show_table
from mindbus.cli.errors import UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, As, Json, Trace
from mindbus.cli.session import TellProgress, on_the_bus, progress_of, run
from mindbus.errors import ReplyError
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.sdk.errors import ArtifactRejected
from mindbus.tasks import end, running
from mindbus_fleet.cli.memory_options import Meta, Reader, Writer, parse_metadata, rights_of, valid
from mindbus_fleet.cli.memory_options import Visibility as WhoReads

_AT_ONCE = 4
_PATIENCE_S = 900.0
_TRACE = "memory-import"


class DocumentsImported(BaseModel):
    """A document of which memory has all units."""

    path: str
    artifact_id: str
    kems: int
    status: str


class NotImported(BaseModel):
    """A document that was refused, with what to do about it."""

    path: str
    code: Code
    error: str
    details: dict[str, JsonValue] = {}


class Report(BaseModel):
    """Result of importing a folder; `skipped` files have no names of documents, `paths` are by artifact."""

    documents: list[DocumentsImported] = []
    failed: list[NotImported] = []
    skipped: list[str] = []
    paths: dict[str, str] = Field(default={}, exclude=True)

    @property
    def kems(self) -> int:
        return sum(document.kems for document in self.documents)


class ImportOptions(BaseModel):
    """Options common to all documents of one import."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    root: Path
    trace: str
    metadata: dict[str, JsonValue]
    rights: KemRights
    chunking: Chunking
    charset: str | None


def import_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, readable=True, help="A folder of documents, or one document.")
    ],
    meta: Meta = None,
    visibility: WhoReads = None,
    reader: Reader = None,
    writer: Writer = None,
    max_chars: Annotated[int, typer.Option("--max-chars", help="Length of a piece of text, at most.")] = 1200,
    overlap_chars: Annotated[int, typer.Option("--overlap-chars", help="Overlap with the next piece.")] = 120,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of the texts, such as windows-1251; default: guessed.")
    ] = None,
    trace: Trace = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Import a folder into memory: text, Markdown, HTML, PDF, JSON, Office. Repeated, only what has changed.

    [bold]Examples[/bold]

    mindbus memory import docs

    mindbus memory import reports --meta project_id=apollo --visibility private --json
    """
    options = ImportOptions(
        root=folder if folder.is_dir() else folder.parent,
        trace=trace or _TRACE,
        metadata=parse_metadata(meta or []),
        rights=valid(KemRights, rights_of(visibility, reader, writer)),
        chunking=valid(Chunking, {"max_chars": max_chars, "overlap_chars": overlap_chars}),
        charset=_charset(encoding),
    )
    files = list(_files(folder))
    report = Report(skipped=[relative_path(options, path) for path in files if content_type_of(path) is None])
    documents = [path for path in files if content_type_of(path) is not None]
    if not documents:
        raise UsageError(f"there is nothing to import in {folder}: no file ends in {', '.join(CONTENT_TYPES)}")
    with progress_of("learning") as tell:
        run(_import(documents, options, report, acting, tell))
    result = {"kems": report.kems, **report.model_dump(mode="json")}
    show_result(result, lambda _result: _show(report), as_json=as_json)
    if report.failed:
        raise typer.Exit(1)


def _charset(encoding: str | None) -> str | None:
    """The encoding under its usual name. Raises UsageError."""
    try:
        return None if encoding is None else codecs.lookup(encoding).name
    except LookupError:
        raise UsageError(f"there is no encoding {encoding!r}; try utf-8, windows-1251, koi8-r or cp866") from None


def relative_path(options: ImportOptions, path: Path) -> str:
    """As it is told of a document: from the folder on."""
    return path.relative_to(options.root).as_posix()


def _files(folder: Path) -> Iterator[Path]:
    """In one order; nothing hidden, nothing that a link leads to."""
    if not folder.is_dir():
        yield folder
        return
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(parent, name) for name in sorted(names)):
            if not path.name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


async def _import(
    documents: list[Path], options: ImportOptions, report: Report, identity: str, tell: TellProgress
) -> None:
    settings = read_settings(FleetSettings)
    left = iter(documents)
    tell(0, len(documents))
    async with on_the_bus(identity, settings, speaks=True) as bus, open_artifacts(bus, settings) as artifacts:

        async def work() -> None:
            for path in left:
                outcome = await _learn(path, options, report, artifacts, bus)
                if isinstance(outcome, DocumentsImported):
                    report.documents.append(outcome)
                else:
                    report.failed.append(outcome)
                tell(len(report.documents) + len(report.failed), len(documents))

        async def follow() -> None:
            async with bus.subscribe(KemProcessingProgress, trace=options.trace) as events:
                async for event in events:
                    path = report.paths.get(event.source.artifact_id, "") if event.source else ""
                    done = len(report.documents) + len(report.failed)
                    tell(done, len(documents), f"{path} {event.done}/{event.total}")

        hands = [asyncio.create_task(work()) for _ in range(_AT_ONCE)]
        try:
            async with running(follow(), "progress of documents"):
                await asyncio.gather(*hands)
        finally:
            await end(*hands)
    report.documents.sort(key=lambda document: document.path)
    report.failed.sort(key=lambda document: document.path)


async def _learn(
    path: Path, options: ImportOptions, report: Report, artifacts: Artifacts, bus: Client
) -> DocumentsImported | NotImported:
    """Import one document. A rejected document does not stop the others; an unavailable service does."""
    about = relative_path(options, path)
    try:
        ref = await _artifact(path, options, artifacts, bus)
        report.paths[ref.artifact_id] = about
        processed = await _processed(ref, about, options, bus)
    except (ReplyError, ArtifactRejected) as no:
        if no.code.retryable:
            raise
        details = no.details if isinstance(no, ReplyError) else {}
        message = no.message if isinstance(no, ReplyError) else str(no)
        return NotImported(path=about, code=no.code, error=message, details=details)
    except OSError as unreadable:
        return NotImported(path=about, code=Code.INTERNAL, error=f"cannot be read: {unreadable}")
    return DocumentsImported(
        path=about, artifact_id=ref.artifact_id, kems=len(processed.kem_ids), status=processed.status
    )


async def _artifact(path: Path, options: ImportOptions, artifacts: Artifacts, bus: Client) -> ArtifactRef:
    """Register a file: the same path is the same artifact, changed content a new version of it."""
    content = await asyncio.to_thread(path.read_bytes)
    digest = hashlib.sha256(content).hexdigest()
    place = str(await asyncio.to_thread(path.resolve))
    first = f"art_{derived('memory import', bus.owner, options.trace, place).replace('-', '')}"
    newest, content_type = await _newest(first, options, bus), content_type_of(path, options.charset)
    visibility: Visibility = "public" if options.rights.visibility == "public" else "private"
    if newest is not None and (newest.sha256, newest.content_type, newest.visibility) == (
        digest,
        content_type,
        visibility,
    ):
        return newest.ref
    done = await put_or_fail(
        artifacts,
        content,
        {
            "artifact_type": "document",
            "trace": options.trace,
            "content_type": content_type,
            "visibility": visibility,
            "artifact_id": first if newest is None else f"art_{derived(newest.id, digest).replace('-', '')}",
            "supersedes": None if newest is None else newest.ref,
        },
    )
    return done.ref


async def _newest(first: ArtifactId, options: ImportOptions, bus: Client) -> Manifest | None:
    try:
        return (await bus.request(GetVersions(artifact_id=first), trace=options.trace)).items[-1]
    except ReplyError as failed:
        if failed.code is Code.NOT_FOUND:
            return None
        raise


async def _processed(ref: ArtifactRef, about: str, options: ImportOptions, bus: Client) -> ProcessedData:
    fields = {
        "source": ref,
        "content_type": ref.content_type,
        "initial_metadata": {"path": about, **options.metadata},
        "rights": options.rights,
        "chunking": options.chunking,
    }
    command = valid(ProcessRawData, fields)
    return await bus.request(command, trace=options.trace, timeout_s=_PATIENCE_S)


def _show(report: Report) -> None:
    unchanged = sum(document.status == "unchanged" for document in report.documents)
    say(f"{len(report.documents)} documents, {unchanged} of them unchanged: {report.kems} units in memory")
    if report.skipped:
        say(f"{len(report.skipped)} other files skipped")
    if report.failed:
        rows = ((each.path, each.code.value, f"{each.error} {each.details or ''}") for each in report.failed)
        show_table(("not imported", "code", "why"), rows)
