"""Listens for what is to be learned: sources in, units of memory out."""

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
from memory.embedding.embedder import Embedder
from memory.embedding.errors import EmbedderAway, EmbedderFailure
from memory.embedding.selection import configured_embedder
from memory.kps.chunks import cut
from memory.kps.reader import Limits, Reader
from memory.kps.refusals import SourceDiffers
from memory.kps.units import Unit, units_of
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.errors import ArtifactError
from mindbus.sdk.requests import in_id_scope, request
from workers.unit_removal import forget, is_forgotten, supersede

_BATCH = 32


class KpsWorker(Worker):
    """Reads, cuts, embeds, stores: all in the name of whoever asks, so that nothing is read or written but theirs.

    Whatever is away, the message comes back, to go on with what memory does not have yet.
    """

    name = "kps"
    concurrency = 4
    # On the usual ladder that is a day.
    attempts = 150

    def __init__(self, context: WorkerContext, open_embedder: Callable[[], Awaitable[Embedder]]) -> None:
        self._kit = context
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._opening = asyncio.Lock()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._reader = Reader(Limits(context.settings.kps_max_bytes, context.settings.kps_timeout_s))

    async def start(self) -> None:
        """Load the model before the first message; where it is away, messages wait for it."""
        try:
            await self._ready_embedder()
        except EmbedderAway as away:
            logger().warning("nothing is embedded yet", reason=str(away))

    async def stop(self) -> None:
        """Let go of model and reading process."""
        await self._reader.close()
        if self._embedder is not None:
            await self._embedder.close()

    @on_command
    async def process(self, command: ProcessRawData, context: MessageContext) -> tuple[ProcessedData, KemProcessed]:
        bus = self._kit.bus.acting_as(context.requester, service=self.name)
        units = await self._units(command, bus, context)
        stored = 0
        async with self._alone(command, context.owner):
            for first in range(0, len(units), _BATCH):
                batch = units[first : first + _BATCH]
                stored += await self._keep(batch, bus, context)
                if len(units) > _BATCH:
                    await self._report(command, first + len(batch), len(units))
        await supersede(bus, command, [unit.kem_id for unit in units], context)
        if await is_forgotten(self._kit.bus, command, context):
            await forget(bus, (unit.kem_id for unit in units), context)
            units, stored = [], 0
        status = "stored" if stored else "unchanged"
        logger().info("source processed", units=len(units), stored=stored, requester=context.requester)
        done = {"kem_ids": [unit.kem_id for unit in units], "status": status}
        return ProcessedData.model_validate(done), KemProcessed.model_validate({"source": command.source, **done})

    def _alone(self, command: ProcessRawData, owner: str) -> AbstractAsyncContextManager[object]:
        """Of two revisions of a text, the one must be stored before the other looks what there is."""
        if command.key is None:
            return nullcontext()
        return self._locks.setdefault(f"{owner} {command.key}", asyncio.Lock())

    async def _units(self, command: ProcessRawData, bus: Client, context: MessageContext) -> list[Unit]:
        try:
            content, content_type = await self._source(command, bus, context)
            document = await self._reader.read(content, content_type)
            pieces = await asyncio.to_thread(cut, document, command.chunking)
            return await asyncio.to_thread(units_of, command, context.owner, document, pieces)
        except Rejected as no:
            logger().warning("source refused", refusal=type(no).__name__, details=no.details, by=context.requester)
            raise Rejected(no.code, str(no), no.details) from no
        except OSError as trouble:
            raise TemporaryFailure(f"{type(trouble).__name__}: {trouble}") from trouble

    async def _source(self, command: ProcessRawData, bus: Client, context: MessageContext) -> tuple[bytes, str]:
        """The bytes, with what they are declared to be."""
        if command.source is None:
            # Text on the bus is in no charset of its own.
            return (command.raw_content or "").encode(), command.content_type.split(";")[0]
        artifacts = open_artifacts(bus, self._kit.settings, self._kit.clock)
        about = command.source.artifact_id
        try:
            async with artifacts.open(about, trace=context.trace_id) as reader:
                if reader.manifest.sha256 != command.source.sha256:
                    raise SourceDiffers(artifact_id=about)
                self._reader.require_size(reader.manifest.size_bytes)
                return b"".join([piece async for piece in reader]), command.content_type
        except ArtifactError as error:
            error.details["artifact_id"] = about
            raise

    async def _keep(self, units: Sequence[Unit], bus: Client, context: MessageContext) -> int:
        """Store those that memory does not have as they are; how many these were."""
        there = await self._there(units, bus, context)
        new = [unit for unit in units if not unit.is_there(there.get(unit.kem_id))]
        if not new:
            return 0
        vectors = await self._embedded([unit.passage for unit in new])
        drafts = [
            unit.draft.model_copy(update={"embeddings": vector}) for unit, vector in zip(new, vectors, strict=True)
        ]
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

    async def _there(self, units: Sequence[Unit], bus: Client, context: MessageContext) -> dict[str, Kem]:
        ids = tuple(unit.kem_id for unit in units)
        query = RetrieveKems(query=KemQuery(ids=ids), page_size=len(ids))
        page = await in_id_scope(f"look/{context.attempt}/{ids[0]}", lambda: request(bus, query))
        return {item.kem.id: item.kem for item in page.items}

    async def _embedded(self, texts: Sequence[str]) -> list[Embedding]:
        try:
            return await (await self._ready_embedder()).passages(texts)
        except EmbedderAway as away:
            raise TemporaryFailure(str(away)) from away
        except EmbedderFailure as failure:
            raise PermanentFailure(str(failure)) from failure

    async def _ready_embedder(self) -> Embedder:
        async with self._opening:
            if self._embedder is None:
                self._embedder = await self._open_embedder()
            return self._embedder

    async def _report(self, command: ProcessRawData, done: int, total: int) -> None:
        progress = KemProcessingProgress(source=command.source, done=done, total=total)
        await in_id_scope(f"progress/{done}", lambda: self._kit.bus.publish(progress))


def open_kps(context: WorkerContext) -> KpsWorker:
    """With the model that the settings name."""
    return KpsWorker(context, lambda: configured_embedder(context.settings))
