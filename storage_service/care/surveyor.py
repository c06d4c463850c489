"""Looks for what nothing needs any more, changing nothing."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import date, datetime

from bus_schema.storage_maintenance import Example, OrphanReason
from storage_service.blobs import OBJECTS, ORPHANS, STAGING, Blobs, Found
from storage_service.care.keys import CLAIMS, MANIFESTS, artifact_of, claimed_on, content_of, orphan_key, orphaned_on
from storage_service.care.piles import Pile, Survey
from storage_service.care.registry import CareRegistry, Removal
from storage_service.care.rules import CLAIMS_KEPT, GRACE, ORPHANS_KEPT

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Compares what lies in the store with what the database knows; a file's age is by the store's own clock."""

    registry: CareRegistry
    blobs: Blobs
    clock: Callable[[], datetime]

    async def survey(self) -> Survey:
        """Raises OSError."""
        survey = Survey(await self.registry.holdings())
        await self._due(survey)
        await self._unused(survey)
        await self._strays(survey)
        await self._copies(survey)
        await self._unregistered(survey)
        await self._overdue(survey)
        return survey

    async def _due(self, survey: Survey) -> None:
        after = 0
        while page := await self.registry.due(after, _PAGE):
            after = page[-1].position
            for due in page:
                survey.due.add(due, Example(key=due.artifact_id, size_bytes=due.size_bytes, reason=due.reason))

    async def _unused(self, survey: Survey) -> None:
        before, after = self.clock() - GRACE, ""
        while page := await self.registry.unused(before, after, _PAGE):
            after = page[-1].content.sha256
            for unused in page:
                found = Found(unused.content.key, unused.size_bytes, before)
                self._doom(survey.unused, found, "unused")

    async def _strays(self, survey: Survey) -> None:
        async for page in self._pages(OBJECTS):
            survey.objects += len(page)
            old = [(found, content_of(found.key)) for found in self._old(page)]
            reasons = await self.registry.strays([content for _found, content in old if content])
            for found, content in old:
                if reason := "unknown" if content is None else reasons.get(content):
                    self._doom(survey.unknown, found, reason)

    async def _copies(self, survey: Survey) -> None:
        async for page in self._pages(MANIFESTS):
            artifacts = {found.key: artifact_of(found.key) for found in page}
            unknown = await self.registry.unknown_artifacts({known for known in artifacts.values() if known})
            for found in page:
                artifact_id = artifacts[found.key]
                survey.forgotten += artifact_id in unknown
                if artifact_id is None or artifact_id in unknown:
                    self._doom(survey.unknown, found, "unknown")

    async def _unregistered(self, survey: Survey) -> None:
        async for page in self._pages(STAGING):
            old = self._old(page)
            unspent = await self.registry.unspent({found.key for found in old})
            for found in old:
                if found.key in unspent:
                    self._doom(survey.unregistered, found, "unregistered")

    async def _overdue(self, survey: Survey) -> None:
        today = self._today
        for pile, folder, day_of, kept in (
            (survey.overdue, ORPHANS, orphaned_on, ORPHANS_KEPT),
            (survey.claims, CLAIMS, claimed_on, CLAIMS_KEPT),
        ):
            async for found in self.blobs.listing(folder):
                since = day_of(found.key) or found.modified.date()
                # The day in a key may have been nearly over.
                if today - since > kept:
                    example = Example(key=found.key, size_bytes=found.size_bytes, reason=f"since {since}")
                    pile.add(found.key, example)

    @property
    def _today(self) -> date:
        return self.clock().date()

    def _old(self, page: list[Found]) -> list[Found]:
        before = self.clock() - GRACE
        return [found for found in page if found.modified < before]

    def _doom(self, pile: Pile[Removal], found: Found, reason: OrphanReason) -> None:
        target = orphan_key(found.key, self._today)
        removal = Removal(found.key, target, reason, found.size_bytes, content_of(found.key))
        pile.add(removal, Example(key=found.key, size_bytes=found.size_bytes, reason=reason))

    async def _pages(self, folder: str) -> AsyncIterator[list[Found]]:
        page: list[Found] = []
        async for found in self.blobs.listing(folder):
            page.append(found)
            if len(page) == _PAGE:
                yield page
                page = []
        if page:
            yield page
