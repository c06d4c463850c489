"""The doubles promise what the real things promise: the same questions, asked of both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.envelope import Envelope, Kind
from mindbus.bus.transport import Outgoing, RawCopy
from mindbus.errors import TemporaryFailure
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from storage_service.blobs import ContentGeneration
from storage_service.errors import Forked
from storage_service.maintenance.registry import MaintenanceRegistry, Removal
from storage_service.maintenance.sql_registry import SqlMaintenanceRegistry
from storage_service.registry import Overtaken, PinLost, Prepared, Registry, SqlRegistry
from tests.crashes.gates import OpenGates
from tests.crashes.memory_database import Connection, MemoryDatabase
from tests.crashes.memory_inbox import OutboxInbox
from tests.crashes.memory_maintenance import MemoryCareRegistry
from tests.crashes.memory_registry import MemoryRegistry
from tests.crashes.storages import Clock, RelayingInbox
from tests.crashes.uploads import an_upload

DAY = timedelta(days=1)


@dataclass
class Rows:
    registry: Registry
    care: MaintenanceRegistry
    inbox: RelayingInbox
    clock: Clock

    @asynccontextmanager
    async def message(self, message_id: str | None = None) -> AsyncIterator[None]:
        async with self.inbox.unit_of_work("storage") as unit:
            yield
            if message_id is not None:
                await unit.record({message_id: ()})

    async def pin(self) -> int:
        return (await self.registry.pin([SHA256]))[SHA256].generation

    async def find(self, artifact_id: str) -> Manifest | None:
        return (await self.registry.find([artifact_id])).get(artifact_id)

    async def commit(self, manifest: Manifest, upload: str = "staging/1") -> int:
        generation = (await self.registry.pin([manifest.sha256]))[manifest.sha256].generation
        async with self.message():
            await self.insert(manifest, manifest.id, generation, upload)
        return generation

    async def insert(self, manifest: Manifest, logical_id: str, generation: int, upload: str) -> None:
        (answer,) = await self.registry.commit([Prepared(manifest, upload, logical_id, generation)])
        if isinstance(answer, Exception):
            raise answer

    async def retire(self, sha256: str, generation: int) -> bool:
        return await self.care.retire(removal_of(sha256, generation), self.clock() - DAY)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.backends)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """None is the double."""
    if request.param == "memory":
        return None
    url: str = request.getfixturevalue(f"{request.param}_database_of")("storage")
    return url


@pytest.fixture
async def rows(database_url: str | None) -> AsyncIterator[Rows]:
    clock = Clock()
    if database_url is None:
        connection = Connection(MemoryDatabase(), OpenGates(asyncio.get_running_loop(), lambda: None))
        yield Rows(
            MemoryRegistry(connection, clock), MemoryCareRegistry(connection, clock), OutboxInbox(connection), clock
        )
        return
    database = Database(database_url, "storage")
    yield Rows(SqlRegistry(database, clock), SqlMaintenanceRegistry(database, clock, {}), SqlInbox(database), clock)
    await database.dispose()


def a_manifest(artifact_id: str = "art_1", retention: str = "infinite", **changes: Any) -> Manifest:
    upload = an_upload(artifact_id, "agent.researcher.1", "msg_1", "0", b"findings", retention)
    return upload.manifest.model_copy(update=changes)


SHA256 = a_manifest().sha256


def removal_of(sha256: str, generation: int) -> Removal:
    content = ContentGeneration(sha256, generation)
    return Removal(content.key, f"orphans/2026-03-14/{content.key}", "unused", 8, content)


def a_reply(message_id: str) -> Outgoing:
    envelope = Envelope(
        id=f"reply to {message_id}".replace(" ", "_"),
        source="/mb/storage/1",
        type="mb.rpl.storage.register_artifact.v1",
        time=Clock().now,
        correlationid=message_id,
        mbkind=Kind.REPLY,
        mbrequester="svc.storage",
    )
    return Outgoing("mb.reply", "reply.test.1", envelope, envelope.to_wire())


class PowerCut(Exception):
    """In the middle of a transaction."""


class Listening:
    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def publish(self, message: Outgoing | RawCopy) -> None:
        self.heard.append(message.body)


async def test_a_pin_keeps_its_generation_until_it_is_condemned(rows: Rows) -> None:
    assert [await rows.pin(), await rows.pin()] == [1, 1]
    assert not await rows.retire(SHA256, 1)

    rows.clock.now += DAY + timedelta(hours=2)

    assert not await rows.retire(SHA256, 2)
    assert await rows.retire(SHA256, 1)
    assert not await rows.retire(SHA256, 1)
    assert await rows.pin() == 2


async def test_what_is_committed_is_told_under_its_permanent_key(rows: Rows) -> None:
    manifest = a_manifest()

    assert await rows.commit(manifest) == 1

    key = ContentGeneration(SHA256, 1).key
    told = manifest.model_copy(update={"uri": key, "status": "completed"})
    assert await rows.find("art_1") == told
    assert not await rows.registry.has_expired("art_1")
    copied = (await rows.registry.copies_of(["art_1"]))["art_1"]
    assert (copied.manifest, copied.generation, copied.logical_id) == (told, 1, "art_1")
    assert [(spent.upload, spent.artifact_id) for spent in await rows.registry.spent_uploads(9)] == [
        ("staging/1", "art_1")
    ]
    await rows.registry.forget_uploads(["staging/1"])
    assert list(await rows.registry.spent_uploads(9)) == []


async def test_nobody_sees_what_is_not_committed_nor_ever_what_failed(rows: Rows) -> None:
    generation = await rows.pin()

    with suppress(PowerCut):
        async with rows.message("msg_1"):
            await rows.insert(a_manifest(), "art_1", generation, "staging/1")
            assert await rows.find("art_1") is None
            raise PowerCut

    assert await rows.find("art_1") is None
    assert list(await rows.registry.spent_uploads(9)) == []
    assert await rows.inbox.outcomes_of("storage", ["msg_1"]) == {}


async def test_a_commit_names_a_generation_that_is_pinned(rows: Rows) -> None:
    await rows.pin()
    rows.clock.now += DAY + timedelta(hours=2)
    await rows.retire(SHA256, 1)

    with pytest.raises(PinLost):
        async with rows.message():
            await rows.insert(a_manifest(), "art_1", 1, "staging/1")
    assert await rows.commit(a_manifest()) == 2


async def test_an_id_is_taken_once_a_version_superseded_once(rows: Rows) -> None:
    await rows.commit(a_manifest())
    with pytest.raises(Overtaken):
        await rows.commit(a_manifest())
    async with rows.message():
        next_one = a_manifest("art_2", version=2, supersedes="art_1")
        await rows.insert(next_one, "art_1", 1, "staging/2")

    other = a_manifest("art_3", version=2, supersedes="art_1")
    with pytest.raises(Forked):
        async with rows.message():
            await rows.insert(other, "art_1", 1, "staging/3")


async def test_bytes_are_unused_once_no_artifact_has_them_nor_a_pin(rows: Rows) -> None:
    await rows.commit(a_manifest())
    await rows.commit(a_manifest("art_2", "1d"))
    rows.clock.now += 2 * DAY

    due = await rows.care.due(0, 9)
    assert [each.artifact_id for each in due] == ["art_2"]
    assert [await rows.care.expire(due[0]), await rows.care.expire(due[0])] == [True, False]
    assert await rows.registry.has_expired("art_2")
    assert [each.artifact_id for each in await rows.care.stored_artifacts(0, 9)] == ["art_1"]
    assert list(await rows.care.unused_contents(rows.clock() - DAY, "", 9)) == []
    assert not await rows.retire(SHA256, 1)

    told = await rows.care.notices(9)
    assert [(notice.event.wire.type, notice.trace_id) for notice in told] == [("mb.evt.artifact.expired.v1", "run_1")]
    async with rows.message():
        await rows.care.delete_notifications([notice.seq for notice in told])
    assert list(await rows.care.notices(9)) == []


async def test_an_artifact_that_is_due_does_not_hold_its_bytes(rows: Rows) -> None:
    await rows.commit(a_manifest("art_1", "1d"))
    rows.clock.now += 2 * DAY

    assert [each.content for each in await rows.care.unused_contents(rows.clock() - DAY, "", 9)] == [
        ContentGeneration(SHA256, 1)
    ]
    assert list(await rows.care.unused_contents(rows.clock() - DAY, SHA256, 9)) == []
    # Not before it has expired, though.
    assert not await rows.retire(SHA256, 1)
    await rows.care.expire((await rows.care.due(0, 9))[0])
    assert await rows.retire(SHA256, 1)


async def test_a_removal_is_finished_once_frees_its_generation_alone(rows: Rows) -> None:
    await rows.pin()
    rows.clock.now += DAY + timedelta(hours=2)
    await rows.retire(SHA256, 1)
    assert [removal.key for removal in await rows.care.removals(9)] == [ContentGeneration(SHA256, 1).key]

    await rows.care.finish(removal_of(SHA256, 1), is_there=True)
    await rows.care.finish(removal_of(SHA256, 1), is_there=True)

    assert list(await rows.care.removals(9)) == []
    assert [notice.event.wire.type for notice in await rows.care.notices(9)] == ["mb.evt.artifact.orphaned.v1"]
    assert await rows.commit(a_manifest()) == 2
    # A collector that overslept ends the removal of the old generation again.
    await rows.care.finish(removal_of(SHA256, 1), is_there=False)
    assert await rows.pin() == 2
    assert len(await rows.care.notices(9)) == 1


async def test_a_stray_belongs_to_nobody_and_never_will(rows: Rows) -> None:
    contents = [ContentGeneration(SHA256, generation) for generation in (1, 2)]
    assert await rows.care.strays(contents) == dict.fromkeys(contents, "unknown")

    await rows.pin()
    assert await rows.care.strays(contents) == {}
    assert not await rows.care.remove_stray(removal_of(SHA256, 1))
    rows.clock.now += DAY + timedelta(hours=2)
    await rows.retire(SHA256, 1)
    await rows.care.finish(removal_of(SHA256, 1), is_there=False)
    assert await rows.care.strays(contents) == {contents[0]: "unused", contents[1]: "unknown"}

    assert await rows.care.remove_stray(removal_of(SHA256, 2))
    assert not await rows.care.remove_stray(removal_of(SHA256, 2))
    assert await rows.commit(a_manifest()) == 3
    assert await rows.care.strays(contents) == dict.fromkeys(contents, "outdated")


async def test_an_upload_is_given_up_where_no_artifact_was_made_from_it(rows: Rows) -> None:
    await rows.commit(a_manifest(), upload="staging/1")
    assert set(await rows.care.unspent({"staging/1", "staging/2"})) == {"staging/2"}

    first, second = (Removal(f"staging/{n}", f"orphans/staging/{n}", "unregistered", 8) for n in (1, 2))
    assert [await rows.care.give_up(first), await rows.care.give_up(second)] == [False, True]
    assert not await rows.care.give_up(second)
    await rows.care.finish(second, is_there=False)
    assert list(await rows.care.notices(9)) == []


async def test_a_message_is_recorded_once_its_outcome_is_published_as_it_was(rows: Rows) -> None:
    reply = a_reply("msg_1")
    async with rows.inbox.unit_of_work("storage") as unit:
        await unit.record({"msg_1": [reply]})
    with pytest.raises(TemporaryFailure):
        async with rows.inbox.unit_of_work("storage") as unit:
            await unit.record({"msg_1": [a_reply("msg_2")]})

    known = await rows.inbox.outcomes_of("storage", ["msg_1"])
    assert [message.body for message in known["msg_1"]] == [reply.body]
    listening = Listening()
    await rows.inbox.relay(listening)  # type: ignore[arg-type]  # it only listens
    await rows.inbox.relay(listening)  # type: ignore[arg-type]
    assert listening.heard == [reply.body]


async def test_marks_and_holdings_are_kept(rows: Rows) -> None:
    assert await rows.care.mark("collected") is None
    await rows.care.set_progress("collected", "1")
    await rows.care.set_progress("collected", "2")
    await rows.commit(a_manifest())

    assert await rows.care.mark("collected") == ("2", rows.clock())
    assert await rows.care.artifact_count() == 1
    assert set(await rows.care.unknown_artifacts({"art_1", "art_2"})) == {"art_2"}
