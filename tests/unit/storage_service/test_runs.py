"""Runs in a real database."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from agents.processes.run_events import MembersConfirmed
from agents.processes.saga import advance, open_run
from bus_schema.process import ListProcesses, RunPage
from bus_schema.runs import Run, RunStatus, StepStatus
from mindbus.sql.database import Database
from storage_service.runs import (
    RunChangedMeanwhile,
    StoredRun,
    add_run,
    awaited_artifacts,
    claim_runs,
    due_runs,
    is_awaited,
    list_runs,
    read_run,
    run_to_change,
    save_run,
    starting_runs,
)
from tests.postgres import DatabaseOf
from tests.process_kit import a_start, a_step, artifact_of

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
async def database(database_of: DatabaseOf) -> AsyncIterator[Database]:
    database = Database(database_of("orchestrator"), "orchestrator")
    yield database
    await database.dispose()


async def put(database: Database, run_id: str = "run_1", at: datetime = NOON, card_name: str = "card") -> Run:
    start = a_start(a_step("a"), a_step("b", "a"), run_id=run_id)
    assert start.card is not None
    card = start.card.model_copy(update={"name": card_name})
    run = open_run(start, card, "user.anna", at)
    assert await database.write(lambda connection: add_run(connection, run, card, "0" * 64))
    return run


async def begin(database: Database, run_id: str = "run_1", at: datetime = NOON) -> Run:
    stored = await stored_run(database, run_id)
    run = advance(stored.card, stored.run, MembersConfirmed(), at).run
    await save(database, stored, run)
    return run


async def save(database: Database, stored: StoredRun, run: Run) -> None:
    await database.write(lambda connection: save_run(connection, stored, run))


async def page_of(
    database: Database,
    status: RunStatus | None = None,
    card: str | None = None,
    cursor: str | None = None,
    limit: int = 10,
) -> RunPage:
    return await database.read(
        lambda connection: list_runs(connection, ListProcesses(status=status, card=card, cursor=cursor, limit=limit))
    )


async def stored_run(database: Database, run_id: str = "run_1") -> StoredRun:
    stored = await database.read(lambda connection: run_to_change(connection, run_id))
    assert stored is not None
    return stored


async def test_a_run_comes_back_as_it_was_put(database: Database) -> None:
    run = await put(database)

    assert await database.read(lambda connection: read_run(connection, "run_1")) == run
    assert await database.read(lambda connection: read_run(connection, "run_2")) is None


async def test_a_run_comes_back_as_it_was_saved(database: Database) -> None:
    await put(database)
    run = await begin(database)
    artifact = artifact_of("run_1", "a", 1)
    done = {"status": StepStatus.COMPLETED, "artifact": artifact, "reason": "готово"}
    step = run.steps[0].model_copy(update=done)
    ended = {"status": RunStatus.COMPLETED, "finished_at": NOON, "result": artifact, "steps": (step, run.steps[1])}

    stored = await stored_run(database)
    await save(database, stored, run.model_copy(update=ended))

    assert await database.read(lambda connection: read_run(connection, "run_1")) == run.model_copy(update=ended)


async def test_an_id_is_taken_once(database: Database) -> None:
    run = await put(database)
    stored = await stored_run(database)

    assert not await database.write(lambda connection: add_run(connection, run, stored.card, "1" * 64))

    assert (await stored_run(database)).request_sha256 == "0" * 64


async def test_of_two_who_change_a_run_at_once_one_is_told(database: Database) -> None:
    await put(database)
    stored = await stored_run(database)
    await save(database, stored, stored.run)

    with pytest.raises(RunChangedMeanwhile, match="run_1"):
        await save(database, stored, stored.run)


async def test_pages_go_from_the_newest_to_the_oldest_run_without_gaps(database: Database) -> None:
    for number in range(5):
        await put(database, f"run_{number}", NOON + timedelta(seconds=number // 2))
    seen: list[str] = []
    cursor = None

    while cursor is not None or not seen:
        page = await page_of(database, cursor=cursor, limit=2)
        seen += [run.run_id for run in page.items]
        cursor = page.next_cursor

    assert seen == ["run_4", "run_3", "run_2", "run_1", "run_0"]


async def test_runs_are_found_by_status_and_card(database: Database) -> None:
    await put(database, "run_1", card_name="article")
    await put(database, "run_2", card_name="review")
    await begin(database, "run_2")

    running = await page_of(database, RunStatus.RUNNING)
    articles = await page_of(database, card="article")
    both = await page_of(database, RunStatus.RUNNING, "article")

    assert [run.run_id for run in running.items] == ["run_2"]
    assert [run.run_id for run in articles.items] == ["run_1"]
    assert both.items == ()


@pytest.mark.parametrize("cursor", ["", "x", "2025-06-01T12:00:00 run_1", "2025-06-01T12:00:00+00:00", "' OR 1=1 --"])
async def test_what_is_no_cursor_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(match="start again"):
        await page_of(database, cursor=cursor)


async def test_starting_runs_are_found_until_they_have_begun(database: Database) -> None:
    await put(database, "run_1")
    await put(database, "run_2")
    await begin(database, "run_1")

    starting = await database.read(lambda connection: starting_runs(connection, 10))
    assert [run.run_id for run in starting] == ["run_2"]


async def test_a_run_is_due_when_the_time_of_a_step_has_come(database: Database) -> None:
    for number in (1, 2):
        await put(database, f"run_{number}")
        await begin(database, f"run_{number}", NOON + timedelta(seconds=number))

    async def due(after_s: float, limit: int = 10) -> tuple[str, ...]:
        return await database.read(lambda connection: due_runs(connection, NOON + timedelta(seconds=after_s), limit))

    assert await due(60) == ()
    assert await due(61) == ("run_1",)
    assert await due(62) == ("run_1", "run_2")
    assert await due(62, limit=1) == ("run_1",)
    claimed = await database.write(lambda connection: claim_runs(connection, ["run_2", "run_1", "run_none"]))
    assert claimed == ("run_1", "run_2")


async def test_what_lies_in_a_buffer_is_known_with_its_run(database: Database) -> None:
    await put(database)
    run = await begin(database)
    artifact = artifact_of("run_1", "a", 1)
    waiting = run.steps[0].model_copy(update={"status": StepStatus.PENDING_STORAGE, "artifact": artifact})
    stored = await stored_run(database)
    await save(database, stored, run.model_copy(update={"steps": (waiting, run.steps[1])}))

    awaited = await database.read(lambda connection: awaited_artifacts(connection, 10))
    assert awaited == (("run_1", artifact),)
    other = artifact_of("run_1", "b", 1)
    for run_id, each, is_it in (("run_1", artifact, True), ("run_1", other, False), ("run_2", artifact, False)):
        assert await database.read(partial(is_awaited, run_id=run_id, artifact=each)) is is_it
