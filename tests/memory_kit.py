"""The global memory over a real database, with a clock that stands still."""

from dataclasses import dataclass, field
from typing import Any

from bus_schema.embeddings import Embedding
from bus_schema.glm import KemChanges, KemPage, UpdateKem
from bus_schema.identities import Principal
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from memory.glm.queries import KemQueries
from memory.glm.store import KemStore, RejectedDraft, StoredKem
from memory.glm.tables import as_kem
from mindbus.sql.database import Database
from retrieval.embedding.embedder import EmbeddingSpace
from tests.clocks import Clock

RESEARCHER = Principal("agent.researcher.1")
CRITIC = Principal("agent.critic.1")
ANNA = Principal("user.anna")
SPACE = EmbeddingSpace("tiny", 4)


def a_draft(content: str = "The release was moved to Friday.", **fields: Any) -> KemDraft:
    return KemDraft.model_validate({"content": content} | fields)


def a_vector(*numbers: float) -> Embedding:
    return Embedding.of(SPACE.model, numbers)


@dataclass
class Library:
    """Writes as the runtime does, a transaction a message."""

    database: Database
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.kems = KemStore(self.database, self.clock, SPACE)
        self.queries = KemQueries(self.database)

    async def store(self, draft: KemDraft | None = None, by: Principal = RESEARCHER, **fields: Any) -> Kem:
        async with self.database.at_hand():
            return as_kem((await self.kems.store(draft or a_draft(**fields), by)).row)

    async def store_all(self, *drafts: KemDraft, by: Principal = RESEARCHER) -> list[StoredKem | RejectedDraft]:
        async with self.database.at_hand():
            return await self.kems.store_all(drafts, by)

    async def update(self, kem_id: str, by: Principal = RESEARCHER, expected: int | None = None, **changes: Any) -> Kem:
        wanted = UpdateKem(kem_id=kem_id, changes=KemChanges.model_validate(changes), expected_version=expected)
        async with self.database.at_hand():
            return await self.kems.update(wanted, by)

    async def delete(self, kem_id: str, by: Principal = RESEARCHER) -> None:
        async with self.database.at_hand():
            await self.kems.delete(kem_id, by)

    async def expire(self) -> list[str]:
        """Ids of the units whose time has come; they are deleted."""
        async with self.database.at_hand():
            return list(await self.kems.delete_expired())

    async def page(
        self, by: Principal = RESEARCHER, cursor: str | None = None, size: int = 50, **query: Any
    ) -> KemPage:
        return await self.queries.page(KemQuery.model_validate(query), by, cursor, size)

    async def found(self, by: Principal = RESEARCHER, **query: Any) -> list[str]:
        """The ids of the first page."""
        return [item.kem.id for item in (await self.page(by, **query)).items]
