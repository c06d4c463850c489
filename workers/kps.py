"""Learns from documents: text is extracted, cut into pieces, embedded and stored as KEMs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from hashlib import sha256
from weakref import WeakValueDictionary

from bus_schema.embeddings import Embedding
from bus_schema.glm import BatchItem, BatchStoreKems, RetrieveKems
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from bus_schema.kps import KemProcessed, KemProcessingProgress, ProcessedData, ProcessRawData
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.kps.document import SourceDiffers
from memory.kps.extractor import DocumentExtractor, ExtractionLimits
from memory.kps.units import Unit, cut, units_of
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.errors import ArtifactError
from mindbus.sdk.requests import in_id_scope, request
from retrieval.embedding.embedder import Embedder, EmbedderAway, EmbedderFailure
from retrieval.embedding.selection import configured_embedder
from workers.unit_removal import forget, is_forgotten, supersede

_BATCH = 32


class KpsWorker(Worker):
    """Extracts, cuts, embeds and stores in the name of the requester, who can have nothing read or written but theirs.

    Where a service is unavailable, the message is retried and goes on with what memory does not have yet.
    """

    name = "kps"
    concurrency = 4
    time_limit_s = 3600
    # On the usual ladder that is a day.
    attempts = 150

    def __init__(self, context: WorkerContext, open_embedder: Callable[[], Awaitable[Embedder]]) -> None:
        settings = context.settings_as(FleetSettings)
        self._worker = context
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._opening = asyncio.Lock()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._extractor = DocumentExtractor(ExtractionLimits(settings.kps_max_bytes, settings.kps_timeout_s))

    async def start(self) -> None:
        """Load the model before the first message; where it is away, messages wait for it."""
        try:
            await self._ready_embedder()
        except EmbedderAway as error:
            logger().warning("embedder unavailable", reason=str(error))

    async def stop(self) -> None:
        await self._extractor.close()
        if self._embedder is not None:
            await self._embedder.close()

    @on_command
    async def process(self, command: ProcessRawData, context: MessageContext) -> tuple[ProcessedData, KemProcessed]:
        bus = self._worker.bus.acting_as(context.requester, service=self.name)
        units = await self._units(command, bus, context)
        stored = 0
        async with self._one_revision(command, context.owner):
            for first in range(0, len(units), _BATCH):
                batch = units[first : first + _BATCH]
                stored += await self._keep(batch, bus, context)
                if len(units) > _BATCH:
                    await self._report(command, first + len(batch), len(units))
        await supersede(bus, command, [unit.kem_id for unit in units], context)
        if await is_forgotten(self._worker.bus, command, context):
            await forget(bus, (unit.kem_id for unit in units), context)
            units, stored = [], 0
        status = "stored" if stored else "unchanged"
        logger().info("source processed", units=len(units), stored=stored, requester=context.requester)
        done = ProcessedData.model_validate({"kem_ids": [unit.kem_id for unit in units], "status": status})
        if command.rights.visibility != "public":
            return done, KemProcessed(kem_ids=(), status=done.status)
        return done, KemProcessed(source=command.source, kem_ids=done.kem_ids, status=done.status)

    def _one_revision(self, command: ProcessRawData, owner: str) -> AbstractAsyncContextManager[object]:
        """A lock for revisions of one text: each is stored before the next compares itself with memory."""
        if command.key is None:
            return nullcontext()
        return self._locks.setdefault(f"{owner} {command.key}", asyncio.Lock())

    async def _units(self, command: ProcessRawData, bus: Client, context: MessageContext) -> list[Unit]:
        try:
            content, content_type = await self._source(command, bus, context)
            document = await self._extractor.read(content, content_type)
            pieces = await asyncio.to_thread(cut, document, command.chunking)
            return await asyncio.to_thread(units_of, command, context.owner, document, pieces)
        except Rejected as error:
            logger().warning("source rejected", error=type(error).__name__, details=error.details, by=context.requester)
            raise Rejected(error.code, str(error), error.details) from error
        except OSError as error:
            raise TemporaryFailure(f"{type(error).__name__}: {error}") from error

    async def _source(self, command: ProcessRawData, bus: Client, context: MessageContext) -> tuple[bytes, str]:
        """Bytes of the source with their content type."""
        if command.source is None:
            # Text on the bus is in no charset of its own.
            return (command.raw_content or "").encode(), command.content_type.split(";")[0]
        artifacts = open_artifacts(bus, self._worker.settings, self._worker.clock)
        about = command.source.artifact_id
        try:
            async with artifacts.open(about, trace=context.trace_id) as reader:
                if reader.manifest.sha256 != command.source.sha256:
                    raise SourceDiffers(artifact_id=about)
                self._extractor.require_size(reader.manifest.size_bytes)
                return b"".join([piece async for piece in reader]), command.content_type
        except ArtifactError as error:
            error.details["artifact_id"] = about
            raise

    async def _keep(self, units: Sequence[Unit], bus: Client, context: MessageContext) -> int:
        """Store the units that memory does not have as they are; their number."""
        known = await self._known(units, bus, context)
        new = [unit for unit in units if not unit.is_known(known.get(unit.kem_id))]
        if not new:
            return 0
        vectors = await self._embedded([unit.passage for unit in new])
        embedded = zip(new, vectors, strict=True)
        drafts = [unit.draft.model_copy(update={"embeddings": vector}) for unit, vector in embedded]
        items = await self._stored(drafts, bus, context)
        if any(item.status == "refused" and item.code is Code.INVALID for item in items):
            # Memory is of another model still, or already: it embeds by itself what comes without a vector.
            items = await self._stored([unit.draft for unit in new], bus, context)
        for item in items:
            if item.status == "refused":
                raise Rejected(item.code or Code.INVALID, item.error or "refused", {"kem_id": item.kem_id})
            if item.status == "failed":
                raise TemporaryFailure(f"{item.kem_id}: {item.error}")
        return len(new)

    async def _stored(self, drafts: Sequence[KemDraft], bus: Client, context: MessageContext) -> Sequence[BatchItem]:
        command = BatchStoreKems(kems=tuple(drafts))
        # After a crash there may be less to store: another batch is another message, or it had the answer of this one.
        content = sha256(command.model_dump_json().encode()).hexdigest()
        return (await in_id_scope(f"store/{context.attempt}/{content}", lambda: request(bus, command))).items

    async def _known(self, units: Sequence[Unit], bus: Client, context: MessageContext) -> dict[str, Kem]:
        ids = tuple(unit.kem_id for unit in units)
        query = RetrieveKems(query=KemQuery(ids=ids), page_size=len(ids))
        page = await in_id_scope(f"look/{context.attempt}/{ids[0]}", lambda: request(bus, query))
        return {item.kem.id: item.kem for item in page.items}

    async def _embedded(self, texts: Sequence[str]) -> list[Embedding]:
        try:
            return await (await self._ready_embedder()).passages(texts)
        except EmbedderAway as error:
            raise TemporaryFailure(str(error)) from error
        except EmbedderFailure as error:
            raise PermanentFailure(str(error)) from error

    async def _ready_embedder(self) -> Embedder:
        async with self._opening:
            if self._embedder is None:
                self._embedder = await self._open_embedder()
            return self._embedder

    async def _report(self, command: ProcessRawData, done: int, total: int) -> None:
        source = command.source if command.rights.visibility == "public" else None
        progress = KemProcessingProgress(source=source, done=done, total=total)
        await in_id_scope(f"progress/{done}", lambda: self._worker.bus.publish(progress))


def open_kps(context: WorkerContext) -> KpsWorker:
    """The worker with the embedder that the settings name."""
    return KpsWorker(context, lambda: configured_embedder(context.settings_as(FleetSettings)))
