"""Units of memory as agents write them: each for itself, once, however often it takes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypedDict, Unpack

from bus_schema.artifacts import ArtifactRef
from bus_schema.glm import (
    MAX_BATCH,
    BatchItem,
    BatchReport,
    BatchStoreKems,
    DeleteKem,
    KemChanges,
    RetrieveKems,
    UpdateKem,
)
from bus_schema.kem import Kem, KemDraft, KemRights, Metadata
from bus_schema.kem_query import KemQuery
from bus_schema.kps import Chunking, ProcessedData, ProcessRawData
from bus_schema.links import Link
from bus_schema.messages import Command
from bus_schema.replies import Code
from bus_schema.swm import PublishKems, QuerySwm
from mindbus.errors import ReplyError
from mindbus.sdk.lookup import Lookup, Place
from mindbus.sdk.memory_failures import MemoryAway
from mindbus.sdk.memory_link import minted

# A document is read, cut, embedded before there is an answer.
_READING_S = 120.0

Batch = tuple[KemDraft, ...]


class RawData(TypedDict, total=False):
    """What the units of a source say besides its text; `trace` is that of an artifact."""

    content_type: str
    initial_metadata: Metadata
    rights: KemRights
    chunking: Chunking
    links: tuple[Link, ...]
    trace: str


class Contribution(Lookup):
    """The part of the SDK that writes; what has been written is at hand in local memory as it was stored."""

    async def store_kems(self, drafts: Iterable[KemDraft]) -> BatchReport:
        """Remember them for good; the report says what became of each. Raises MemoryAway where nothing is known."""
        return await self._sent(RetrieveKems, drafts, lambda some: BatchStoreKems(kems=some))

    async def publish_kems_to_swm_batch(
        self, drafts: Iterable[KemDraft], *, persist_to_glm_if_new_or_updated: bool = False
    ) -> BatchReport:
        """Share them with all agents at once; those that are to persist reach the global memory later, for sure.

        Raises MemoryAway where nothing is known.
        """
        persist = persist_to_glm_if_new_or_updated
        return await self._sent(
            QuerySwm, drafts, lambda some: PublishKems(kems=some, persist_to_glm_if_new_or_updated=persist)
        )

    async def update_kem(self, kem_id: str, changes: KemChanges, *, expected_version: int | None = None) -> Kem:
        """Change a unit of the global memory in part.

        Raises MemoryAway, ReplyError: `conflict` where somebody else has changed the version expected.
        """
        moment = self.local_memory.moment()
        command = UpdateKem(kem_id=kem_id, changes=changes, expected_version=expected_version)
        with self._doubting(kem_id):
            kem = await self.link.ask(command)
        self.local_memory.keep(kem, moment)
        return kem

    async def delete_kem(self, kem_id: str) -> None:
        """Forget a unit wherever it is kept. Raises MemoryAway, ReplyError."""
        with self._doubting(kem_id):
            await self.link.ask(DeleteKem(kem_id=kem_id))
        self.local_memory.drop(kem_id)

    async def process_raw_data(self, source: str | ArtifactRef, **about: Unpack[RawData]) -> ProcessedData:
        """Make units of a short text or of an artifact; the same again with the same settings makes none.

        Raises MemoryAway, ReplyError.
        """
        given = {"raw_content": source} if isinstance(source, str) else {"source": source}
        told = {name: value for name, value in about.items() if name != "trace"}
        command = ProcessRawData.model_validate({"content_type": "text/plain"} | given | told)
        return await self.link.ask(command, timeout_s=_READING_S, trace=about.get("trace"))

    async def _sent(
        self, place: Place, drafts: Iterable[KemDraft], command: Callable[[Batch], Command[BatchReport]]
    ) -> BatchReport:
        items: list[BatchItem] = []
        for some in _batches(drafts):
            moment = self.local_memory.moment()
            try:
                done = (await self.link.ask(command(some))).items
            except MemoryAway as away:
                if not items:
                    raise
                # What became of those before must be heard of.
                done = tuple(_failed(draft, away) for draft in some)
            items += done
            await self._look_at(place, [item.kem_id for item in done if item.version is not None], moment)
        return BatchReport(items=tuple(items))

    async def _look_at(self, place: Place, kem_ids: list[str], moment: int) -> None:
        """As they are now: an id, an owner, a time may not be as they were sent."""
        if not kem_ids:
            return
        try:
            found = await self._all(place, KemQuery(ids=tuple(kem_ids)), len(kem_ids))
        except MemoryAway:
            found = []
        for kem in found:
            self.local_memory.keep(kem, moment)
        for gone in set(kem_ids) - {kem.id for kem in found}:
            self.local_memory.drop(gone)

    @contextmanager
    def _doubting(self, kem_id: str) -> Iterator[None]:
        """What is refused because the unit is another, or gone, says that it is not as it is known here."""
        try:
            yield
        except ReplyError as no:
            if no.code in (Code.CONFLICT, Code.NOT_FOUND):
                self.local_memory.drop(kem_id)
            raise


def _batches(drafts: Iterable[KemDraft]) -> Iterator[Batch]:
    """Each has its id before it is sent, so that it is stored once."""
    named = [draft if draft.id else draft.model_copy(update={"id": minted("kem")}) for draft in drafts]
    for start in range(0, len(named), MAX_BATCH):
        yield tuple(named[start : start + MAX_BATCH])


def _failed(draft: KemDraft, away: MemoryAway) -> BatchItem:
    return BatchItem(kem_id=str(draft.id), status="failed", code=away.code, error=away.message)
