"""Knowledge processing with an embedder that is quick, beside a memory that obeys."""

from collections.abc import Awaitable, Callable

from bus_schema.glm import BatchItem, BatchReport, BatchStoreKems, FoundKem, KemPage, RetrieveKems
from bus_schema.kem import Kem
from bus_schema.replies import Code
from mindbus import MessageContext, Worker, WorkerContext, on_command
from mindbus.errors import TemporaryFailure
from tests.clocks import NOON
from tests.hashing_embedder import HashingEmbedder
from workers.kps import KpsWorker


class ObedientMemory(Worker):
    """A global memory that keeps what it is given, unless it is told to fail."""

    name = "glm"

    def __init__(self, _kit: WorkerContext) -> None:
        self.kems: dict[str, Kem] = {}
        self.batches: list[int] = []
        self.fails_after: int | None = None
        self.refuses: Code | None = None

    @on_command
    async def retrieve(self, query: RetrieveKems, context: MessageContext) -> KemPage:
        found = (self.kems[kem_id] for kem_id in query.query.ids if kem_id in self.kems)
        return KemPage(items=tuple(FoundKem(kem=kem) for kem in found if kem.owner == context.owner))

    @on_command
    async def store(self, command: BatchStoreKems, context: MessageContext) -> BatchReport:
        if self.fails_after is not None and len(self.batches) >= self.fails_after:
            raise TemporaryFailure("told to")
        self.batches.append(len(command.kems))
        if self.refuses is Code.CONFLICT or (self.refuses and any(draft.embeddings for draft in command.kems)):
            refused = {"status": "refused", "code": self.refuses, "error": "told to"}
            items = [BatchItem.model_validate({"kem_id": str(draft.id), **refused}) for draft in command.kems]
            return BatchReport(items=tuple(items))
        for draft in command.kems:
            fields = draft.model_dump() | {"owner": context.owner, "created_at": NOON, "updated_at": NOON}
            self.kems[str(draft.id)] = Kem.model_validate(fields | {"version": 1})
        items = [BatchItem(kem_id=str(draft.id), status="stored", version=1) for draft in command.kems]
        return BatchReport(items=tuple(items))


def kps_with(embedder: HashingEmbedder) -> Callable[[WorkerContext], Worker]:
    """How to build the worker over it."""

    async def opened() -> HashingEmbedder:
        return embedder

    return kps_opening(opened)


def kps_opening(open_embedder: Callable[[], Awaitable[HashingEmbedder]]) -> Callable[[WorkerContext], Worker]:
    """How to build the worker over what is opened."""

    def make(context: WorkerContext) -> Worker:
        return KpsWorker(context, open_embedder)

    make.name = "kps"  # type: ignore[attr-defined]  # as a Worker class has one
    return make
