"""The global memory's handlers, called as functions on a real database; vectors follow as they do in the fleet."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.data import ClearData, DeleteUser
from bus_schema.embeddings import Embedding
from bus_schema.glm import (
    BatchReport,
    BatchStoreKems,
    CheckMemory,
    DeleteKem,
    GetMemoryStats,
    KemDeleted,
    KemPage,
    KemStored,
    KemUpdated,
    MemoryReport,
    MemoryStats,
    Reindex,
    ReindexProgress,
    RetrieveKems,
    StoreKem,
    UpdateKem,
)
from bus_schema.kem import Kem
from bus_schema.messages import Command, Event
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.glm.service import database_of, open_memory
from memory.vectors.index import IndexAway, IndexRefused
from mindbus import Rejected
from mindbus.bus.connection import open_transport
from mindbus.bus.worker import utc_now
from mindbus.runtime.service import build
from mindbus.tasks import end
from mindbus.testing import deliver, run_task
from mindbus.testing.wait import until
from mindbus_fleet.cli.service_checks import vectors_of_glm
from retrieval.embedding.e5 import MODEL
from tests.fleets import settings_for
from tests.installed import FLEET
from tests.memory_kit import SPACE, a_draft, a_vector
from tests.postgres import DatabaseOf
from tests.qdrant_server import QdrantServer
from workers.glm.worker import GlmWorker
from workers.kem_drafts import drafts_of

RESEARCHER, CRITIC, ANNA, OPERATOR = "agent.researcher.1", "agent.critic.1", "user.anna", "user.local"
EAST, NORTH = a_vector(1, 0, 0, 0), a_vector(0, 1, 0, 0)


class Desk:
    """Hands the global memory what it hears, keeps what it tells."""

    def __init__(self, worker: GlmWorker) -> None:
        self.worker = worker
        self.source = "/mb/test/1"
        self.told: list[Event] = []

    async def hear(self, message: Command[Any], by: str = RESEARCHER) -> Any:
        """The result, once its transaction is committed."""
        delivered = await deliver(self.worker, message, by=by, source=self.source)
        self.told = list(delivered.published)
        return delivered.result

    async def store(self, by: str = RESEARCHER, **fields: Any) -> Kem:
        kem = await self.hear(StoreKem(kem=a_draft(**fields)), by)
        assert isinstance(kem, Kem)
        return kem

    async def page(self, by: str = RESEARCHER, **wanted: Any) -> KemPage:
        page = await self.hear(RetrieveKems.model_validate({"query": {}} | wanted), by)
        assert isinstance(page, KemPage)
        return page

    async def found(self, by: str = RESEARCHER, **query: Any) -> list[str]:
        return [item.kem.id for item in (await self.page(by, query=query)).items]

    async def report(self) -> MemoryReport:
        report = await self.hear(CheckMemory(), OPERATOR)
        assert isinstance(report, MemoryReport)
        return report


@pytest.fixture
def settings(tmp_path: Path, database_of: DatabaseOf) -> FleetSettings:
    space = {"embedding_model": SPACE.model, "embedding_dim": SPACE.dim}
    return settings_for(f"memory://{tmp_path}", tmp_path, glm_database_url=database_of("glm"), **space)


@pytest.fixture
async def desk(settings: FleetSettings) -> AsyncIterator[Desk]:
    async with desk_of(settings) as opened:
        yield opened


@asynccontextmanager
async def desk_of(settings: FleetSettings) -> AsyncIterator[Desk]:
    transport = open_transport(settings, "glm")
    worker = build(FLEET["glm"], "glm", settings, transport).worker
    assert isinstance(worker, GlmWorker)
    await worker.start()
    clockwork = [asyncio.create_task(for_ever(tick)) for tick in (worker.sync_index, worker.embed)]
    yield Desk(worker)
    await end(*clockwork)
    await worker.stop()
    await transport.close()


async def for_ever(tick: Callable[[], Awaitable[None]]) -> None:
    while True:
        await tick()
        await asyncio.sleep(0)


async def refusal(desk: Desk, command: Command[Any], by: str = CRITIC) -> tuple[Code, str]:
    with pytest.raises(Rejected) as no:
        await desk.hear(command, by)
    return no.value.code, str(no.value)


async def test_a_stored_unit_is_answered_told_and_found(desk: Desk) -> None:
    kem = await desk.store(content="Релиз перенесли на пятницу.", metadata={"project_id": "apollo"})

    (told,) = desk.told
    assert isinstance(told, KemStored)
    assert (told.kem_id, told.version, told.metadata, told.kem) == (kem.id, 1, {"project_id": "apollo"}, None)
    assert kem.owner == "agent.researcher"
    assert await desk.found(CRITIC, metadata_filters={"project_id": "apollo"}) == [kem.id]


@pytest.mark.parametrize("visibility", ["private", "readers"])
async def test_all_may_hear_of_a_unit_that_is_not_public_that_it_is_there_no_more(desk: Desk, visibility: str) -> None:
    kem = await desk.store(visibility=visibility, metadata={"secret": "yes"})

    (told,) = desk.told
    assert json.loads(told.model_dump_json()) == {
        "kem_id": kem.id,
        "version": 1,
        "updated_at": kem.model_dump(mode="json")["updated_at"],
        "visibility": visibility,
        "metadata": {},
        "kem": None,
    }


async def test_a_batch_is_answered_unit_by_unit(desk: Desk) -> None:
    theirs = await desk.store(by=CRITIC, id="theirs", content="whole", visibility="private")
    drafts = (
        a_draft("one", id="a", embeddings=EAST),
        a_draft("taken", id="theirs"),
        a_draft("wrong", id="b", embeddings=Embedding.of("other", [1.0, 2.0])),
        a_draft("two", id="a", embeddings=NORTH),
    )

    report = await desk.hear(BatchStoreKems(kems=drafts))

    assert isinstance(report, BatchReport)
    assert [(item.kem_id, item.status, item.version, item.code) for item in report.items] == [
        ("a", "stored", 1, None),
        ("theirs", "refused", None, Code.CONFLICT),
        ("b", "refused", None, Code.INVALID),
        ("a", "replaced", 2, None),
    ]
    assert [(type(event), getattr(event, "kem_id", None), getattr(event, "version", None)) for event in desk.told] == [
        (KemStored, "a", 2)
    ]
    assert (await desk.page(CRITIC, query={"ids": ["theirs"]})).items[0].kem == theirs


async def test_vectors_follow_what_is_committed(desk: Desk) -> None:
    east = await desk.store(embeddings=EAST)
    north = await desk.store(embeddings=NORTH, visibility="private")

    page = await desk.page(query={"embedding_query": EAST.model_dump()}, page_size=1, explain=True)

    assert [item.kem.id for item in page.items] == [east.id]
    assert page.items[0].score == pytest.approx(1)
    assert page.items[0].explain is not None
    following = await desk.page(query={"embedding_query": EAST.model_dump()}, page_size=1, cursor=page.next_cursor)
    assert [item.kem.id for item in following.items] == [north.id]
    assert (following.items[0].explain, following.next_cursor) == (None, None)
    assert await desk.report() == MemoryReport(kems=2, with_vector=2, vectors=2, waiting=0)


async def test_a_cursor_of_another_question_is_refused(desk: Desk) -> None:
    for _ in range(2):
        await desk.store(embeddings=EAST)
    ranked = await desk.page(query={"embedding_query": EAST.model_dump()}, page_size=1)
    sorted_ = await desk.page(page_size=1)

    for query, cursor in (
        ({"embedding_query": NORTH.model_dump()}, ranked.next_cursor),
        ({}, ranked.next_cursor),
        ({"embedding_query": EAST.model_dump()}, sorted_.next_cursor),
        ({"embedding_query": EAST.model_dump()}, "nonsense"),
    ):
        command = RetrieveKems.model_validate({"query": query, "cursor": cursor})
        assert (await refusal(desk, command))[0] is Code.INVALID


async def test_of_a_hidden_unit_there_is_no_word_on_any_path(desk: Desk) -> None:
    hidden = await desk.store(visibility="private", embeddings=EAST, metadata={"k": "v"}, id="hidden")
    shown = await desk.store(embeddings=NORTH, metadata={"k": "v"})
    near = {"embedding_query": EAST.model_dump()}

    for query in (
        {"ids": ["hidden", shown.id]},
        {},
        {"metadata_filters": {"k": "v"}},
        near,
        near | {"ids": ["hidden"]},
    ):
        page = await desk.page(CRITIC, query=query, explain=True, page_size=1)
        expected = [] if query.get("ids") == ["hidden"] else [shown.id]
        assert ([item.kem.id for item in page.items], page.next_cursor) == (expected, None), query
    stats = await desk.hear(GetMemoryStats(), CRITIC)
    assert isinstance(stats, MemoryStats)
    assert (stats.kems, stats.own, stats.with_vector, stats.newest) == (1, 0, 1, shown.updated_at)

    for there, absent in (
        (DeleteKem(kem_id="hidden"), DeleteKem(kem_id="absent")),
        tuple(
            UpdateKem.model_validate({"kem_id": kem_id, "changes": {"content": "x"}}) for kem_id in ("hidden", "absent")
        ),
    ):
        assert await refusal(desk, there) == await refusal(desk, absent)
    assert await desk.found(ids=["hidden"]) == [hidden.id]


async def test_the_working_memory_reads_everything_whoever_borrows_its_name_does_not(desk: Desk) -> None:
    kem = await desk.store(visibility="private")

    assert await desk.found("svc.swm", ids=[kem.id]) == []
    desk.source = "/mb/swm/1a2b3c4d"
    assert await desk.found("svc.swm", ids=[kem.id]) == [kem.id]
    assert await desk.found(CRITIC, ids=[kem.id]) == []


async def test_a_reader_reads_a_writer_changes_neither_shares(desk: Desk) -> None:
    rights: dict[str, Any] = {"visibility": "readers", "readers": ["agent.critic"], "writers": ["user.anna"]}
    kem = await desk.store(embeddings=EAST, **rights)

    assert await desk.found(CRITIC, embedding_query=EAST.model_dump()) == [kem.id]
    changes = {"kem_id": kem.id, "changes": {"content": "changed"}}
    assert (await refusal(desk, UpdateKem.model_validate(changes)))[0] is Code.UNAUTHORIZED
    changed = await desk.hear(UpdateKem.model_validate(changes), ANNA)
    assert isinstance(changed, Kem)
    assert (changed.version, changed.content, changed.created_at) == (2, "changed", kem.created_at)
    assert [type(event) for event in desk.told] == [KemUpdated]
    sharing = UpdateKem.model_validate({"kem_id": kem.id, "changes": {"visibility": "public"}})
    assert (await refusal(desk, sharing, ANNA))[0] is Code.UNAUTHORIZED


async def test_who_did_not_see_the_latest_change_is_told_so(desk: Desk) -> None:
    kem = await desk.store()
    wanted = {"kem_id": kem.id, "changes": {"content": "mine"}, "expected_version": 1}

    await desk.hear(UpdateKem.model_validate(wanted))
    code, _ = await refusal(desk, UpdateKem.model_validate(wanted), RESEARCHER)

    assert code is Code.CONFLICT


async def test_a_deleted_unit_leaves_rows_and_vectors_and_is_told(desk: Desk) -> None:
    kem = await desk.store(embeddings=EAST)

    await desk.hear(DeleteKem(kem_id=kem.id))

    assert desk.told == [KemDeleted(kem_id=kem.id)]
    assert await desk.report() == MemoryReport(kems=0, with_vector=0, vectors=0, waiting=0)
    assert (await refusal(desk, DeleteKem(kem_id=kem.id), RESEARCHER))[0] is Code.NOT_FOUND


@pytest.mark.slow
async def test_while_the_index_is_away_units_are_stored_and_their_vectors_wait(desk: Desk) -> None:
    index = desk.worker.memory.index
    await index.close()
    await desk.store(embeddings=EAST)

    waiting = await desk.worker.memory.relay.check()
    await index.open()

    assert waiting.waiting == 1
    assert await desk.report() == MemoryReport(kems=1, with_vector=1, vectors=1, waiting=0)


async def test_a_user_is_forgotten_with_what_is_noted_of_them(desk: Desk) -> None:
    own = await desk.store(by=ANNA, visibility="private", embeddings=EAST)
    noted = await desk.store(metadata={"user_id": "anna"})
    shared = await desk.store(visibility="readers", readers=["user.anna", "agent.critic"], writers=["user.anna"])
    other = await desk.store(by="user.boris", metadata={"user_id": "boris"})

    removed = await desk.hear(DeleteUser(user_id="anna"), "user.local")

    assert removed.counts == {"kems": 2, "rights": 1}
    assert [type(event) for event in desk.told] == [KemDeleted, KemDeleted, KemUpdated]
    assert {event.kem_id for event in desk.told if isinstance(event, KemDeleted)} == {own.id, noted.id}
    assert await desk.found(ANNA) == [other.id]
    (left,) = (await desk.page(CRITIC, query={"ids": [shared.id]})).items
    assert (left.kem.readers, left.kem.writers, left.kem.version) == (("agent.critic",), (), 2)
    assert (await desk.report()).is_clean


async def test_all_is_cleared_by_an_operator_alone(desk: Desk) -> None:
    await desk.store(embeddings=EAST)
    await desk.store(visibility="private")

    assert (await refusal(desk, ClearData(confirm=True)))[0] is Code.UNAUTHORIZED
    assert (await refusal(desk, DeleteUser(user_id="anna")))[0] is Code.UNAUTHORIZED
    assert (await refusal(desk, CheckMemory()))[0] is Code.UNAUTHORIZED
    removed = await desk.hear(ClearData(confirm=True), OPERATOR)

    assert removed.counts == {"kems": 2}
    assert await desk.report() == MemoryReport(kems=0, with_vector=0, vectors=0, waiting=0)


async def test_a_unit_whose_time_has_come_is_deleted_and_that_is_told(desk: Desk) -> None:
    gone = await desk.store(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    kept = await desk.store(expires_at=datetime.now(UTC) + timedelta(hours=1))

    told = (await run_task(desk.worker, "delete_expired")).published

    assert [event.kem_id for event in told if isinstance(event, KemDeleted)] == [gone.id]
    assert await desk.found() == [kept.id]
    assert not (await run_task(desk.worker, "delete_expired")).published


async def test_of_too_many_units_the_least_needed_are_forgotten_and_that_is_told(settings: FleetSettings) -> None:
    async with desk_of(settings.model_copy(update={"glm_max_units": 3})) as desk:
        outdated = await desk.store(content="Old news", valid_to=datetime.now(UTC) - timedelta(days=1))
        texts = {
            "The jetty is closed": -1,
            "The ferry leaves at nine": 0,
            "Salt is in the shed": 5,
            "The gate is open": 0,
        }
        stored = [await desk.store(content=text, metadata={"priority": number}) for text, number in texts.items()]
        unneeded, found, pinned, newest = (kem.id for kem in stored)
        others = (await desk.store(by=CRITIC)).id
        assert [item.kem.id for item in (await desk.page(query={"text_query": "ferry"})).items] == [found]

        first, second = [(await run_task(desk.worker, "evict_least")).published for _ in range(2)]
        assert {event.kem_id for event in first if isinstance(event, KemDeleted)} == {outdated.id, unneeded}
        assert not second
        assert set(await desk.found()) == {found, pinned, newest, others}

        more = (await desk.store(content="The lamp is lit")).id
        await run_task(desk.worker, "evict_least")
        # The ferry was found after the gate had been stored.
        assert set(await desk.found()) == {found, pinned, more, others}


async def test_a_superseded_unit_that_still_holds_is_forgotten_no_sooner_than_others(settings: FleetSettings) -> None:
    async with desk_of(settings.model_copy(update={"glm_max_units": 2})) as desk:
        present = await desk.store(content="The office is in Main Street", metadata={"priority": 1})
        unneeded = await desk.store(content="The lamp is lit")
        soon = datetime.now(UTC) + timedelta(days=30)
        await desk.store(content="The office is in Mill Lane", supersedes=[present.id], valid_from=soon)

        (told,) = (await run_task(desk.worker, "evict_least")).published
        assert isinstance(told, KemDeleted)
        assert told.kem_id == unneeded.id


async def test_vectors_that_are_lost_are_made_anew_from_the_rows(desk: Desk, settings: FleetSettings) -> None:
    kem = await desk.store(embeddings=EAST)
    assert (await desk.report()).is_clean
    await desk.worker.memory.index.close()
    for file in settings.vectors_folder.iterdir():
        file.unlink()

    await desk.worker.start()
    assert (await desk.report()).is_clean
    assert await desk.found(embedding_query=EAST.model_dump()) == [kem.id]


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_a_qdrant_that_refuses_the_key_is_said_at_the_start_and_by_doctor(settings: FleetSettings) -> None:
    with QdrantServer(key="secret") as server:
        right = settings.model_copy(update={"qdrant_url": server.url, "qdrant_api_key": "secret"})
        wrong = right.model_copy(update={"qdrant_api_key": "wrong"})
        database = database_of(right)
        memory = await open_memory(database, right, utc_now)
        await memory.close()

        with pytest.raises(IndexRefused, match="set MINDBUS_QDRANT_API_KEY"):
            await open_memory(database, wrong, utc_now)
        assert (await vectors_of_glm(right)).status == "ok"
        told = await vectors_of_glm(wrong)
        assert told.status == "failed"
        assert "set MINDBUS_QDRANT_API_KEY" in told.detail
        await database.dispose()


async def test_a_qdrant_that_does_not_answer_is_said_at_the_start(settings: FleetSettings) -> None:
    away = settings.model_copy(update={"qdrant_url": "http://127.0.0.1:9", "qdrant_api_key": None})
    database = database_of(away)

    with pytest.raises(IndexAway, match="Qdrant"):
        await open_memory(database, away, utc_now)
    await database.dispose()


@pytest.fixture
async def reading_desk(tmp_path: Path, sqlite_database_of: DatabaseOf) -> AsyncIterator[Desk]:
    """One with the model that needs nothing else."""
    settings = settings_for(f"memory://{tmp_path}", tmp_path, glm_database_url=sqlite_database_of("glm"))
    async with desk_of(settings) as opened:
        yield opened


@pytest.mark.slow
async def test_what_comes_without_a_vector_is_found_by_what_it_means(reading_desk: Desk) -> None:
    texts = ("Кошка спит на диване.", "The release was moved to Friday.", "Налоги платят в апреле.")
    cat, release, taxes = [(await reading_desk.store(content=text)).id for text in texts]

    page = await reading_desk.page(CRITIC, query={"text_query": "a sleeping animal"}, explain=True)
    assert page.items[0].kem.id == cat
    assert page.items[0].explain is not None
    assert page.items[0].explain.dense is not None

    changed = {"kem_id": cat, "changes": {"content": "Счёт за электричество оплачен."}}
    await reading_desk.hear(UpdateKem.model_validate(changed))
    found = await reading_desk.found(CRITIC, text_query="кто оплатил электричество")
    assert (found[0], set(found)) == (cat, {cat, release, taxes})
    assert (await reading_desk.page(query={"ids": [taxes]})).items[0].kem.embeddings is not None
    assert await reading_desk.report() == MemoryReport(kems=3, with_vector=3, vectors=3, waiting=0)


@pytest.mark.slow
async def test_of_many_the_vectors_come_later(reading_desk: Desk) -> None:
    drafts = tuple(a_draft(f"Note number {n} of the log.", id=f"kem_{n}") for n in range(20))

    report = await reading_desk.hear(BatchStoreKems(kems=drafts))

    assert {item.status for item in report.items} == {"stored"}
    assert "kem_7" in await reading_desk.found(text_query="note number 7")

    async def are_filled() -> bool:
        return (await reading_desk.report()).vectors == 20

    await until(are_filled, 30)
    assert (await reading_desk.page(query={"ids": ["kem_3"]})).items[0].kem.version == 1


async def test_memory_goes_over_to_the_model_of_its_settings(settings: FleetSettings) -> None:
    async with desk_of(settings) as older:
        kem = await older.store(content="The release was moved to Friday.", embeddings=EAST)
        assert (await refusal(older, Reindex(model="other"), OPERATOR))[0] is Code.CONFLICT
    changed = settings.model_copy(update={"embedding_model": MODEL, "embedding_dim": None})

    async with desk_of(changed) as newer:
        assert await newer.found(embedding_query=EAST.model_dump()) == [kem.id]
        progress = await newer.hear(Reindex(model=MODEL), OPERATOR)
        assert progress == ReindexProgress(model=MODEL, done=1, total=1)

        async def is_indexed() -> bool:
            return await newer.report() == MemoryReport(kems=1, with_vector=1, vectors=1, waiting=0)

        # A search waits for the index, but not for ever.
        await until(is_indexed, 30)
        near = await newer.page(query={"text_query": "when is the new version out on a Friday"}, explain=True)
        assert near.items[0].explain is not None
        assert near.items[0].explain.dense is not None
        assert (await newer.hear(GetMemoryStats())).model == MODEL
        await newer.store(content="Another one.")
        assert await newer.hear(Reindex(model=MODEL), OPERATOR) == ReindexProgress(model=MODEL, done=2, total=2)


@pytest.mark.parametrize(
    ("raw", "code", "complaint"),
    [
        (b"", Code.INVALID, "is empty"),
        (b'{"content": "fine"}\nnonsense\n', Code.INVALID, "line 2"),
        (b'{"content": "fine", "owner": "nobody"}', Code.INVALID, "owner"),
        (b'{"content": "fine"}\n' * 1001, Code.TOO_LARGE, "1001"),
    ],
)
def test_a_batch_whose_artifact_is_no_batch_is_refused(raw: bytes, code: Code, complaint: str) -> None:
    with pytest.raises(Rejected, match=complaint) as no:
        drafts_of(raw)

    assert no.value.code is code


def test_a_batch_by_artifact_has_a_draft_a_line() -> None:
    lines = [a_draft(f"Заметка {n}", id=f"kem_{n}").model_dump_json(exclude_unset=True) for n in range(3)]

    assert [draft.content for draft in drafts_of("\n".join([*lines, ""]).encode())] == [
        f"Заметка {n}" for n in range(3)
    ]


async def test_no_word_of_a_forgotten_user_stays_in_the_files(reading_desk: Desk) -> None:
    for number in range(3):
        await reading_desk.store(by=ANNA, content=f"Zanzibarquokka number {number}", visibility="private")
        await reading_desk.store(by=CRITIC, content=f"Marmalade number {number}")
    database = reading_desk.worker.memory.database
    file = Path(str(database.url.database))

    await reading_desk.hear(DeleteUser(user_id="anna"), OPERATOR)
    await database.truncate_log()

    bytes_left = b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*")).lower()
    assert b"marmalade" in bytes_left
    assert b"zanzibarquokk" not in bytes_left
