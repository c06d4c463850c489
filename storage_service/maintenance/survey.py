"""Survey: the store compared with the database, without any change; retention periods and limits of maintenance."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

from bus_schema.artifacts import retention_policy
from bus_schema.storage_maintenance import Example, OrphanReason, Tally
from config.settings import FleetSettings
from mindbus.files.keys import OBJECTS
from mindbus.sql.inbox import KEPT as INBOX_KEPT
from storage_service.blobs import ORPHANS, STAGING, Blobs, StoredFile, content_of, pages_of
from storage_service.maintenance.manifest_copies import (
    CLAIMS,
    MANIFESTS,
    artifact_of,
    claim_date,
    orphan_date,
    orphan_key,
)
from storage_service.maintenance.registry import DueArtifact, MaintenanceRegistry, Removal

# A younger file may still become part of an artifact.
GRACE = timedelta(hours=24)
ORPHANS_KEPT = timedelta(days=7)
# As long as a dead letter that points at the claim may be kept.
CLAIMS_KEPT = timedelta(days=30)
# Partial files: far longer than a copy takes, so that no running copy of another instance is removed.
TEMPORARY_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class MaintenanceRules:
    """Settings of the operator.

    `retention` is by artifact type. A garbage collection of more than `max_objects` objects, or more than `max_percent`
    of all, is rejected; up to `few` objects are always collected. `interval` is the time between runs, `audit_within`
    the time for an audit of all artifacts; None: never by itself. Events leave the timeline after `timeline_kept`;
    None: never. `orphans` is a folder outside the store. With `must_write_once`, storage does not start on a store that
    overwrites objects. `quota_bytes` bounds what artifacts weigh together; 0: nothing does.
    """

    retention: Mapping[str, timedelta] = field(default_factory=dict)
    max_objects: int = 10_000
    max_percent: float = 25
    few: int = 100
    interval: timedelta | None = timedelta(days=1)
    audit_within: timedelta | None = timedelta(days=7)
    orphans: Path | None = None
    must_write_once: bool = False
    timeline_kept: timedelta | None = timedelta(days=365)
    quota_bytes: int = 0

    @property
    def kept_days(self) -> dict[str, float | None]:
        """Days for which each kind of thing is kept, None for ever."""
        kept = {
            **{f"artifacts of type {name}": period for name, period in self.retention.items()},
            "events in the timeline": self.timeline_kept,
            "claims": CLAIMS_KEPT,
            "orphans": ORPHANS_KEPT,
            "messages that were handled": INBOX_KEPT,
        }
        return {name: None if period is None else period / timedelta(days=1) for name, period in kept.items()}


def rules_of(settings: FleetSettings) -> MaintenanceRules:
    return MaintenanceRules(
        retention=retention_policy(settings.retention),
        max_objects=settings.gc_max_objects,
        max_percent=settings.gc_max_percent,
        interval=timedelta(seconds=settings.gc_interval_s) or None,
        audit_within=timedelta(days=settings.audit_days) or None,
        orphans=settings.orphans_dir,
        must_write_once=settings.artifacts_write_once == "required",
        timeline_kept=timedelta(days=settings.timeline_days) or None,
        quota_bytes=settings.quota_bytes,
    )


T = TypeVar("T")
_MAX_EXAMPLES = 5
# Items of a kind that one run handles; the next run takes the rest.
MAX_PER_RUN = 20_000
_ROWS = 500


@dataclass
class Batch(Generic[T]):
    """Items of one kind: all are counted, the first few kept as examples, as many kept as one run handles."""

    count: int = 0
    size_bytes: int = 0
    shown: list[Example] = field(default_factory=list)
    kept: list[tuple[T, Example]] = field(default_factory=list)

    def add(self, thing: T, example: Example) -> None:
        self.count += 1
        self.size_bytes += example.size_bytes
        if len(self.shown) < _MAX_EXAMPLES:
            self.shown.append(example)
        if len(self.kept) < MAX_PER_RUN:
            self.kept.append((thing, example))

    @property
    def tally(self) -> Tally:
        return Tally(count=self.count, size_bytes=self.size_bytes, examples=tuple(self.shown))

    async def each(self, deal: Callable[[T], Awaitable[bool]]) -> Tally:
        """Handle the kept items one by one; the tally of those for which `deal` returned True."""
        done: Batch[T] = Batch()
        for thing, example in self.kept:
            if await deal(thing):
                done.add(thing, example)
        return done.tally


@dataclass
class Survey:
    """All that a garbage collection would remove, without any change."""

    artifacts: int
    expired: Batch[DueArtifact] = field(default_factory=Batch)
    unused: Batch[Removal] = field(default_factory=Batch)
    unknown: Batch[Removal] = field(default_factory=Batch)
    unregistered: Batch[Removal] = field(default_factory=Batch)
    deleted: Batch[str] = field(default_factory=Batch)
    claims: Batch[str] = field(default_factory=Batch)
    objects: int = 0
    forgotten: int = 0

    @property
    def batches(self) -> dict[str, Batch[Any]]:
        """The batches by their names in the report."""
        return {name: batch for name, batch in vars(self).items() if isinstance(batch, Batch)}

    @property
    def is_complete(self) -> bool:
        """Whether one run handles everything."""
        return all(batch.count == len(batch.kept) for batch in self.batches.values())


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Compares the store with the database; a file's age is by the store's own clock."""

    registry: MaintenanceRegistry
    blobs: Blobs
    clock: Callable[[], datetime]

    async def survey(self) -> Survey:
        """Raises OSError."""
        survey = Survey(await self.registry.artifact_count())
        await self._due(survey)
        await self._unused(survey)
        await self._strays(survey)
        await self._copies(survey)
        await self._unregistered(survey)
        await self._overdue(survey)
        return survey

    async def _due(self, survey: Survey) -> None:
        after = 0
        while page := await self.registry.due(after, _ROWS):
            after = page[-1].position
            for due in page:
                survey.expired.add(due, Example(key=due.artifact_id, size_bytes=due.size_bytes, reason=due.reason))

    async def _unused(self, survey: Survey) -> None:
        before, after = self.clock() - GRACE, ""
        while page := await self.registry.unused_contents(before, after, _ROWS):
            after = page[-1].content.sha256
            for unused in page:
                file = StoredFile(unused.content.key, unused.size_bytes, before)
                self._add_removal(survey.unused, file, "unused")

    async def _strays(self, survey: Survey) -> None:
        async for page in pages_of(self.blobs.listing(OBJECTS)):
            survey.objects += len(page)
            for file, reason in await strays_of(self.registry, self._old(page)):
                self._add_removal(survey.unknown, file, reason)

    async def _copies(self, survey: Survey) -> None:
        async for page in pages_of(self.blobs.listing(MANIFESTS)):
            artifacts = {file.key: artifact_of(file.key) for file in page}
            unknown = await self.registry.unknown_artifacts({known for known in artifacts.values() if known})
            for file in page:
                artifact_id = artifacts[file.key]
                survey.forgotten += artifact_id in unknown
                if artifact_id is None or artifact_id in unknown:
                    self._add_removal(survey.unknown, file, "unknown")

    async def _unregistered(self, survey: Survey) -> None:
        async for page in pages_of(self.blobs.listing(STAGING)):
            old = self._old(page)
            unspent = await self.registry.unspent({file.key for file in old})
            for file in old:
                if file.key in unspent:
                    self._add_removal(survey.unregistered, file, "unregistered")

    async def _overdue(self, survey: Survey) -> None:
        today = self._today
        for batch, folder, day_of, period in (
            (survey.deleted, ORPHANS, orphan_date, ORPHANS_KEPT),
            (survey.claims, CLAIMS, claim_date, CLAIMS_KEPT),
        ):
            async for file in self.blobs.listing(folder):
                since = day_of(file.key) or file.modified.date()
                # The day in a key may have been nearly over.
                if today - since > period:
                    example = Example(key=file.key, size_bytes=file.size_bytes, reason=f"since {since}")
                    batch.add(file.key, example)

    @property
    def _today(self) -> date:
        return self.clock().date()

    def _old(self, page: list[StoredFile]) -> list[StoredFile]:
        before = self.clock() - GRACE
        return [file for file in page if file.modified < before]

    def _add_removal(self, batch: Batch[Removal], file: StoredFile, reason: OrphanReason) -> None:
        target = orphan_key(file.key, self._today)
        removal = Removal(file.key, target, reason, file.size_bytes, content_of(file.key))
        batch.add(removal, Example(key=file.key, size_bytes=file.size_bytes, reason=reason))


async def strays_of(
    registry: MaintenanceRegistry, files: Iterable[StoredFile]
) -> list[tuple[StoredFile, OrphanReason]]:
    """The objects among these files that belong to no artifact, each with the reason."""
    contents = [(file, content_of(file.key)) for file in files]
    reasons = await registry.strays([content for _, content in contents if content])
    strays = ((file, reasons.get(content) if content else "unknown") for file, content in contents)
    return [(file, reason) for file, reason in strays if reason]
