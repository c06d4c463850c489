"""What must be true of storage, whatever has happened to it meanwhile."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import func, select

from bus_schema.envelope import Envelope
from bus_schema.storage import ArtifactRegistered
from bus_schema.storage_maintenance import AuditPage
from storage_service.blobs import ContentGeneration
from storage_service.maintenance.manifest_copies import copy_key
from storage_service.s3_objects import S3Objects
from storage_service.tables import ManifestRow, inbox_tables
from tests.busy_agents import Work
from tests.maintenance_kit import Keeper, counts
from tests.seaweed import Place
from tests.storage_kit import Depot

WAITING_TABLES = ("outbox", "spent_uploads", "removals", "notices")
_EVERYTHING = 1_000_000


async def nothing_waits(depot: Depot) -> bool:
    """Whether all that was committed has been told, copied, cleaned."""
    unmarked = select(func.count()).select_from(inbox_tables.inbox).where(~inbox_tables.inbox.c.published)
    async with depot.database.reading() as session:
        if await session.scalar(unmarked):
            return False
    return not any([await depot.rows(table) for table in WAITING_TABLES])


async def require_artifacts(depot: Depot, works: Mapping[str, Work]) -> Sequence[ManifestRow]:
    """Each work is an artifact, nothing else is one."""
    async with depot.database.reading() as session:
        rows = (await session.scalars(select(ManifestRow))).all()
    assert {row.id for row in rows} == works.keys()
    for row in rows:
        work = works[row.id]
        ref = work.ref
        assert (row.version, row.sha256, row.size_bytes) == (ref.version, ref.sha256, ref.size_bytes), row.id
        assert (row.owner, row.supersedes, row.expired_at) == (work.owner, work.supersedes, None), row.id
    return rows


def require_told_once(heard: Collection[Envelope], artifacts: Collection[str]) -> None:
    """One event for each artifact; sent twice, it has the same id, by which whoever hears it knows it."""
    told: dict[str, set[str]] = defaultdict(set)
    for envelope in heard:
        told[ArtifactRegistered.model_validate(envelope.data).artifact.artifact_id].add(envelope.id)
    assert told.keys() == set(artifacts)
    assert [artifact_id for artifact_id, ids in told.items() if len(ids) > 1] == []


async def require_bytes(keeper: Keeper, artifacts: int) -> int:
    """An audit that reads everything anew finds nothing to complain of; how many bytes it has read."""
    pages: list[AuditPage] = []
    while not pages or pages[-1].next_cursor:
        pages.append(await keeper.audit(cursor=pages[-1].next_cursor if pages else None, limit=1000, rehash=True))
        assert (pages[-1].missing, pages[-1].damaged, pages[-1].restored) == ((), (), ())
        assert pages[-1].copies_written == 0
    assert sum(page.checked for page in pages) == artifacts
    return sum(page.hashed_bytes for page in pages)


async def require_no_garbage(keeper: Keeper, place: Place, rows: Sequence[ManifestRow]) -> dict[str, int]:
    """Once time has passed, there is nothing in the store but what belongs to an artifact; what was collected."""
    collected: dict[str, int] = defaultdict(int)
    for passes in (timedelta(hours=25), timedelta(days=9)):
        keeper.depot.clock.now += passes
        report = await keeper.collect(max_objects=_EVERYTHING)
        assert report.is_complete
        assert not report.expired.count
        for kind, count in counts(report).items():
            collected[kind] += count
        collected["temporary"] += report.temporary
    expected = {ContentGeneration(row.sha256, row.generation).key for row in rows} | {copy_key(row.id) for row in rows}
    bucket = place.bucket()
    found = {stored.key async for stored in S3Objects(bucket).list("")}
    assert (found - expected, expected - found) == (set(), set())
    assert "Uploads" not in await bucket.run(bucket.call("list_multipart_uploads", Prefix=bucket.path("")))
    return dict(collected)
