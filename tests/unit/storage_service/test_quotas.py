"""Quotas of a fleet: what its artifacts weigh together, what models cost on a day."""

from datetime import date, timedelta

import pytest

from bus_schema.ids import mint
from bus_schema.model_calls import CallUsage, GetTokensToday, ModelCall, RecordModelCall
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact, RegisterArtifact, RegisterArtifacts
from mindbus.errors import Rejected
from mindbus.testing import deliver
from storage_service.maintenance.survey import MaintenanceRules
from tests.storage_kit import ON_FILES, RESEARCHER, Depot, OpenDepot

ROOM_FOR_TWO = MaintenanceRules(quota_bytes=250)


@ON_FILES
async def test_what_would_go_over_the_quota_is_refused_and_leaves_nothing(open_depot: OpenDepot) -> None:
    depot = open_depot(rules=ROOM_FOR_TWO)
    await depot.handle(RegisterArtifact(manifest=depot.manifest(b"a" * 200)))
    too_much = depot.manifest(b"b" * 100)

    with pytest.raises(Rejected) as refused:
        await depot.handle(RegisterArtifact(manifest=too_much))

    assert (refused.value.code, refused.value.details["quota_bytes"]) == (Code.TOO_LARGE, 250)
    with pytest.raises(Rejected):
        await depot.handle(GetArtifact(artifact_id=too_much.id))
    await depot.handle(RegisterArtifact(manifest=depot.manifest(b"c" * 50)))


@ON_FILES
async def test_of_several_those_that_there_is_room_for_are_kept(open_depot: OpenDepot) -> None:
    depot = open_depot(rules=ROOM_FOR_TWO)
    manifests = [depot.manifest(letter * 100) for letter in (b"a", b"b", b"c")]

    report = await depot.handle(RegisterArtifacts(manifests=tuple(manifests)))

    assert [item.status for item in report.items] == ["registered", "registered", "refused"]


@ON_FILES
async def test_a_registration_that_is_repeated_takes_no_room(open_depot: OpenDepot) -> None:
    depot = open_depot(rules=ROOM_FOR_TWO)
    manifest = depot.manifest(b"a" * 200)

    for _ in range(3):
        await depot.handle(RegisterArtifact(manifest=manifest))


@ON_FILES
async def test_what_is_stored_already_counts_after_a_restart(open_depot: OpenDepot) -> None:
    before = open_depot(rules=ROOM_FOR_TWO)
    await before.handle(RegisterArtifact(manifest=before.manifest(b"a" * 200)))

    after = open_depot(rules=ROOM_FOR_TWO)
    with pytest.raises(Rejected, match="quota"):
        await after.handle(RegisterArtifact(manifest=after.manifest(b"b" * 100)))


@ON_FILES
async def test_tokens_count_beyond_the_quota_of_bytes_too(open_depot: OpenDepot) -> None:
    depot = open_depot(rules=ROOM_FOR_TWO)
    await depot.handle(RegisterArtifact(manifest=depot.manifest(b"a" * 250)))
    usage = CallUsage(model_name="small", prompt_tokens=100)
    call = ModelCall(**dict(usage), called_at=depot.clock(), caller="svc.critic", prompt=())

    await depot.handle(RecordModelCall(call_id=mint("art"), cost=usage, call=call), "svc.critic")

    assert (await depot.handle(GetTokensToday())).tokens == 100
    assert [staged.size_bytes async for staged in depot.storage.blobs.listing("staging")] == [250]


@pytest.mark.parametrize("service", ["client", "cli", "gateway"])
async def test_people_record_no_calls_of_models_for_the_fleet(depot: Depot, service: str) -> None:
    call = RecordModelCall(call_id=mint("art"), cost=CallUsage(model_name="x", prompt_tokens=10**9))

    delivered = await deliver(depot.worker, call, by="user.mallory", source=f"/mb/{service}/1")

    assert isinstance(delivered.error, Rejected)
    assert (await depot.handle(GetTokensToday())).tokens == 0


async def test_tokens_of_a_day_are_added_up_whoever_has_used_them(depot: Depot) -> None:
    def used(tokens: int) -> RecordModelCall:
        return RecordModelCall(call_id=mint("art"), cost=CallUsage(model_name="small", prompt_tokens=tokens))

    for tokens, who in ((100, "svc.critic"), (20, RESEARCHER), (0, RESEARCHER)):
        await depot.handle(used(tokens), who)
    today = await depot.handle(GetTokensToday())
    depot.clock.now += timedelta(days=1)
    tomorrow = await depot.handle(GetTokensToday())
    await depot.handle(used(7))

    assert (today.day, today.tokens) == (depot.clock().date() - timedelta(days=1), 120)
    assert (tomorrow.day, tomorrow.tokens) == (depot.clock().date(), 0)
    assert (await depot.handle(GetTokensToday())).tokens == 7
    assert isinstance(today.day, date)
