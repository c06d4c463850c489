"""Garbage collection: unused files are moved to the orphans, old orphans are deleted."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus_schema.storage_maintenance import GarbageReport, Tally
from mindbus.errors import Rejected
from mindbus.logs import logger
from storage_service.blobs import Blobs
from storage_service.errors import DatabaseBehindStore, TooMuchGarbage
from storage_service.maintenance.registry import MaintenanceRegistry, Removal
from storage_service.maintenance.survey import (
    GRACE,
    MAX_PER_RUN,
    TEMPORARY_KEPT,
    MaintenanceRules,
    Survey,
    Surveyor,
)


def limit_error(survey: Survey, rules: MaintenanceRules, max_objects: int | None) -> Rejected | None:
    """The error of a run that would remove too much, or None.

    It protects against a restored database and a mistyped retention; a request with `max_objects` has seen the survey.
    """
    objects = survey.unused.count + survey.unknown.count
    to_remove = max(objects, survey.expired.count) + survey.unregistered.count
    numbers: dict[str, Any] = {
        "taken": to_remove,
        "expired": survey.expired.count,
        "artifacts": survey.artifacts,
        "orphaned": objects,
        "objects": survey.objects,
        "unregistered": survey.unregistered.count,
    }
    if max_objects is not None:
        return TooMuchGarbage(**numbers, max_objects=max_objects) if to_remove > max_objects else None
    if survey.forgotten:
        return DatabaseBehindStore(**numbers, forgotten=survey.forgotten)
    share = max(
        _percent(objects, survey.objects, rules.few),
        _percent(survey.expired.count, survey.artifacts, rules.few),
    )
    if to_remove > rules.max_objects or share > rules.max_percent:
        return TooMuchGarbage(
            **numbers, percent=round(share, 1), max_objects=rules.max_objects, max_percent=rules.max_percent
        )
    return None


def _percent(part: int, total: int, tolerated: int) -> float:
    return 100 * part / max(total, part) if part > tolerated else 0.0


COLLECTED = "collected"


@dataclass(frozen=True, slots=True)
class Collector:
    """Surveys, decides in the database, then moves files; the next run resumes an interrupted one.

    The database checks every decision again: a content that has come into use meanwhile stays.
    """

    registry: MaintenanceRegistry
    blobs: Blobs
    clock: Callable[[], datetime]
    rules: MaintenanceRules
    copying: asyncio.Lock

    async def collect(self, *, dry_run: bool = False, max_objects: int | None = None) -> GarbageReport:
        """Raises TooMuchGarbage, DatabaseBehindStore; OSError where the store fails."""
        resumed = 0 if dry_run else await self.end_removals()
        survey = await Surveyor(self.registry, self.blobs, self.clock).survey()
        error = limit_error(survey, self.rules, max_objects)
        if dry_run:
            tallies = {name: batch.tally for name, batch in survey.batches.items()}
            return _report(survey, tallies, dry_run=True, refusal=str(error) if error else None)
        if error is not None:
            raise error
        return await self._take(survey, resumed)

    async def end_removals(self) -> int:
        """Carry out decided removals; returns their number. What fails now is repeated by a later run."""
        return await self._end(await self.registry.removals(MAX_PER_RUN))

    async def end_erasures(self) -> int:
        """Carry out the removals of erased files, which should not wait for the next collection."""
        return await self._end([removal for removal in await self.registry.removals(MAX_PER_RUN) if not removal.target])

    async def _end(self, removals: Iterable[Removal]) -> int:
        ended = 0
        for removal in removals:
            # A copy of a manifest that is being written meanwhile would come back.
            async with self.copying:
                try:
                    is_there = await self._carry_out(removal)
                except OSError as error:
                    logger().warning("garbage stays", key=removal.key, reason=str(error))
                    continue
                await self.registry.finish(removal, is_there=is_there)
            ended += 1
        return ended

    async def _carry_out(self, removal: Removal) -> bool:
        """Move or delete a file; whether it is among the orphans now."""
        if removal.target:
            return await self.blobs.move(removal.key, removal.target)
        await self.blobs.delete(removal.key)
        return False

    async def _take(self, survey: Survey, resumed: int) -> GarbageReport:
        before = self.clock() - GRACE

        async def retire(removal: Removal) -> bool:
            return await self.registry.retire(removal, before)

        done = {
            "expired": await survey.expired.each(self.registry.expire),
            "unused": await survey.unused.each(retire),
            "unknown": await survey.unknown.each(self.registry.remove_stray),
            "unregistered": await survey.unregistered.each(self.registry.give_up),
        }
        await self.end_removals()
        done |= {
            "deleted": await survey.deleted.each(self._delete),
            "claims": await survey.claims.each(self._delete),
        }
        report = _report(
            survey,
            done,
            dry_run=False,
            resumed=resumed,
            pending=len(await self.registry.removals(MAX_PER_RUN)),
            temporary=await self.blobs.sweep_temporary(self.clock() - TEMPORARY_KEPT),
        )
        await self.registry.set_progress(COLLECTED, "done")
        _log(report)
        return report

    async def _delete(self, key: str) -> bool:
        try:
            await self.blobs.delete(key)
        except OSError as error:
            logger().warning("garbage stays", key=key, reason=str(error))
            return False
        return True


def _report(survey: Survey, tallies: dict[str, Tally], **more: bool | int | str | None) -> GarbageReport:
    totals = {"artifacts": survey.artifacts, "objects": survey.objects, "is_complete": survey.is_complete}
    return GarbageReport.model_validate({**totals, **tallies, **more})


def _log(report: GarbageReport) -> None:
    amounts = {name: tally.count for name, tally in report if isinstance(tally, Tally)}
    logger().info("garbage collected", **amounts, is_complete=report.is_complete)
