"""Files as artifacts: put one or many, and say what became of each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bus_schema.codes import Code
from mindbus.cli.console import show_result
from mindbus.cli.errors import CommandError, read_settings, valid_options
from mindbus.cli.session import on_the_bus
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.sdk.errors import ArtifactRejected
from mindbus.sdk.transfers import NewArtifact, Progress, Put, PutOptions, no_progress

_KEPT = "What is on this machine's disk already is registered by the next command that uses it."


@asynccontextmanager
async def artifact_session(identity: str, *, puts: bool = False) -> AsyncIterator[Artifacts]:
    settings = read_settings()
    async with (
        on_the_bus(identity, settings, goes_on=_KEPT, speaks=puts) as bus,
        open_artifacts(bus, settings) as artifacts,
    ):
        yield artifacts


async def put_or_fail(
    artifacts: Artifacts, source: Path | bytes, about: PutOptions, progress: Progress = no_progress
) -> Put:
    """Put, with pending as a failure: a command is over before storage is back. Raises UsageError, CommandError."""
    with valid_options():
        done = await artifacts.put(source, progress, **about)
    return _require_registered(done)


def _require_registered(done: Put) -> Put:
    if done.is_pending:
        raise CommandError(
            f"storage does not answer; {done.ref.artifact_id} waits in the local buffer and is registered "
            "by the next command that uses it: start storage, then repeat",
            Code.UNAVAILABLE,
        )
    return done


async def upload(file: Path, about: PutOptions, supersedes: str | None, identity: str, progress: Progress) -> Put:
    async with artifact_session(identity, puts=True) as artifacts:
        if supersedes is not None:
            before = await artifacts.manifest(supersedes, trace=about["trace"])
            about["supersedes"] = before.ref
        return await put_or_fail(artifacts, file, about, progress)


async def upload_all(files: list[Path], about: PutOptions, identity: str) -> list[Put | ArtifactRejected]:
    new: list[NewArtifact] = [{**about, "source": file} for file in files]
    async with artifact_session(identity, puts=True) as artifacts:
        with valid_options():
            return await artifacts.put_all(new)


def summary_of(done: Put) -> dict[str, object]:
    return {"artifact_id": done.ref.artifact_id, "version": done.ref.version, "sha256": done.ref.sha256}


def line_of(done: Put) -> str:
    ref = done.ref
    return f"{ref.artifact_id}  version {ref.version}  {ref.size_bytes} bytes  sha256 {ref.sha256}"


def show_uploads(files: list[Path], outcomes: list[Put | ArtifactRejected], *, as_json: bool) -> None:
    """Show what became of each file. Raises CommandError where one was refused, or storage is away."""
    told = [
        {"file": str(file), "error": str(each)}
        if isinstance(each, ArtifactRejected)
        else summary_of(each) | {"file": str(file)}
        for file, each in zip(files, outcomes, strict=True)
    ]
    lines = [
        f"{file}  {each}" if isinstance(each, ArtifactRejected) else f"{line_of(each)}  {file}"
        for file, each in zip(files, outcomes, strict=True)
    ]
    show_result(told, "\n".join(lines), as_json=as_json)
    for outcome in outcomes:
        if isinstance(outcome, ArtifactRejected):
            raise CommandError("not all were registered", outcome.code)
        _require_registered(outcome)
