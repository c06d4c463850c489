"""Sub-agents of files, such as `analytic`: their tools search memory, read artifacts, compute with tables."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import Guide
from agents.configuration.validation import InvalidFile
from agents.mcp_servers.files import servers_named
from agents.mcp_servers.tools import McpTools
from agents.models.explicit_calls import ARTIFACT_ID
from agents.models.language_model import LanguageModel
from agents.models.prompt import memory_materials
from agents.models.remote_agent import RemoteAgentModel
from agents.subagents.files import open_subagent
from agents.subagents.loop import BoundTool, ToolFailed
from agents.subagents.tables import InvalidTable, TableQuery, read_table, run_query
from bus_schema.ids import derived
from bus_schema.subagent import service_of
from config.settings import FleetSettings
from language.words import Language
from mindbus.bus.worker import WorkerContext
from mindbus.registry import BrokenWorker
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.errors import ArtifactError, StorageAway
from mindbus.sdk.recall import KemRecall
from mindbus.sdk.subagent import Delegated
from workers.subagent import ThinkingSubagent

_LARGEST_BYTES = 16 * 1024**2
_FOUND_WORDS = 600
_ID = r"^art_[A-Za-z0-9_-]{1,64}$"


class SearchArguments(BaseModel):
    """A query for memory."""

    model_config = ConfigDict(extra="forbid")
    query: str = Field(min_length=1, max_length=2000, description="What to look for, in a few words or a question.")


class ReadArguments(BaseModel):
    """An artifact to read."""

    model_config = ConfigDict(extra="forbid")
    artifact_id: str = Field(pattern=_ID, description="Id of the artifact, as the task names it.")


class ComputeArguments(TableQuery):
    """A computation over a table in an artifact."""

    artifact_id: str = Field(pattern=_ID, description="Id of an artifact with CSV, or with a JSON list of objects.")


class FileSubagent(ThinkingSubagent):
    """A sub-agent of a file; its tools work with what the user of its chat may read, nothing else."""

    def __init__(self, context: WorkerContext, name: str, model: LanguageModel | None = None) -> None:
        self.name = service_of(name)
        self._file = open_subagent(name)
        super().__init__(context, self._file.guide, model)
        self._mcp = McpTools(servers_named(self._file.mcp))
        self._recall = KemRecall(context.bus, context.settings_as(FleetSettings).recall_timeout_s)

    @property
    def health_note(self) -> str:
        return self._mcp.note

    async def start(self) -> None:
        await super().start()
        await self._mcp.start()

    async def stop(self) -> None:
        await self._mcp.stop()
        await super().stop()

    async def execute(self, work: Delegated) -> str:
        if self._file.a2a is None:
            return await super().execute(work)
        return await RemoteAgentModel(self._file.a2a, partial(derived, work.delegation_id)).ask(work.task)

    def guide_in(self, language: Language) -> Guide:
        return open_subagent(self._file.name, language).guide

    def instruments(self, work: Delegated) -> Sequence[BoundTool]:
        tools = {tool.name: tool for tool in self._tools(work)}
        return [*(tools[name] for name in self._file.tools), *self._mcp.for_answer().bound]

    def _tools(self, work: Delegated) -> Sequence[BoundTool]:

        async def search(wanted: SearchArguments) -> str:
            found = await self._recall.about(wanted.query, f"user.{work.chat_id}")
            texts = [material.text for material in memory_materials(found, _FOUND_WORDS)]
            return "\n\n".join(texts) or "Nothing is known about it."

        async def read(wanted: ReadArguments) -> str:
            return _as_text(await self._bytes_of(wanted.artifact_id, work))

        async def compute(wanted: ComputeArguments) -> str:
            content = await self._bytes_of(wanted.artifact_id, work)
            try:
                return await asyncio.to_thread(lambda: run_query(read_table(content), wanted))
            except InvalidTable as error:
                raise ToolFailed(f"{wanted.artifact_id}: {error}") from error

        return (
            BoundTool(
                "search_memory", "Look up what the team knows: facts, decisions, documents.", SearchArguments, search
            ),
            BoundTool("read_artifact", "Read a document by the id of its artifact.", ReadArguments, read, ARTIFACT_ID),
            BoundTool(
                "compute",
                "Reckon with a table in an artifact: filter, group, sum, mean, min, max, count.",
                ComputeArguments,
                compute,
                ARTIFACT_ID,
            ),
        )

    async def _bytes_of(self, artifact_id: str, work: Delegated) -> bytes:
        # As the chat's user: other chats' artifacts, which are this sub-agent's own, are not theirs.
        user = self.bus.acting_as(f"user.{work.chat_id}", service=self.name)
        artifacts = open_artifacts(user, self.settings, self.clock)
        try:
            return await artifacts.get(artifact_id, trace=work.trace, max_bytes=_LARGEST_BYTES)
        except (ArtifactError, StorageAway, OSError) as error:
            raise ToolFailed(f"it cannot be read: {error}") from error


def _as_text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"it is not text but {len(content)} bytes of something else") from error


@dataclass(frozen=True)
class FileSubagentFactory:
    """Factory of the worker of one file."""

    name: str
    description: str

    def __call__(self, context: WorkerContext) -> FileSubagent:
        return FileSubagent(context, self.name)


def __getattr__(name: str) -> FileSubagentFactory:
    """The factory of a sub-agent of a file, by its name, as entry points name it. Raises BrokenWorker."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return FileSubagentFactory(name, open_subagent(name).description)
    except FileNotFoundError as error:
        raise AttributeError(name) from error
    except InvalidFile as error:
        raise BrokenWorker(str(error)) from error
