"""An episode is about one matter; it knows which earlier one it goes on from."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import delete, select, update

from bus_schema.episodes import Layer
from bus_schema.lsm_events import EpisodeOpened, EpisodeRecorded
from config.settings import FleetSettings
from memory.lsm.tables import EpisodeRow, NoteRow, TurnRow, TurnVectorRow
from mindbus.sql.database import Database
from tests.clocks import NOON
from tests.hashing_embedder import HashingModel
from tests.lsm_kit import ANNA, Archive, talk
from tests.postgres import DatabaseOf

GARDEN = (
    "The tomatoes in the garden have yellow leaves.",
    "Yellow leaves on tomatoes often mean too much water.",
    "So I water the tomatoes less, the garden soil is wet.",
    "Yes, let the garden soil dry, then water the tomatoes in the morning.",
    "The leaves of my tomatoes are green again.",
    "Good, keep watering the tomatoes in the morning.",
)
DATABASE = (
    "Наша база PostgreSQL отвечает медленно.",
    "Посмотрите план запроса PostgreSQL: возможно, нет индекса.",
    "В плане запроса полный перебор таблицы заказов.",
    "Тогда нужен индекс по дате в таблице заказов.",
    "Индекс добавили, запрос к базе стал быстрым.",
    "Отлично, проверьте план запроса ещё раз.",
)
LATER = timedelta(days=1)


async def settled(archive: Archive) -> None:
    """As the worker does when it has waited long enough for vectors."""
    for hours in range(12):
        now = NOON + 400 * LATER + timedelta(hours=hours)
        await archive.work(partial(archive.memory.segmentation.step, now))


async def end(archive: Archive, raw_log_ids: tuple[str, ...], fragment_id: str = "frag_1") -> list[object]:
    return list(await archive.work(lambda: archive.memory.segmentation.end(ANNA, fragment_id, raw_log_ids)))


@pytest.fixture
async def roomy(database_of: DatabaseOf) -> AsyncIterator[Archive]:
    """Its episodes may be long."""
    found = Archive(Database(database_of("lsm"), "lsm"), FleetSettings(lsm_max_turns=50))
    yield found
    await found.database.dispose()


async def test_a_fragment_on_the_same_matter_goes_on_with_its_episode(roomy: Archive) -> None:
    await roomy.record(*talk(*GARDEN[:3]))
    second = await roomy.record(*talk(*GARDEN[3:], begins=NOON + timedelta(minutes=40)))

    events = await end(roomy, second.raw_log_ids)

    (row,) = await roomy.episodes()
    assert (row.turns, row.fragment_id) == (6, "frag_1")
    assert [type(event) for event in events] == [EpisodeRecorded]


async def test_a_fragment_on_another_matter_is_an_episode_of_its_own(roomy: Archive) -> None:
    await roomy.record(*talk(*GARDEN))
    second = await roomy.record(*talk(*DATABASE, begins=NOON + timedelta(minutes=40)))

    events = await end(roomy, second.raw_log_ids)

    garden, database = await roomy.episodes()
    assert (garden.turns, garden.fragment_id, database.turns, database.fragment_id) == (6, None, 6, "frag_1")
    assert (await roomy.episode(database.id)).raw_log_ids == second.raw_log_ids
    assert [type(event) for event in events] == [EpisodeOpened, EpisodeRecorded]
    assert await end(roomy, second.raw_log_ids) != []
    assert len(await roomy.episodes()) == 2


async def test_a_word_of_thanks_is_no_matter_of_its_own(roomy: Archive) -> None:
    await roomy.record(*talk(*GARDEN))
    thanks = await roomy.record(*talk("Спасибо!", "You are welcome.", begins=NOON + timedelta(minutes=90)))

    await end(roomy, thanks.raw_log_ids)

    assert [row.turns for row in await roomy.episodes()] == [8]


async def test_an_imported_talk_about_two_matters_becomes_two_episodes(roomy: Archive) -> None:
    await roomy.record(*talk(*GARDEN, *DATABASE))

    await settled(roomy)

    assert [row.turns for row in await roomy.episodes()] == [6, 6]
    assert await roomy.log() == [*GARDEN, *DATABASE]
    assert all(row.is_settled for row in await roomy.episodes())


async def test_an_episode_knows_the_earlier_one_that_it_goes_on_from(archive: Archive) -> None:
    await archive.record(*talk(*GARDEN))
    await archive.record(*talk(*DATABASE, begins=NOON + LATER))
    again = ("The tomatoes in the garden have yellow leaves once more.", "Less water for the tomatoes, then.")
    await archive.record(*talk(*again, begins=NOON + 2 * LATER))

    await settled(archive)

    garden, database, back = await archive.episodes()
    assert (garden.continues_from, database.continues_from, back.continues_from) == (None, None, garden.id)


async def test_what_is_packed_is_linked_but_never_split(roomy: Archive) -> None:
    outcome = await roomy.record(*talk(*GARDEN, *DATABASE))
    assert outcome.episode_id is not None
    await roomy.pack(outcome.episode_id)

    await settled(roomy)

    (row,) = await roomy.episodes()
    assert (row.layer, row.turns, row.is_settled) == (Layer.WARM, 12, True)
    assert await roomy.count(TurnRow) == 12


async def test_an_episode_that_was_packed_before_there_were_notes_gets_them(archive: Archive) -> None:
    recorded = await archive.record(*talk("I prefer an aisle seat on long flights.", "Noted."))
    assert recorded.episode_id is not None
    await archive.pack(recorded.episode_id)
    made = (await archive.episode(recorded.episode_id)).notes

    async def as_of_old() -> None:
        await archive.database.session.execute(delete(NoteRow))
        await archive.database.session.execute(update(EpisodeRow).values(is_settled=False))

    await archive.work(as_of_old)
    await settled(archive)

    assert [note.kind for note in made] == ["preference"]
    assert (await archive.episode(recorded.episode_id)).notes == made


async def test_an_ended_episode_has_tags_before_it_is_packed(archive: Archive) -> None:
    await archive.record(*talk(*GARDEN))

    await settled(archive)

    (row,) = await archive.episodes()
    assert row.layer == Layer.HOT
    assert {"tomatoes", "garden"} <= set(row.tags)


async def test_an_episode_is_linked_to_one_that_many_others_followed(archive: Archive) -> None:
    await archive.record(*talk(*GARDEN))
    for days in range(1, 31):
        await archive.record(*talk(*(f"{text} {days}" for text in DATABASE[:2]), begins=NOON + days * LATER))
    again = ("The tomatoes in the garden have yellow leaves once more.", "Less water for the tomatoes, then.")
    await archive.record(*talk(*again, begins=NOON + 40 * LATER))
    model = HashingModel()
    async with archive.database.transaction() as session:
        for turn in await session.scalars(select(TurnRow)):
            session.add(TurnVectorRow(raw_log_id=turn.id, model="hashing", data=model.query(turn.content).tobytes()))

    for hours in range(40):
        await archive.work(partial(archive.memory.segmentation.step, NOON + 500 * LATER + timedelta(hours=hours)))

    episodes = await archive.episodes()
    assert episodes[-1].continues_from == episodes[0].id
