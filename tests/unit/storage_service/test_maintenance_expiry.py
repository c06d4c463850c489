"""Artifacts expire when the first of three clocks has run out, but never while their process runs."""

from datetime import timedelta

import pytest

from bus_schema.artifacts import NotAPolicy, retention_policy
from bus_schema.process import ProcessCancelled, ProcessCompleted, ProcessFailed
from bus_schema.replies import Code
from bus_schema.run_control import ProcessRetried
from bus_schema.storage import GetLineage, GetVersions, RegisterArtifact, SearchArtifacts, SetTraceMembers
from bus_schema.storage_maintenance import ArtifactExpired, ArtifactOrphaned
from mindbus.errors import Rejected
from mindbus.testing import run_task
from storage_service.maintenance.manifest_copies import ManifestCopy, copy_key
from storage_service.maintenance.survey import MaintenanceRules
from tests.maintenance_kit import CONTENT, Keeper, counts
from tests.storage_kit import ORCHESTRATOR, RESEARCHER, TRACE, Depot, OpenDepot

DRAFTS_A_WEEK = MaintenanceRules(retention={"draft": timedelta(days=7)})


@pytest.fixture
def keeper(depot: Depot) -> Keeper:
    return Keeper(depot)


async def begin(keeper: Keeper, retention: str | None = None) -> None:
    """A process begins."""
    members = SetTraceMembers(trace_id=TRACE, members=(RESEARCHER,), retention=retention)
    await keeper.depot.handle(members, ORCHESTRATOR)


async def end(keeper: Keeper) -> None:
    await keeper.hear(ProcessFailed(run_id=TRACE, reason="enough"))


async def reasons(keeper: Keeper) -> dict[str, str]:
    return {
        event.artifact.artifact_id: event.reason for event in await keeper.told() if isinstance(event, ArtifactExpired)
    }


async def test_an_artifact_expires_when_its_own_retention_is_over(keeper: Keeper) -> None:
    mine = await keeper.depot.put(CONTENT, retention="3d")
    kept = await keeper.depot.put(b"for ever")

    assert counts(await keeper.orphaned_after(days=2, hours=23)) == {}
    report = await keeper.orphaned_after(hours=2)

    assert [(example.key, example.reason) for example in report.expired.examples] == [(mine, "own")]
    assert await keeper.artifacts() == [kept]
    assert await reasons(keeper) == {mine: "own"}


async def test_an_artifact_expires_when_the_operator_lets_its_type_expire(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=DRAFTS_A_WEEK))
    draft = await keeper.depot.put(b"draft", artifact_type="draft")
    final = await keeper.depot.put(b"final", artifact_type="final")

    assert counts(await keeper.orphaned_after(days=6)) == {}
    await keeper.orphaned_after(days=2)

    assert await keeper.artifacts() == [final]
    assert await reasons(keeper) == {draft: "type"}


async def test_the_earliest_of_all_limits_counts(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=DRAFTS_A_WEEK))
    await begin(keeper, retention="30d")
    sooner = await keeper.depot.put(b"1", artifact_type="draft", retention="2d")
    later = await keeper.depot.put(b"2", artifact_type="draft", retention="90d")
    last = await keeper.depot.put(b"3", artifact_type="final", retention="90d")
    await end(keeper)

    await keeper.orphaned_after(days=3)
    assert await reasons(keeper) == {sooner: "own"}
    await keeper.orphaned_after(days=5)
    assert await reasons(keeper) == {later: "type"}
    await keeper.orphaned_after(days=23)
    assert await reasons(keeper) == {last: "process"}


async def test_a_process_that_still_runs_keeps_its_artifacts(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=DRAFTS_A_WEEK))
    await begin(keeper, retention="1d")
    mine = await keeper.depot.put(CONTENT, artifact_type="draft", retention="1d")
    other = await keeper.depot.put(CONTENT, artifact_type="draft", trace_id="run_2")

    await keeper.orphaned_after(days=30)
    assert await reasons(keeper) == {other: "type"}
    assert keeper.depot.content_of(await keeper.depot.get(mine)) == CONTENT

    await end(keeper)
    await keeper.collect()
    assert await reasons(keeper) == {mine: "own"}


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled"])
async def test_the_retention_of_a_process_counts_from_its_end(keeper: Keeper, how: str) -> None:
    await begin(keeper, retention="7d")
    mine = await keeper.depot.put(CONTENT)
    manifest = await keeper.depot.get(mine)
    keeper.depot.clock.advance(days=100)

    endings = {
        "completed": ProcessCompleted(run_id=TRACE, result=manifest.ref),
        "failed": ProcessFailed(run_id=TRACE, reason="no"),
        "cancelled": ProcessCancelled(run_id=TRACE, reason="no", cancelled_by="user.ann"),
    }
    await keeper.hear(endings[how])
    assert counts(await keeper.orphaned_after(days=6)) == {}
    await keeper.orphaned_after(days=1)

    assert await reasons(keeper) == {mine: "process"}


async def test_hearing_of_an_end_again_changes_nothing(keeper: Keeper) -> None:
    await begin(keeper, retention="7d")
    await keeper.depot.put(CONTENT)
    time = keeper.depot.clock()
    for _ in range(2):
        await keeper.hear(ProcessFailed(run_id=TRACE, reason="enough"), time)
        keeper.depot.clock.advance(days=5)
    keeper.depot.clock.advance(days=-5)

    report = await keeper.orphaned_after(days=2)

    assert counts(report)["expired"] == 1


