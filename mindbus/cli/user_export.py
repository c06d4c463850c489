"""Archive of all that is kept about a person: JSON Lines, Markdown and artifacts in a zip, with a manifest."""

import asyncio
import hashlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from pydantic import BaseModel

from bus_schema.agent_data import GetAgentData
from bus_schema.artifacts import Manifest
from bus_schema.codes import Code
from bus_schema.conversations import GetMessages
from bus_schema.dialogue import DialogueMessage, conversation_trace
from bus_schema.facts import ListFacts
from bus_schema.glm import RetrieveKems
from bus_schema.history import ListHistories, ShowHistory
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.lsm import ListEpisodes
from bus_schema.lsm_statistics import ExplainEpisode
from bus_schema.messages import Command, Page
from bus_schema.model_calls import MODEL_CALL
from bus_schema.process import ListProcesses
from bus_schema.runs import Run
from bus_schema.storage import SearchArtifacts
from bus_schema.swm import QuerySwm
from bus_schema.tasks import ListTasks
from bus_schema.timeline import GetTimeline
from bus_schema.users import GetUser
from mindbus.bus.client import Client
from mindbus.cli.session import ItemT
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.files.keys import file_name
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactError, StorageAway
from mindbus.version import __version__

FORMAT = "mindbus-user-export"
_FORMAT_VERSION = 1
_PAGE = 100
# Agents that keep a state per user.
_AGENTS = ("task_manager", "context_manager", "mood_watcher", "context")
_NAMESPACES = ("notes", "pictures")
_README = """# What MindBus knows of {user_id}

Exported {at}, asked by {asker}. `manifest.json` lists every file with its number of records, size and SHA-256, and what
could not be read. Files `.jsonl` have a JSON document a line; times are ISO 8601 in UTC.

| file | contents |
|---|---|
| `user.json` | name, zone, language, role, projects |
| `dialogue.jsonl`, `dialogue.md` | the dialogue with the assistant |
| `timeline.jsonl` | events about the person |
| `tasks.jsonl`, `facts.jsonl` | tasks that they own or asked for; facts that they have stated |
| `agents.jsonl` | states that agents keep of them, moods among them |
| `episodes.jsonl`, `turns.jsonl` | long-term memory: episodes in their layers, the turns word for word |
| `histories.jsonl` | what models are reminded of |
| `kems.jsonl`, `working_memory.jsonl` | units of shared memory that are theirs |
| `runs.jsonl` | runs of process cards that they have started |
| `artifacts.jsonl`, `artifacts/ID.*` | manifests and bytes of their artifacts, those of their runs included |
"""


@dataclass(frozen=True)
class ExportedFile:
    """A file of the archive; `records` is None where it has bytes of somebody's own."""

    path: str
    records: int | None
    size_bytes: int
    sha256: str


@dataclass
class Export:
    """Files of an archive, and reasons by part for what could not be read."""

    files: list[ExportedFile] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"files": [each.__dict__ for each in self.files], "missing": self.missing}


