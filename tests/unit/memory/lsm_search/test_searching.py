"""What long-term memory finds, in whichever layer it is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from bus_schema.conversations import AnswerRated
from bus_schema.envelope import Envelope
from bus_schema.lsm_events import EpisodeTouched
from bus_schema.lsm_search import Feedback, FoundEpisodes, SearchEpisodes
from bus_schema.message_parts import Rating
from bus_schema.messages import Event
from config.settings import FleetSettings
from memory.errors import NoSuchSearch, NotFoundBySearch
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.tables import EpisodeRow, NoteRow, SearchRow, inbox_tables
from mindbus.bus.claims import Claims
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.bus.sender import Sender
from mindbus.bus.worker import Worker
from mindbus.files.store import FolderFiles
from mindbus.runtime.worker_tasks import WorkerTasks
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseAway
from mindbus.sql.inbox import SqlInbox
from tests.clocks import NOON
from tests.hashing_embedder import HashingEmbedder
from tests.lsm_kit import ANNA, Archive, said, talk
from tests.postgres import DatabaseOf
from workers.lsm.episodes import EpisodeSearchHandlers

DAY = timedelta(days=1)
ASKER = "user.anna"


class Library(Archive):
    """An archive in which one can search."""

    embedder: HashingEmbedder
    search: EpisodeSearch
    asked = 0

    async def found(
        self, query: str, at: Any = None, chat: str = ANNA, by: str = ASKER, **fields: Any
    ) -> FoundEpisodes:
        wanted = SearchEpisodes(query=query, chat_id=chat, at=at, **fields)
        self.asked += 1
        found = await self.search.find(wanted, at or self.clock(), f"srch_{self.asked}", by)
        await self.log_step()
        return found

    async def log_step(self) -> list[Event]:
        """Write one search with its events in one transaction."""
        async with self.search.log.database.at_hand(), self.search.log.step() as events:
            return list(events)

    async def fill(self) -> None:
        """Until every turn has its vector."""
        while await self.waiting():
            await self.search.embed()

    async def waiting(self) -> int:
        return (await self.stats()).waiting_for_vectors

    async def give(self, search_id: str, *used: str, by: str = ASKER) -> None:
        feedback = Feedback(search_id=search_id, used=used)
        await self.work(lambda: self.search.log.take_feedback(feedback, by))


@pytest.fixture
async def library(sqlite_database_of: DatabaseOf) -> AsyncIterator[Library]:
    database = Database(sqlite_database_of("lsm"), "lsm")
    library = Library(database, FleetSettings(lsm_max_turns=50))
    library.embedder = HashingEmbedder()

    async def opening() -> HashingEmbedder:
        return library.embedder

    library.search = EpisodeSearch(library.memory, library.settings, opening)
    for days, contents in enumerate(TALKS):
        await library.record(*talk(*contents, begins=NOON + 10 * days * DAY))
    yield library
    await library.search.close()
    await database.dispose()


TALKS = (
    ("My dog Rex is ill, he does not eat.", "I am sorry! Did you see a vet?", "Yes, Doctor Pavlova gave us pills."),
    ("We painted the kitchen green.", "That must look fresh.", "It does; the paint was from Riga."),
    ("Мы купили дачу под Тверью.", "Поздравляю! Большой дом?", "Четыре комнаты и баня."),
    ("Let us use PostgreSQL for Orion.", "We decided to use PostgreSQL for Orion."),
)


def texts(found: FoundEpisodes) -> list[str]:
    return [turn.content for episode in found.episodes for turn in episode.turns]


async def test_the_answer_to_a_question_is_found_by_the_words_of_the_question_before_it(library: Library) -> None:
    found = await library.found("Which vet did Rex see?", budget_words=26)

    assert "Yes, Doctor Pavlova gave us pills." in texts(found)


async def test_words_of_either_language_are_found_in_other_forms(library: Library) -> None:
    assert "Мы купили дачу под Тверью." in texts(await library.found("когда покупали дачи", budget_words=10))
    assert "We painted the kitchen green." in texts(await library.found("paint kitchens", budget_words=12))


async def test_what_is_returned_fits_the_budget_grouped_by_episode_in_its_order(library: Library) -> None:
    found = await library.found("dog Rex vet pills", budget_words=20)

    assert found.words <= 20
    assert found.words == sum(len(text.split()) for text in texts(found))
    for episode in found.episodes:
        assert [turn.time for turn in episode.turns] == sorted(turn.time for turn in episode.turns)


async def test_the_newest_come_first_where_they_are_asked_for_and_are_the_same_turns(library: Library) -> None:
    query = "Rex Doctor Pavlova, later the paint of the kitchen from Riga"
    best = await library.found(query, budget_words=60, touch=False)
    newest = await library.found(query, budget_words=60, touch=False, newest_first=True)

    assert sorted(texts(newest)) == sorted(texts(best))
    times = [turn.time for episode in newest.episodes for turn in episode.turns]
    assert times == sorted(times, reverse=True)
    assert [turn.time for episode in best.episodes for turn in episode.turns] != times


@pytest.mark.parametrize(
    "question", ["Where is the spare key of the boat now?", "Has the spare key of the boat changed places?"]
)
async def test_the_newest_of_what_fits_comes_first_where_a_question_asks_how_things_stand(
    library: Library, question: str
) -> None:
    places = ("under the blue pot", "in the shed", "with the neighbour")
    for days, place in enumerate(places):
        said = f"The spare key of the boat is {place}."
        await library.record(*talk(said, "Noted.", begins=NOON + (200 + days) * DAY))
    await library.record(*talk("We went past the boat and talked about Riga.", begins=NOON + 250 * DAY))

    neutral = await library.found("Where is the spare key of the boat?", at=NOON + 300 * DAY, explain=True)
    current = await library.found(question, at=NOON + 300 * DAY, explain=True)

    assert "current" not in neutral.asks_for
    assert "current" in current.asks_for
    first = [episode.turns[0].content for episode in current.episodes][: len(places)]
    assert first == [f"The spare key of the boat is {place}." for place in reversed(places)]
    assert "We went past the boat and talked about Riga." in texts(current)[len(places) :]


async def test_of_two_statements_that_fit_alike_a_question_of_now_has_the_newer_first(library: Library) -> None:
    for days, place in enumerate(("under the blue pot", "with the neighbour")):
        said = f"The spare key of the boat is {place}."
        await library.record(*talk(said, "I shall look there.", begins=NOON + (200 + days) * DAY))

    since = NOON + 199 * DAY
    found = await library.found("Where is the spare key of the boat now?", at=NOON + 300 * DAY, since=since)

    assert [texts(found)[0], texts(found)[2]] == [
        "The spare key of the boat is with the neighbour.",
        "The spare key of the boat is under the blue pot.",
    ]
    # An exchange is told as it was.
    for episode in found.episodes:
        assert [turn.role for turn in episode.turns] == ["user", "assistant"]


async def test_a_cold_episode_is_found_as_well_as_a_hot_one_by_its_raw_turns(library: Library) -> None:
    before = await library.found("Which vet did Rex see?", budget_words=26, touch=False)
    rex = (await library.episodes())[0]
    for _ in range(2):
        await library.pack(rex.id, NOON + 400 * DAY)

    after = await library.found("Which vet did Rex see?", budget_words=26, touch=False)

    assert texts(after) == texts(before)
    assert after.episodes[0].layer == "cold"
    assert (before.unpacked, after.unpacked) == (False, True)


async def test_what_was_decided_is_answered_from_the_turns_and_from_the_pack(library: Library) -> None:
    orion = (await library.episodes())[3]
    await library.pack(orion.id, NOON + 400 * DAY)

    found = await library.found("What did we decide about Orion?", budget_words=100)

    of_orion = next(episode for episode in found.episodes if episode.episode_id == orion.id)
    assert "PostgreSQL" in (of_orion.text or "")
    assert "We decided to use PostgreSQL for Orion." in [turn.content for turn in of_orion.turns]
    assert found.unpacked
    assert found.words <= 100


async def test_turns_have_what_packs_leave_of_an_overviews_budget(library: Library) -> None:
    said = [f"On day {day} the team of Orion tested part {day} of the pump." for day in range(12)]
    for day, text in enumerate(said):
        await library.record(*talk(text, begins=NOON + (200 + day) * DAY))

    found = await library.found("Give me an overview of what the team of Orion tested.", budget_words=100, explain=True)

    assert "overview" in found.asks_for
    assert not [each.text for each in found.episodes if each.text]
    assert 100 - len(said[0].split()) < found.words <= 100


async def test_a_headline_is_no_overview_so_a_cold_episode_is_unpacked(library: Library) -> None:
    orion = (await library.episodes())[3]
    for _ in range(2):
        await library.pack(orion.id, NOON + 400 * DAY)

    found = await library.found("What did we decide about Orion?", budget_words=100)
    briefly = await library.found("What did we decide about Orion?", budget_words=100, depth="summary")

    assert found.unpacked
    assert "We decided to use PostgreSQL for Orion." in texts(found)
    assert not briefly.unpacked


async def test_excluded_turns_are_left_out_and_the_rest_is_found(library: Library) -> None:
    every = await library.found("Orion PostgreSQL", touch=False)
    ids = {turn.content: turn.raw_log_id for episode in every.episodes for turn in episode.turns}
    shown = ids["We decided to use PostgreSQL for Orion."]

    rest = await library.found("Orion PostgreSQL", touch=False, exclude=(shown, "raw_unknown"))

    assert "We decided to use PostgreSQL for Orion." not in texts(rest)
    assert "Let us use PostgreSQL for Orion." in texts(rest)


async def test_a_search_that_seems_to_have_no_answer_returns_its_best_within_another_budget(library: Library) -> None:
    doubtful = await library.found("zebra stripes", budget_words=400, doubtful_words=9, touch=False)
    sure = await library.found("Orion PostgreSQL", budget_words=400, doubtful_words=1, touch=False)

    assert doubtful.confidence == "nothing"
    assert 0 < doubtful.words <= 9
    assert "We decided to use PostgreSQL for Orion." in texts(sure)


async def test_feedback_touches_the_episodes_of_used_turns_once(library: Library) -> None:
    orion = (await library.episodes())[3]
    found = await library.found("Orion PostgreSQL", touch=False)
    turn = next(turn for episode in found.episodes for turn in episode.turns if "decided" in turn.content)
    assert (await library.episodes())[3].access_count == orion.access_count, "looking is no use"
    feedback = Feedback(search_id=found.search_id or "", used=(turn.raw_log_id,), touch=True)

    events = [await library.work(lambda: library.search.log.take_feedback(feedback, ASKER)) for _ in range(2)]

    assert [[type(event) for event in each] for each in events] == [[EpisodeTouched], []]
    counts = {each.id: each.access_count for each in await library.episodes()}
    assert counts.pop(orion.id) == orion.access_count + 1
    assert len(set(counts.values())) == 1


async def test_filters_by_layer_by_time_by_tag_leave_the_rest_out(library: Library) -> None:
    rex = (await library.episodes())[0]
    await library.pack(rex.id, NOON + 400 * DAY)

    assert {e.episode_id for e in (await library.found("dog paint Orion", layers=("warm",))).episodes} == {rex.id}
    late = await library.found("dog paint Orion", since=NOON + 25 * DAY)
    assert all("Orion" in text for text in texts(late))
    early = await library.found("dog paint Orion", until=NOON + 5 * DAY)
    assert all("Orion" not in text and "paint" not in text for text in texts(early))
    assert (await library.found("dog", tags=("no such tag",))).episodes == ()


async def test_a_search_as_of_a_moment_knows_nothing_of_what_was_said_later(library: Library) -> None:
    found = await library.found("Orion PostgreSQL", at=NOON + 15 * DAY)

    assert all("Orion" not in text for text in texts(found))


async def test_a_chat_of_which_nothing_was_heard_has_nothing(library: Library) -> None:
    found = await library.found("dog", chat="boris")

    assert (found.confidence, found.episodes, found.words) == ("nothing", (), 0)


async def test_of_a_chat_with_a_single_turn_words_tell_whether_it_is_meant(library: Library) -> None:
    await library.record(*talk("Remember this for ever: my locker is number forty two."), chat="boris")
    await library.fill()

    assert (await library.found("What is the number of my locker?", chat="boris")).confidence == "found"
    assert (await library.found("Which vet did Rex see?", chat="boris")).confidence == "nothing"


async def test_while_the_embedder_is_away_words_are_compared(library: Library) -> None:
    await library.fill()
    assert not (await library.found("dog Rex")).is_degraded
    library.embedder.away = True

    found = await library.found("which dog is ill", budget_words=10)

    assert found.is_degraded
    assert texts(found) == ["My dog Rex is ill, he does not eat."]


async def test_a_search_is_degraded_until_the_turns_have_their_vectors(library: Library) -> None:
    await library.fill()
    await library.record(*talk("My dog Rex is ill.", "He does not eat."), chat="clara")

    assert (await library.found("which dog is ill", chat="clara")).is_degraded
    await library.fill()
    assert not (await library.found("which dog is ill", chat="clara")).is_degraded


async def test_a_chat_that_was_searched_before_the_embedder_was_open_gets_its_vectors(library: Library) -> None:
    await library.fill()
    embedder, library.search.embeddings.embedder = library.search.embeddings.embedder, None
    library.search.indexes.on_erased(None)
    assert (await library.found("which dog is ill")).is_degraded

    library.search.embeddings.embedder = embedder
    # A turn that comes now must not bring the index up to date without the others' vectors.
    await library.record(said("The spare key is under the blue pot.", NOON + 50 * DAY))
    found = await library.found("which dog was ill")

    assert not found.is_degraded
    async with library.search.indexes.index(ANNA, library.search.embeddings.model) as index:
        assert index.vectors.count == len(index) - 1


async def test_a_turn_is_found_by_its_words_before_it_has_a_vector(library: Library) -> None:
    await library.fill()
    await library.found("anything")

    await library.record(said("The spare key is under the blue pot.", NOON + 50 * DAY))

    assert "The spare key is under the blue pot." in texts(await library.found("spare key", budget_words=20))
    assert await library.waiting() == 1


async def test_an_episode_that_was_settled_before_its_vectors_came_is_settled_once_more(library: Library) -> None:
    await library.work(lambda: library.memory.segmentation.step(NOON + 99 * DAY))
    await library.work(lambda: library.memory.segmentation.step(NOON + 100 * DAY))
    early = [row.id for row in await library.episodes() if row.is_settled]

    await library.fill()
    assert early
    assert [row.id for row in await library.episodes() if row.is_settled] == []
    for days in range(9):
        await library.work(partial(library.memory.segmentation.step, NOON + (101 + days) * DAY))

    assert {(row.is_settled, row.model) for row in await library.episodes()} == {(True, "hashing")}


async def test_a_large_import_keeps_no_other_chat_waiting_for_its_vectors(library: Library) -> None:
    await library.record(*[said(f"All of it is number {number}.", NOON + 99 * DAY) for number in range(60)])
    await library.search.embed()

    await library.record(said("We moved to Riga.", NOON + 99 * DAY), chat="zoe")
    await library.search.embed()

    assert await library.waiting() > 0
    assert (await library.stats("zoe")).waiting_for_vectors == 0


async def test_what_is_said_of_an_earlier_time_takes_its_place_in_the_order(library: Library) -> None:
    await library.found("anything")

    await library.record(said("Rex was called Max once.", NOON + timedelta(minutes=1, seconds=30)))

    found = await library.found("Rex Max pills vet", budget_words=60)
    assert "Rex was called Max once." in texts(found)
    assert [turn.time for turn in found.episodes[0].turns] == sorted(turn.time for turn in found.episodes[0].turns)


async def test_what_is_forgotten_is_found_no_more(library: Library) -> None:
    await library.found("dog")

    await library.work(lambda: library.memory.erasure.erase(ANNA))

    assert (await library.found("dog")).episodes == ()


async def test_a_full_shelf_lets_go_of_what_was_asked_for_longest_ago(library: Library) -> None:
    library.search.indexes.limit_bytes = 1
    await library.record(said("A bicycle."), chat="boris")

    await library.found("dog")
    await library.found("bicycle", chat="boris")

    assert list(library.search.indexes._entries) == ["boris"]
    assert texts(await library.found("dog Rex", budget_words=9)) == ["My dog Rex is ill, he does not eat."]


async def test_explained_is_what_the_score_is_made_of(library: Library) -> None:
    await library.fill()

    (first, *_) = (await library.found("Which vet did Rex see?", explain=True)).episodes

    assert first.explain is not None
    assert sum(first.explain.signals.values()) == pytest.approx(first.score)
    assert {"words", "words_in_context", "meaning_in_context"} <= set(first.explain.signals)
    assert {"vet", "Rex"} & set(first.explain.words)


async def test_a_named_speaker_is_asked_for_by_name(library: Library) -> None:
    for minute, (speaker, text) in enumerate([("Olga", "I like tea."), ("Ivan", "I like tea, too, but not much.")] * 2):
        await library.record(said(text, NOON + timedelta(minutes=minute), speaker=speaker), chat="club")

    found = await library.found("What does Olga like?", chat="club", budget_words=6)

    assert texts(found) == ["I like tea.", "I like tea."]


async def test_feedback_is_taken_from_whoever_has_searched(library: Library) -> None:
    found = await library.found("dog Rex")
    used = found.episodes[0].turns[0].raw_log_id

    with pytest.raises(NoSuchSearch):
        await library.give(found.search_id or "", used, by="user.mallory")
    with pytest.raises(NoSuchSearch):
        await library.give("srch_none", used)
    with pytest.raises(NotFoundBySearch):
        await library.give(found.search_id or "", "raw_other")
    await library.give(found.search_id or "", used)

    stats = await library.stats()
    assert (stats.searches, stats.with_feedback, stats.hit_rate) == (1, 1, 1.0)


async def test_a_rating_of_the_answer_changes_what_the_tuning_learns_from(library: Library) -> None:
    found = await library.found("dog Rex")
    turns = [turn.raw_log_id for turn in found.episodes[0].turns]
    await library.give(found.search_id or "", turns[0])

    async def rate(rating: Rating | None, minute: int, *used: str, chat: str = ANNA) -> bool:
        event = AnswerRated(
            user_id=chat,
            message_id="msg_1",
            rating=rating,
            rated_at=NOON + timedelta(minutes=minute),
            search_id=found.search_id,
            used=used,
        )
        return bool(await library.work(lambda: library.search.log.take_rating(event)))

    async def lessons() -> list[tuple[int, int, float]]:
        return [(len(each.used), len(each.rejected), each.weight) for each in await library.search.tuning.examples()]

    assert await lessons() == [(1, 0, 1.0)]
    assert not await rate("unhelpful", 1, turns[0], chat="boris")
    assert not await rate("unhelpful", 1, "raw_of_another_search")
    assert await lessons() == [(1, 0, 1.0)]

    assert await rate("unhelpful", 3, turns[0], "raw_of_another_search")
    assert not await rate("helpful", 2, turns[0]), "an older rating that comes late changes nothing"
    await library.give(found.search_id or "", turns[0])
    assert await lessons() == [(0, 1, 2.0)], "feedback that comes late does not outweigh the user"
    assert (await library.stats()).hit_rate == 0

    assert await rate("helpful", 4, *turns[:2])
    assert await lessons() == [(2, 0, 2.0)]
    assert await rate(None, 5, *turns[:2])
    assert await lessons() == [(1, 0, 1.0)]


async def test_the_same_search_again_counts_as_one_access(library: Library) -> None:
    wanted = SearchEpisodes(query="Which vet did Rex see?", chat_id=ANNA)
    told = []
    for _ in range(2):
        await library.search.find(wanted, NOON, "srch_1", ASKER)
        await library.search.log.write("srch_1")
        told.append(await library.log_step())

    assert [bool(events) for events in told] == [True, False]
    assert max(row.access_count for row in await library.episodes()) == 1


class FailingInbox(SqlInbox):
    """Breaks off the first commits."""

    failures = 2

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator[Any]:
        async with super().unit_of_work(consumer) as unit:
            yield unit
            self.failures -= 1
            if self.failures >= 0:
                raise DatabaseAway("broke off at the commit")


async def test_no_event_of_a_search_is_lost_when_the_database_fails(library: Library, tmp_path: Path) -> None:
    worker = Worker()
    worker.name = "lsm"
    worker.inbox = inbox = FailingInbox(library.search.log.database)
    worker.include(EpisodeSearchHandlers(library.memory, library.search))
    claims = Claims(FolderFiles(tmp_path, tmp_path.as_uri()))
    tasks = WorkerTasks(worker, Sender("lsm", "1", "svc.lsm", "reply.lsm.1", claims), MemoryTransport(MemoryBroker()))
    (log_searches,) = [task for task in worker.routes.tasks if task.method == "log_searches"]
    wanted = SearchEpisodes(query="Which vet did Rex see?", chat_id=ANNA)
    await library.search.find(wanted, NOON, "srch_1", ASKER)

    for _ in range(2):
        with pytest.raises(DatabaseAway):
            await tasks.step(log_searches)
        assert await library.count(SearchRow) == 0

    await tasks.step(log_searches)
    async with library.search.log.database.reading() as session:
        envelopes = (await session.scalars(select(inbox_tables.outbox.c.envelope))).all()
    assert inbox.failures < 0
    assert await library.count(SearchRow) == 1
    assert {Envelope.model_validate_json(envelope).type for envelope in envelopes} == {EpisodeTouched.wire.type}


async def test_a_search_in_a_chat_that_is_forgotten_before_it_is_written_is_not_kept(library: Library) -> None:
    wanted = SearchEpisodes(query="Which vet did Rex see?", chat_id=ANNA)
    await library.search.find(wanted, NOON, "srch_1", ASKER)
    found = await library.search.finder.find(wanted, NOON, "srch_2", ASKER, {})
    await library.work(lambda: library.memory.erasure.erase(ANNA))
    library.search.log.put(found)

    await library.search.log.write("srch_1")
    await library.search.log.write("srch_2")
    assert await library.log_step() == []
    assert await library.count(SearchRow) == 0


async def test_tuning_takes_feedback_of_enough_searches(library: Library) -> None:
    report = await library.work(lambda: library.search.tuning.tune(apply=True))

    assert not report.applied
    assert report.weights_after == report.weights_before


async def test_a_question_about_a_time_alone_returns_what_was_said_then(library: Library) -> None:
    then = NOON + 10 * DAY

    found = await library.found(f"What happened on {then:%Y-%m-%d}?", at=NOON + 300 * DAY, budget_words=40)

    assert texts(found) == list(TALKS[1])
    assert found.confidence == "found"


async def test_a_time_in_which_nothing_was_said_hides_nothing(library: Library) -> None:
    found = await library.found("What happened in May 1999?", at=NOON + 300 * DAY, budget_words=400)

    assert found.episodes


async def test_as_of_a_time_what_was_said_before_it_comes_first(library: Library) -> None:
    await library.record(*talk("The budget is 100 euros.", begins=NOON + 100 * DAY))
    await library.record(*talk("The budget is 900 euros.", begins=NOON + 200 * DAY))
    time = f"{NOON + 150 * DAY:%Y-%m-%d}"

    found = await library.found(f"What was the budget as of {time}?", at=NOON + 300 * DAY, budget_words=5)
    since = await library.found(f"What was the budget after {time}?", at=NOON + 300 * DAY, budget_words=5)

    assert (texts(found), texts(since)) == (["The budget is 100 euros."], ["The budget is 900 euros."])


async def test_links_are_followed_for_an_overview(library: Library) -> None:
    earlier = await library.record(*talk("Olaf patched the roof above the attic.", begins=NOON + DAY))
    for days in (10, 20, 30):
        await library.record(*talk("In the garden behind the house we planted a hedge.", begins=NOON + days * DAY))
    later = await library.record(*talk("The renovation of the house is what we talk of.", begins=NOON + 40 * DAY))

    assert earlier.episode_id is not None

    async def link(episode_id: str = earlier.episode_id) -> None:
        row = await library.database.session.get(EpisodeRow, later.episode_id)
        assert row is not None
        row.related_to = [episode_id]

    await library.work(link)
    asked = partial(library.found, at=NOON + 50 * DAY, budget_words=20, explain=True)
    overview = await asked("Give me an overview of the renovation of the house.")

    assert "Olaf patched the roof above the attic." in texts(overview)
    assert {each.explain.signals["linked"] for each in overview.episodes if each.explain} == {0.0, 1.0}
    for question in ("What is the renovation of the house?", "In what order did the renovation of the house go?"):
        found = await asked(question)
        assert "Olaf patched the roof above the attic." not in texts(found)
        assert not any("linked" in each.explain.signals for each in found.episodes if each.explain)


async def test_instructions_are_among_what_is_found_unless_that_is_sorted_by_time(library: Library) -> None:
    order = "Always write distances in miles."
    told = await library.record(*talk(order, "All right.", begins=NOON + DAY))
    for days in range(2, 14):
        await library.record(*talk("The lake is behind the hill.", "So it is.", begins=NOON + days * DAY))

    async def note() -> None:
        library.database.session.add(
            NoteRow(raw_log_id=told.raw_log_ids[0], chat_id=ANNA, kind="instruction", text=order)
        )

    await library.work(note)

    async def has_order(question: str) -> bool:
        return order in texts(await library.found(question, at=NOON + 50 * DAY, budget_words=60))

    assert await has_order("Where is the lake behind the hill?")
    assert not await has_order("In what order did I tell of the lake behind the hill?")
    assert not await has_order("How often did I tell of the lake behind the hill?")
    assert not await has_order("Is the lake still behind the hill?")


@pytest.mark.parametrize(
    "question", ["How often did I mention the dentist?", "How many times did I go to the dentist?"]
)
async def test_how_often_returns_every_occurrence_in_order_not_the_most_similar_few(
    library: Library, question: str
) -> None:
    visit = "The dentist again, the dentist says often, many times, that the dentist is how often one should go."
    for days in (200, 100, 150):
        await library.record(*talk(visit, visit, visit, "Noted.", begins=NOON + days * DAY))
    for days in (50, 120, 250):
        short = f"We shopped, then I saw somebody, I think it was the dentist, on day {days}, and went home by bus."
        await library.record(*talk(short, "I see.", begins=NOON + days * DAY))

    # As in a dialogue, where the question is recorded before it is answered.
    asked = await library.record(*talk(question, begins=NOON + 299 * DAY))
    found = await library.found(
        question, at=NOON + 300 * DAY, budget_words=170, explain=True, exclude=asked.raw_log_ids
    )

    assert found.asks_for == ("how often", "event")
    times = [episode.started_at for episode in found.episodes]
    assert times == sorted(times)
    assert [(time - NOON).days for time in times] == [50, 100, 120, 150, 200, 250]


async def test_a_note_of_the_kind_that_is_asked_for_lifts_its_turn(library: Library) -> None:
    told = "I prefer the seats by the corridor on trains, as ever."
    recorded = await library.record(*talk(told, "Noted."))
    await library.record(*talk("What people prefer on trains, they prefer on trains and buses."))
    asked = partial(library.found, "What do I prefer on trains?", at=NOON + DAY, budget_words=11, explain=True)
    before = await asked()
    assert recorded.episode_id is not None

    await library.pack(recorded.episode_id)
    after = await asked()

    assert told not in texts(before)
    assert told in texts(after)
    assert max(each.explain.signals["note"] for each in after.episodes if each.explain) > 0.3


async def test_what_is_asked_for_in_order_comes_in_order(library: Library) -> None:
    for days, place in ((100, "Riga"), (150, "Oslo"), (200, "Rome")):
        await library.record(*talk(f"We travelled to {place}.", begins=NOON + days * DAY))

    found = await library.found("In what order did we travel to Rome, Riga and Oslo?", at=NOON + 300 * DAY)

    times = [episode.started_at for episode in found.episodes]
    assert times == sorted(times)
    travels = [text.split()[-1] for text in texts(found) if "travelled" in text]
    assert travels == ["Riga.", "Oslo.", "Rome."]
