"""Worker of the global memory, and the texts of units that are embedded."""

import asyncio
from collections.abc import Awaitable, Callable

from bus_schema.artifacts import ArtifactRef
from bus_schema.kem import KemSource
from config.settings import FleetSettings
from memory.glm.migration import ModelMigration, own_text
from memory.glm.service import GlobalMemory, database_of, open_memory
from memory.glm.tables import KemRow
from memory.kps.extractor import DocumentExtractor, ExtractionLimits
from memory.vectors.index import IndexAway
from mindbus.bus.handlers import background
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.requests import in_id_scope
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from retrieval.embedding.embedder import EmbedderFailure
from workers.glm.handlers import CurrentMemory, KemHandlers, MemoryMaintenance
from workers.kem_drafts import DraftReader

_AGAIN_S = 1.0
_EMBED_AGAIN_S = 10.0


class GlmWorker(Worker):
    """The only writer of units, and the only judge of who may read them."""

    name = "glm"
    start_stage = 0

    def __init__(
        self, database: Database, opening: Callable[[], Awaitable[GlobalMemory]], context: WorkerContext
    ) -> None:
        self._database, self._texts, self._current = database, KemTexts(context), CurrentMemory(opening)
        self.inbox = inbox = SqlInbox(database)
        self.leadership = single_writer(database)
        self.include(
            KemHandlers(self._current, DraftReader(context)),
            MemoryMaintenance(
                self._current, inbox, ModelMigration(database, context.settings_as(FleetSettings), self._texts.of)
            ),
        )

    @property
    def memory(self) -> GlobalMemory:
        return self._current.memory

    async def start(self) -> None:
        """Refuse to start rather than answer from half a memory: what raises here says what to do."""
        await self._current.open()

    async def stop(self) -> None:
        await self._current.close()
        await self._texts.close()
        await self._database.dispose()

    @background(pause_s=0.05)
    async def sync_index(self) -> None:
        """Write vectors to the index after each commit; while the index is unavailable, they wait in the rows."""
        try:
            await self.memory.relay.step()
        except IndexAway as error:
            logger().warning("vectors wait", reason=str(error))
            await asyncio.sleep(_AGAIN_S)

    @background(pause_s=0.05)
    async def embed(self) -> None:
        """Embed units without a vector; while the embedder is unavailable, they are found by their words."""
        try:
            await self.memory.backlog.step()
        except EmbedderFailure as error:
            logger().warning("units wait for their vectors", reason=str(error))
            await asyncio.sleep(_EMBED_AGAIN_S)
        else:
            self.memory.relay.notify()


def open_glm(context: WorkerContext) -> GlmWorker:
    database = database_of(context.settings_as(FleetSettings))
    return GlmWorker(
        database, lambda: open_memory(database, context.settings_as(FleetSettings), context.clock), context
    )


class KemTexts:
    """Reads artifacts in the name of a unit's owner: what the owner may no longer read makes no vector either."""

    def __init__(self, context: WorkerContext) -> None:
        settings = context.settings_as(FleetSettings)
        self._kit = context
        self._reader = DocumentExtractor(ExtractionLimits(settings.kps_max_bytes, settings.kps_timeout_s))

    async def of(self, row: KemRow) -> str | None:
        """Text of a unit; None where there is none, or none that its owner may still read. Raises TemporaryFailure."""
        if row.ref is None:
            return await own_text(row)
        ref = ArtifactRef.model_validate(row.ref)
        try:
            return await in_id_scope(f"text/{row.id}/{row.version}", lambda: self._read(row, ref))
        except OSError as error:
            raise TemporaryFailure(f"{type(error).__name__}: {error}") from error
        except Rejected as error:
            logger().warning("a unit is left without a vector", kem_id=row.id, reason=str(error))
            return None

    async def close(self) -> None:
        await self._reader.close()

    async def _read(self, row: KemRow, ref: ArtifactRef) -> str:
        """The part that the unit is about, if it says which."""
        artifacts = open_artifacts(
            self._kit.bus.acting_as(row.owner), self._kit.settings_as(FleetSettings), self._kit.clock
        )
        async with artifacts.open(ref.artifact_id) as reader:
            self._reader.require_size(reader.manifest.size_bytes)
            content = b"".join([piece async for piece in reader])
        text = (await self._reader.read(content, ref.content_type)).text
        source = None if row.source is None else KemSource.model_validate(row.source)
        return text if source is None or source.artifact != ref else text[source.start : source.end]