class UserExport:
    """Reads all about one person with the rights of who asks; what is each for their readers, as the person.

    Whoever may not read the person's dialogue gets nothing at all.
    """

    def __init__(self, bus: Client, artifacts: Artifacts, user_id: str) -> None:
        """`artifacts` reads as the person."""
        self._bus, self._artifacts, self._user_id = bus, artifacts, user_id
        self._as_person = bus.acting_as(f"user.{user_id}")
        self._done = Export()

    async def write(self, archive: ZipFile, asker: str) -> Export:
        """Write all files, the manifest last. Raises ReplyError, BusUnavailable where the dialogue cannot be read."""
        await self._write_all(archive, await self._messages())
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._add(archive, "README.md", _README.format(user_id=self._user_id, at=at, asker=asker), None)
        about = {"format": FORMAT, "version": _FORMAT_VERSION, "mindbus": __version__}
        about |= {"user_id": self._user_id, "exported_at": at, "asked_by": asker}
        archive.writestr("manifest.json", _json(about | self._done.as_json()))
        return self._done

    async def _write_all(self, archive: ZipFile, messages: list[DialogueMessage]) -> None:
        user_id = self._user_id
        if user := await self._part("user", self._bus.request(GetUser(user_id=user_id))):
            self._add(archive, "user.json", _json(user), 1)
        self._add_lines(archive, "dialogue", messages)
        self._add(archive, "dialogue.md", "\n".join(map(_paragraph, messages)), len(messages))
        listings: Mapping[str, AsyncIterator[Any]] = {
            "timeline": pages(self._bus, GetTimeline(user_id=user_id, limit=_PAGE)),
            "tasks": pages(self._bus, ListTasks(user_id=user_id, limit=_PAGE)),
            "facts": pages(self._bus, ListFacts(user_id=user_id, superseded=True, limit=_PAGE)),
            "agents": self._agent_states(),
            "histories": self._histories(),
            "kems": self._kems(RetrieveKems(query=KemQuery(order_by="created_at asc"), page_size=_PAGE)),
            "working_memory": self._kems(QuerySwm(query=KemQuery(order_by="created_at asc"), page_size=_PAGE)),
        }
        for part, items in listings.items():
            self._add_lines(archive, part, await self._collected(part, items))
        await self._write_episodes(archive)
        runs = await self._collected("runs", self._runs())
        self._add_lines(archive, "runs", runs)
        await self._write_artifacts(archive, [conversation_trace(user_id), *(run.run_id for run in runs)], messages)

    async def _messages(self) -> list[DialogueMessage]:
        return [each async for each in pages(self._bus, GetMessages(user_id=self._user_id, limit=_PAGE))]

    async def _agent_states(self) -> AsyncIterator[dict[str, Any]]:
        for agent in _AGENTS:
            for namespace in _NAMESPACES:
                query = GetAgentData(agent=agent, namespace=namespace, key=self._user_id)
                for datum in (await self._bus.request(query)).items:
                    yield {"agent": agent, "namespace": namespace} | datum.model_dump(mode="json")

    async def _histories(self) -> AsyncIterator[BaseModel]:
        async for summary in pages(self._bus, ListHistories(chat_id=self._user_id, limit=_PAGE)):
            yield await self._bus.request(ShowHistory(key=summary.key))

    async def _kems(self, query: RetrieveKems | QuerySwm) -> AsyncIterator[Kem]:
        async for found in pages(self._as_person, query):
            kem = found.kem
            if kem.owner == f"user.{self._user_id}" or kem.metadata.get("user_id") == self._user_id:
                yield kem

    async def _runs(self) -> AsyncIterator[Run]:
        async for run in pages(self._as_person, ListProcesses(limit=_PAGE)):
            if run.started_by == f"user.{self._user_id}":
                yield run

    async def _write_episodes(self, archive: ZipFile) -> None:
        episodes: list[BaseModel] = []
        turns: list[dict[str, Any]] = []
        heads = await self._collected("episodes", pages(self._bus, ListEpisodes(chat_id=self._user_id, limit=_PAGE)))
        for head in heads:
            if found := await self._part(head.id, self._bus.request(ExplainEpisode(episode_id=head.id))):
                episodes.append(found.episode)
                if found.raw_turns == "gone":
                    self._done.missing[head.id] = "raw turns are gone: their artifact is not there or cannot be read"
                turns += [{"episode_id": head.id} | turn.model_dump(mode="json") for turn in found.turns]
        self._add_lines(archive, "episodes", episodes)
        self._add_lines(archive, "turns", turns)

    async def _write_artifacts(
        self, archive: ZipFile, traces: Iterable[str], messages: Iterable[DialogueMessage]
    ) -> None:
        manifests: dict[str, Manifest] = {}
        owner = f"user.{self._user_id}"
        own = SearchArtifacts(agent=owner, limit=_PAGE)
        calls = SearchArtifacts(agent=owner, artifact_type=MODEL_CALL, limit=_PAGE)
        for query in (own, calls, *(SearchArtifacts(trace_id=trace, limit=_PAGE) for trace in traces)):
            found = await self._collected("artifacts", pages(self._as_person, query))
            manifests |= {manifest.id: manifest for manifest in found}
        for ref in (message.ref for message in messages if message.ref is not None):
            if ref.artifact_id not in manifests and (
                manifest := await self._part(ref.artifact_id, self._artifacts.manifest(ref.artifact_id))
            ):
                manifests[ref.artifact_id] = manifest
        self._add_lines(archive, "artifacts", manifests.values())
        with tempfile.TemporaryDirectory() as folder:
            for manifest in manifests.values():
                await self._part(manifest.id, self._add_artifact(archive, manifest, Path(folder, "bytes")))

    async def _add_artifact(self, archive: ZipFile, manifest: Manifest, part: Path) -> None:
        await self._artifacts.save(manifest.id, part, trace=manifest.trace_id)
        path = f"artifacts/{file_name(manifest.id, manifest.content_type)}"
        await asyncio.to_thread(archive.write, part, path)
        self._done.files.append(ExportedFile(path, None, manifest.size_bytes, manifest.sha256))

    async def _collected(self, part: str, items: AsyncIterator[Any]) -> list[Any]:
        collected: list[Any] = []

        async def collect() -> None:
            async for item in items:
                collected.append(item)

        await self._part(part, collect())
        return collected

    async def _part(self, part: str, reading: Awaitable[Any]) -> Any:
        """Result of a reading; None with a note for the manifest where a service is away, so that the rest is read."""
        try:
            return await reading
        except (ReplyError, BusUnavailable, ArtifactError, StorageAway, OSError) as error:
            if part != "user" or getattr(error, "code", None) is not Code.NOT_FOUND:
                self._done.missing[part] = str(error)
            return None

    def _add_lines(self, archive: ZipFile, part: str, items: Iterable[Any]) -> None:
        lines = [_json(item, indent=None) for item in items]
        self._add(archive, f"{part}.jsonl", "".join(f"{line}\n" for line in lines), len(lines))

    def _add(self, archive: ZipFile, path: str, text: str, records: int | None) -> None:
        content = text.encode()
        archive.writestr(path, content)
        self._done.files.append(ExportedFile(path, records, len(content), hashlib.sha256(content).hexdigest()))


@contextmanager
def new_archive(path: Path) -> Iterator[ZipFile]:
    """A zip in a new file, mode 0600, which is deleted where the block raises. Raises FileExistsError."""
    path.touch(mode=0o600, exist_ok=False)
    try:
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            yield archive
    except BaseException:
        path.unlink()
        raise


async def pages(bus: Client, query: Command[Page[ItemT]]) -> AsyncIterator[ItemT]:
    """Items of all pages; the cursor of the last page is None or that of the page itself."""
    while True:
        page = await bus.request(query)
        for item in page.items:
            yield item
        if page.next_cursor in (None, getattr(query, "cursor", None)):
            return
        query = query.model_copy(update={"cursor": page.next_cursor})


def _json(value: BaseModel | Mapping[str, Any], indent: int | None = 2) -> str:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, indent=indent)


def _paragraph(message: DialogueMessage) -> str:
    words = message.content or (f"(artifact {message.ref.artifact_id})" if message.ref else "")
    kind = "" if message.kind == "native" else f", {message.kind.value}"
    return f"**{message.role}**{kind}, {message.time:%Y-%m-%d %H:%M:%S}\n\n{words}\n"
