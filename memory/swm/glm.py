"""Interface of the global memory, as the working memory uses it."""

from collections.abc import Collection, Sequence
from typing import Protocol

from bus_schema.glm import BatchReport, KemPage
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from mindbus.errors import TemporaryFailure


class GlmAway(TemporaryFailure):
    """The global memory does not answer; start the glm worker, or wait for it."""


class Glm(Protocol):
    """Requests are made in the name of the principal, whose rights it checks. All methods raise GlmAway."""

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        """Those of these units that exist, whoever may read them."""

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        """Raises Rejected."""

    async def store(self, drafts: Sequence[KemDraft], publisher: str) -> BatchReport: ...
