"""Bad input to a running MindBus, by hand and over the bus: a clear error each, and nothing written."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.ids import mint
from bus_schema.process import ListProcesses
from bus_schema.replies import Code
from bus_schema.storage import RegisterArtifact, SearchArtifacts
from config.settings import FleetSettings
from mindbus.bus.deadletters import DeadLetters
from mindbus.files.store import FileStore, open_files
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from tests.raw_amqp import an_envelope, properties_for, raw_publisher

TRACE = "trace_1"
CONTENT = b"findings"


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path / "data")


@pytest.fixture
def files(settings: FleetSettings) -> FileStore:
    return open_files(settings)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["storage"], FLEET["orchestrator"], settings=settings) as running:
        yield running


@dataclass(frozen=True)
class Outcome:
    """What a command line ended with."""

    exit_code: int
    said: str
    answer: Any


@dataclass(frozen=True)
class CommandLine:
    """`mindbus` in a process of its own."""

    settings: FleetSettings

    async def __call__(self, *arguments: str) -> Outcome:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mindbus.cli.main", *arguments, "--json"),
            env=self.settings.environment() | {"COLUMNS": "500"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
        return Outcome(process.returncode or 0, error.decode(), json.loads(out))

    async def all(self, *commands: tuple[str, ...]) -> list[Outcome]:
        return list(await asyncio.gather(*(self(*each) for each in commands)))


@pytest.fixture
def mindbus(settings: FleetSettings) -> CommandLine:
    return CommandLine(settings)


def a_manifest(files: FileStore, content: bytes = CONTENT, **changes: Any) -> Manifest:
    """Of a file that its owner has staged."""
    now = datetime.now(UTC)
    key = f"staging/{now:%Y/%m/%d}/user_local/{os.urandom(16).hex()}"
    files.put(key, content)
    fields: dict[str, Any] = {
        "id": mint("art"),
        "trace_id": TRACE,
        "created_by": "user.local",
        "created_at": now,
        "artifact_type": "draft",
        "content_type": "text/plain",
        "uri": files.uri(key),
        "size_bytes": len(content),
        "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "owner": "user.local",
    }
    return Manifest.model_validate(fields | changes)


@asynccontextmanager
async def nothing_written(fleet: Fleet, settings: FleetSettings) -> AsyncIterator[None]:
    """No manifest, no object, no claim, no run, nothing that waits; what the sender itself has staged stays its own.

    The copies of manifests are written a little later, of what is in the catalogue anyway.
    """
    before = await _written(fleet, settings)
    yield
    assert await _written(fleet, settings) == before


async def _written(fleet: Fleet, settings: FleetSettings) -> list[str]:
    page = await fleet.bus.request(SearchArtifacts(trace_id=TRACE))
    runs = await fleet.bus.request(ListProcesses())
    files = [*settings.data_dir.glob("artifacts/**/*"), *settings.data_dir.glob("buffer/*/*/*.json")]
    kept = [str(f) for f in files if f.is_file() and not {"staging", "failed", "manifests"} & set(f.parts)]
    return [*(each.id for each in page.items), *(run.run_id for run in runs.items), *sorted(kept)]


ENVELOPE = an_envelope("mb.cmd.storage.get_artifact.v1", data={"artifact_id": "art_1"})
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "malformed JSON": (b'{"id": ', "malformed envelope"),
    "300 KiB": (json.dumps(ENVELOPE | {"data": {"artifact_id": "a" * 300 * 1024}}).encode(), "a body has at most"),
    "an unknown type": (json.dumps(ENVELOPE | {"type": "mb.cmd.storage.erase.v1"}).encode(), "mb.cmd.storage.erase.v1"),
    "an unknown field": (
        json.dumps(ENVELOPE | {"data": {"artifact_id": "art_1", "force": True}}).encode(),
        "force: Extra inputs are not permitted",
    ),
}


async def test_what_storage_cannot_read_is_dead_lettered_and_changes_nothing(
    fleet: Fleet, settings: FleetSettings, vhost_url: str
) -> None:
    dead = DeadLetters(vhost_url)
    async with nothing_written(fleet, settings), raw_publisher(vhost_url) as raw:
        for body, _ in UNREADABLE.values():
            kind = "mb.cmd.storage.erase.v1" if b"erase" in body else ENVELOPE["type"]
            properties = properties_for(ENVELOPE, type=kind)
            await raw.body(body, "mb.cmd.storage", f"cmd.storage.{kind.split('.')[3]}", **properties)

        async def all_dead() -> list[str]:
            reasons = [letter.reason for letter in await dead.look("storage")]
            return reasons if len(reasons) == len(UNREADABLE) else []

        reasons: list[str] = await until(all_dead)

    for what, (_, expected) in UNREADABLE.items():
        assert any(expected in reason for reason in reasons), (what, reasons)


async def test_a_manifest_that_is_not_true_is_refused_and_registers_nothing(
    fleet: Fleet, settings: FleetSettings, files: FileStore, mindbus: CommandLine, tmp_path: Path
) -> None:
    nowhere = files.uri(f"staging/2026/01/01/user_local/{'0' * 32}")
    wrong: dict[str, tuple[Manifest, Code]] = {
        "sha256": (a_manifest(files, checksum=f"sha256:{'0' * 64}"), Code.CHECKSUM_MISMATCH),
        "size": (a_manifest(files, size_bytes=len(CONTENT) + 1), Code.CHECKSUM_MISMATCH),
        "missing file": (a_manifest(files, uri=nowhere), Code.FILE_NOT_FOUND),
        "traversal": (a_manifest(files, uri=f"{files.url}/staging/../../storage.db"), Code.INVALID),
        "foreign scheme": (a_manifest(files, uri="http://127.0.0.1:1/latest/meta-data"), Code.INVALID),
    }
    by_hand = tmp_path / "register.json"
    by_hand.write_text(RegisterArtifact(manifest=wrong["sha256"][0]).model_dump_json(), encoding="utf-8")

    async with nothing_written(fleet, settings):
        replies = {what: await fleet.bus.ask(RegisterArtifact(manifest=each)) for what, (each, _) in wrong.items()}
        outcome = await mindbus("send", "storage.register_artifact", "--file", str(by_hand), "--wait")

    assert {what: reply.code for what, reply in replies.items()} == {what: code for what, (_, code) in wrong.items()}
    assert all(reply.message for reply in replies.values())
    assert (outcome.exit_code, outcome.answer["code"]) == (1, "checksum_mismatch")


async def test_an_id_is_not_used_again_for_other_bytes(
    fleet: Fleet, settings: FleetSettings, mindbus: CommandLine, tmp_path: Path
) -> None:
    first, other = tmp_path / "first.md", tmp_path / "other.md"
    first.write_text("Первый.", encoding="utf-8")
    other.write_text("Другой.", encoding="utf-8")
    put = "artifacts", "put", "--type", "draft", "--trace", TRACE, "--id", "art_mine"
    made = await mindbus(*put, str(first))

    async with nothing_written(fleet, settings):
        same, conflict = await mindbus.all((*put, str(first)), (*put, str(other)))

    assert (same.exit_code, same.answer) == (0, made.answer)
    assert (conflict.exit_code, conflict.answer["code"]) == (1, "conflict")
    assert conflict.answer["error"]


async def test_who_may_not_read_an_artifact_is_told_that_there_is_none(
    fleet: Fleet, mindbus: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "notes.md"
    file.write_text("Заметки.", encoding="utf-8")
    put = "artifacts", "put", str(file), "--type", "notes", "--trace", TRACE, "--as", "agent.a"
    private, shared = await mindbus.all((*put, "--visibility", "private"), (*put, "--visibility", "trace"))

    def get(put: Outcome, identity: str, trace: str = TRACE) -> tuple[str, ...]:
        artifact_id = f"artifact_id={put.answer['artifact_id']}"
        return "send", "storage.get_artifact", artifact_id, "--as", identity, "--trace", trace, "--wait"

    outcomes = await mindbus.all(
        get(private, "agent.b"),
        get(shared, "agent.b", "trace_2"),
        get(shared, "agent.b"),
        get(private, "agent.a.second"),
    )

    denied, allowed = outcomes[:2], outcomes[2:]
    assert [(o.exit_code, o.answer["status"], o.answer["code"]) for o in denied] == [(1, "error", "not_found")] * 2
    assert [(o.exit_code, o.answer["status"]) for o in allowed] == [(0, "ok")] * 2