async def test_a_run_that_is_retried_keeps_its_artifacts_until_it_ends_again(keeper: Keeper) -> None:
    await begin(keeper, retention="7d")
    mine = await keeper.depot.put(CONTENT)
    await end(keeper)
    keeper.depot.clock.advance(days=6)
    await keeper.hear(ProcessRetried(run_id=TRACE, steps=("draft",), retried_by="user.ann"))

    assert counts(await keeper.orphaned_after(days=30)) == {}
    await end(keeper)
    assert counts(await keeper.orphaned_after(days=6)) == {}
    await keeper.orphaned_after(days=1)

    assert await reasons(keeper) == {mine: "process"}


async def test_a_retry_that_is_heard_late_undoes_no_end_that_came_after_it(keeper: Keeper) -> None:
    await begin(keeper, retention="7d")
    mine = await keeper.depot.put(CONTENT)
    await end(keeper)
    keeper.depot.clock.advance(days=1)
    retried_at = keeper.depot.clock()
    keeper.depot.clock.advance(hours=1)
    await end(keeper)
    await keeper.hear(ProcessRetried(run_id=TRACE, steps=("draft",), retried_by="user.ann"), retried_at)

    assert counts(await keeper.orphaned_after(days=6)) == {}
    await keeper.orphaned_after(days=1)

    assert await reasons(keeper) == {mine: "process"}


async def test_a_list_that_comes_after_the_end_opens_nothing_again(keeper: Keeper) -> None:
    await end(keeper)
    await begin(keeper, retention="1d")
    await keeper.depot.put(CONTENT)

    report = await keeper.orphaned_after(days=2)

    assert counts(report)["expired"] == 1


async def test_a_process_without_retention_keeps_its_artifacts_for_ever(keeper: Keeper) -> None:
    await begin(keeper)
    await keeper.depot.put(CONTENT)
    await end(keeper)

    assert counts(await keeper.orphaned_after(days=3650)) == {}


async def test_what_has_expired_looks_as_if_it_had_never_been(keeper: Keeper) -> None:
    mine = await keeper.depot.put(CONTENT, retention="1d")
    await keeper.orphaned_after(days=2)

    for query in (GetVersions(artifact_id=mine), GetLineage(artifact_id=mine)):
        with pytest.raises(Rejected) as no:
            await keeper.depot.handle(query)
        assert no.value.code is Code.NOT_FOUND
    with pytest.raises(Rejected) as no:
        await keeper.depot.get(mine)
    assert no.value.code is Code.NOT_FOUND
    assert (await keeper.depot.handle(SearchArtifacts())).items == ()


@pytest.mark.parametrize("content", [CONTENT, b"others"])
async def test_the_id_of_what_has_expired_stays_taken(keeper: Keeper, content: bytes) -> None:
    mine = await keeper.depot.put(CONTENT, retention="1d")
    await keeper.orphaned_after(days=2)

    with pytest.raises(Rejected) as no:
        await keeper.depot.handle(RegisterArtifact(manifest=keeper.depot.manifest(content, id=mine)))

    assert no.value.code is Code.CONFLICT


async def test_lineage_goes_on_behind_what_has_expired(keeper: Keeper) -> None:
    source = await keeper.depot.put(b"source", retention="1d")
    made = await keeper.depot.put(b"made", context={"input_artifacts": [source]})

    await keeper.orphaned_after(days=2)

    lineage = await keeper.depot.handle(GetLineage(artifact_id=made))
    assert [node.id for node in lineage.nodes] == [made]
    assert await keeper.depot.rows("artifact_inputs") == 1


async def test_bytes_that_several_artifacts_have_go_with_the_last_of_them(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT, retention="2d")
    last = await keeper.depot.put(CONTENT, retention="9d")

    assert counts(await keeper.orphaned_after(days=3)) == {"expired": 1}
    assert keeper.depot.content_of(await keeper.depot.get(last)) == CONTENT
    assert counts(await keeper.orphaned_after(days=7)) == {"expired": 1, "unused": 1}


async def test_that_bytes_are_orphaned_is_told_after_that_their_artifact_has_expired(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT, retention="1d")
    await keeper.depot.worker.maintenance.clean()
    await keeper.orphaned_after(days=2)

    assert [type(event) for event in await keeper.told()] == [ArtifactExpired, ArtifactOrphaned]


async def test_the_store_remembers_that_an_artifact_has_expired(keeper: Keeper) -> None:
    mine = await keeper.depot.put(CONTENT, retention="1d")
    await keeper.depot.worker.maintenance.clean()
    await keeper.orphaned_after(days=2)
    await keeper.told()

    copied = ManifestCopy.from_bytes(await keeper.depot.storage.blobs.read(copy_key(mine)))

    assert copied.expired_at == keeper.depot.clock()


async def test_an_expiry_is_told_in_the_trace_of_its_artifact(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT, retention="1d", step_id="research")
    await keeper.orphaned_after(days=2)

    told = (await run_task(keeper.depot.worker, "publish_notices")).outgoing

    expired = [each.envelope for each in told if each.envelope.type == ArtifactExpired.wire.type]
    assert [(envelope.mbtraceid, envelope.mbstepid) for envelope in expired] == [(TRACE, "research")]


def test_the_operators_policy_is_read_by_type() -> None:
    assert retention_policy("draft=30d, critique=7d,final=infinite,") == {
        "draft": timedelta(days=30),
        "critique": timedelta(days=7),
    }
    assert retention_policy("") == {}


@pytest.mark.parametrize(
    "wrong", ["draft", "draft=", "draft=soon", "draft=-1d", "=3d", "Draft=3d", "draft=3d,draft=4d"]
)
def test_a_policy_that_cannot_be_read_is_refused_clearly(wrong: str) -> None:
    with pytest.raises(NotAPolicy, match="draft=30d"):
        retention_policy(wrong)
