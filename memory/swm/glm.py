"""The global memory, as the working memory meets it."""

from collections.abc import Collection, Sequence
from typing import Protocol

from bus_schema.glm import BatchReport, KemPage
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery


class GlmAway(Exception):
    """The global memory does not answer; start the glm worker, or wait for it."""


class Glm(Protocol):
    """It keeps to the rights of whoever asks, which is why it is asked in their names. All of it raises GlmAway."""

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        """Those that there are, whoever may read them."""

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        """Raises Rejected or the bus's own where it says no."""

    async def store(self, drafts: Sequence[KemDraft], publisher: str) -> BatchReport: ...
