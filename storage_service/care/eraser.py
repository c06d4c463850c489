"""Erasure: what somebody wants gone is gone, bytes and all, not kept among the orphans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindbus.principal import Principal
from storage_service.blobs import OBJECTS, ORPHANS, STAGING, Blobs, Found
from storage_service.care.keys import CLAIMS, MANIFESTS, content_of
from storage_service.care.registry import CareRegistry, Removal
from storage_service.care.sql_erasing import SqlErasing
from storage_service.refusals import NotAnOperator

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Eraser:
    """Decides together with the message at hand; the files follow, as those do that garbage collection removes.

    The generations of contents are never forgotten: whoever wakes late with an old key can still harm nothing.
    """

    registry: CareRegistry
    rows: SqlErasing
    blobs: Blobs

    async def clear(self, principal: Principal) -> Mapping[str, int]:
        """Everything, counted by kind. Raises NotAnOperator, OSError."""
        _require_operator(principal)
        await self._outlaw_strays()
        # Looked through first: a transaction on SQLite would hold up everybody meanwhile.
        files = [found for folder in (STAGING, ORPHANS, CLAIMS, MANIFESTS) for found in await self._under(folder)]
        return await self.rows.forget_all(files)

    async def forget(self, principal: Principal, user_id: str) -> Mapping[str, int]:
        """All that is a user's own, counted by kind; what others made of it stays theirs. Raises NotAnOperator."""
        _require_operator(principal)
        return await self.rows.forget_user(user_id, await self._under(ORPHANS))

    async def _under(self, folder: str) -> Sequence[Found]:
        return [found async for found in self.blobs.listing(folder)]

    async def _outlaw_strays(self) -> None:
        """Objects that no manifest names have no rows by which to find them."""
        found = await self._under(OBJECTS)
        for first in range(0, len(found), _PAGE):
            page = [(each, content_of(each.key)) for each in found[first : first + _PAGE]]
            reasons = await self.registry.strays([content for _, content in page if content])
            for each, content in page:
                if reason := "unknown" if content is None else reasons.get(content):
                    await self.registry.outlaw(Removal(each.key, "", reason, each.size_bytes, content))


def _require_operator(principal: Principal) -> None:
    if not principal.is_operator:
        raise NotAnOperator(requester=principal.identity)
