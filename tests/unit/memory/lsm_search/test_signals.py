"""The signals of the search, each by itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bus_schema.lsm_search import SearchEpisodes
from language.words import query_stems
from memory.lsm.search.chat_index import ChatIndex, IndexedTurn
from memory.lsm.search.question_kinds import asks_for_current, asks_how_often, is_overview
from memory.lsm.search.questions import parse_question
from memory.lsm.search.ranking import DEFAULT_WEIGHTS, compare, fit_budget, interleave, match_words, rank
from memory.lsm.search.tuning import TrainingExample, fit_weights, mean_recall
from retrieval.bm25 import CONTEXT
from retrieval.similarity import top
from tests.clocks import NOON

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def an_index(*turns: str, every: timedelta = timedelta(minutes=1), speaker: str | None = None) -> ChatIndex:
    index = ChatIndex(gap=3 * HOUR)
    index.add(
        IndexedTurn(str(n), NOW + n * every, "user", speaker, text, len(text.split())) for n, text in enumerate(turns)
    )
    return index


def test_a_turn_has_the_words_of_those_before_it_unless_there_was_a_pause() -> None:
    said = ("Where is the key?", "Under the blue pot.", "Thanks.")

    together = an_index(*said).postings.scores(["key"], (-2, -1, 0, 1))
    apart = an_index(*said, every=4 * HOUR).postings.scores(["key"], (-2, -1, 0, 1))

    assert (together > 0).tolist() == [True, True, True]
    assert (apart > 0).tolist() == [True, False, False]


def chat_with_an_assistant(*said: str) -> ChatIndex:
    """A person's messages and the replies in turn."""
    index = ChatIndex(gap=3 * HOUR)
    for number, text in enumerate(said):
        role, words = "assistant" if number % 2 else "user", len(text.split())
        index.add([IndexedTurn(str(number), NOW + number * timedelta(minutes=1), role, None, text, words)])
    return index


def test_what_an_assistant_says_is_context_of_what_it_answers_and_of_nothing_else() -> None:
    said = ("I bought a boat.", "Yachts need a berth.", "Where do I get paint?", "At a chandler's.", "And brushes?")
    index = chat_with_an_assistant(*said)

    def heard(word: str) -> list[int]:
        return [int(each) for each in np.flatnonzero(index.postings.scores(query_stems(word), CONTEXT))]

    # The boat is in what it was answered with, and in what the person says next, which need not name it again.
    assert heard("boat") == [0, 1, 2]
    assert heard("berth") == [0, 1]
    assert heard("chandler") == [2, 3]
    # People who talk with each other go on from what was said.
    assert np.flatnonzero(an_index(*said).postings.scores(["berth"], CONTEXT)).tolist() == [0, 1, 2, 3]


def test_the_question_of_an_assistant_is_context_of_its_answer_unless_a_long_reply_ends_with_it() -> None:
    short = chat_with_an_assistant("Hello", "Which boat do you have now?", "A Bavaria 37.")
    long = chat_with_an_assistant("Hello", f"{'Paint it twice. ' * 25} Do you want to know which boat is best?", "No.")

    assert np.flatnonzero(short.postings.scores(["boat"], CONTEXT)).tolist() == [0, 1, 2]
    assert np.flatnonzero(long.postings.scores(["boat"], CONTEXT)).tolist() == [0, 1]


def test_an_index_that_is_asked_while_it_grows_scores_like_one_that_was_built_at_once() -> None:
    said = [f"Anna: the key number {number}" if number % 3 else "Boris: nothing" for number in range(120)]
    times = [NOW + number * timedelta(minutes=1) + (number // 7) * 4 * HOUR for number in range(len(said))]
    turns = [
        IndexedTurn(str(number), time, "user", None, text, len(text.split()))
        for number, (text, time) in enumerate(zip(said, times, strict=True))
    ]
    growing, at_once = ChatIndex(gap=3 * HOUR), ChatIndex(gap=3 * HOUR)
    at_once.add(turns)
    for turn in turns:
        growing.add([turn])
        growing.postings.scores(["key"], CONTEXT)
        growing.speakers()

    assert growing.speakers() == at_once.speakers() == ["Boris", "Anna"]
    assert growing.postings.scores(["key"], CONTEXT).tolist() == at_once.postings.scores(["key"], CONTEXT).tolist()


def test_of_a_long_question_the_rarest_words_are_compared() -> None:
    common = [f"common{number}" for number in range(30)]
    index = an_index(*[" ".join(common)] * 5, "A quince stands by the lake.")

    matches = match_words(index, parse_question(f"{' '.join(common)} quince and lake {common[0]}", [], NOW))

    assert len(matches.shares) == 16
    assert {"quinc", "lake"} <= set(matches.shares)
    assert matches.signals["words"].argmax() == 5


def test_words_that_nobody_has_many_of_count_for_little() -> None:
    index = an_index("We went to the lake.", "It rained.")

    far = match_words(index, parse_question("lake yacht regatta sponsor contract", [], NOW)).signals["words"].max()
    near = match_words(index, parse_question("lake", [], NOW)).signals["words"].max()

    assert far < near / 2


def test_names_before_a_colon_are_speakers_where_most_turns_have_one() -> None:
    script = an_index(*["Anna: I like tea.", "Boris: I like milk."] * 3)
    notes = an_index("Note: buy milk.", "Yes.", "No.", "Maybe.", "Fine.")

    assert script.speakers() == ["Anna", "Boris"]
    assert notes.speakers() == []


def test_a_turn_without_a_vector_is_as_near_as_the_average() -> None:
    index = an_index("one", "two", "three")
    index.put_vectors({"0": np.array([1, 0], "<f4").tobytes(), "1": np.array([0, 1], "<f4").tobytes()})

    found = rank(
        index,
        match_words(index, parse_question("four", [], NOW)),
        compare(index, np.array([1, 0], "<f4").tobytes()),
        DEFAULT_WEIGHTS,
        3,
    )

    assert found.order == [0, 2, 1]


def test_each_clause_of_a_question_has_its_own_best_among_the_first() -> None:
    assert interleave([1, 2, 3, 4, 5, 6, 7], [[9], [8]])[:4] == [1, 2, 9, 8]
    assert len(parse_question("What did Anna cook and where does Boris work?", [], NOW).clauses) == 2
    assert parse_question("What did Anna cook?", [], NOW).clauses == ()


def test_no_turn_is_cut_to_fit() -> None:
    words = np.array([5, 9, 2], dtype=np.uint32)

    assert fit_budget([1, 0, 2], words, 10) == [1]
    assert fit_budget([0, 1, 2], words, 8) == [0, 2]


@pytest.mark.parametrize("wanted", [0, 1, 3, 6])
def test_the_best_few_are_those_of_the_whole_order(wanted: int) -> None:
    scores = np.array([1.0, 3.0, 2.0, 3.0, 0.0, -1.0])

    assert top(scores, wanted).tolist() == [1, 3, 2, 0, 4, 5][:wanted]


@pytest.mark.parametrize("shape", ["any", "few values", "the same by turns", "highest at the end", "endless", "two"])
def test_the_best_of_very_many_are_those_of_the_whole_order(shape: str) -> None:
    chance, number = np.random.default_rng(6), np.arange(200_000)
    scores = {
        "any": chance.standard_normal(len(number)),
        "few values": chance.integers(0, 3, len(number)),
        "the same by turns": number % 2,
        "highest at the end": number,
        "endless": np.where(number % 500, -np.inf, number),
        "two": number < 2,
    }[shape].astype(np.float32)

    for wanted in (1, 3, 40, 1700, 60_000, len(number)):
        assert top(scores, wanted).tolist() == np.argsort(-scores, kind="stable")[:wanted].tolist()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did we decide about Orion?", True),
        ("О чём мы говорили в мае?", True),
        ("When did Anna go to Riga?", False),
        ("Сколько стоил ремонт?", False),
    ],
)
def test_an_overview_is_told_from_a_question_about_details(question: str, expected: bool) -> None:
    assert is_overview(question) is expected


def test_weights_learn_which_signal_was_of_use() -> None:
    chance = np.random.default_rng(1)
    lessons = []
    for _ in range(40):
        useful, useless = chance.random(300, np.float32), chance.random(300, np.float32)
        signals = {"words": useless, "meaning": useful}
        lessons.append(TrainingExample(signals, np.full(300, 40, np.uint32), [int(useful.argmax())]))
    before = {"words": 5.0, "meaning": 0.0}

    after = fit_weights(lessons[:30], before)

    assert after["meaning"] > 1
    assert (mean_recall(lessons[30:], after) or 0) > (mean_recall(lessons[30:], before) or 0)
    doubled = [replace(lesson, weight=2.0) for lesson in lessons[:30]]
    assert fit_weights(doubled, before)["meaning"] > after["meaning"]
    rejected = [replace(lesson, rejected=[int(lesson.signals["words"].argmax())]) for lesson in lessons[:30]]
    assert fit_weights(rejected, before)["words"] < after["words"] - 0.1


def test_a_search_for_nothing_or_of_no_size_is_none() -> None:
    for wrong in ({"query": " "}, {"budget_words": -1}, {"budget_words": 0}, {"at": NOW.replace(tzinfo=None)}):
        with pytest.raises(ValueError, match=r".+"):
            SearchEpisodes.model_validate({"query": "dog", "chat_id": "anna"} | wrong)


@pytest.mark.parametrize(
    "question",
    [
        "What happened in February 2025?",
        "Что мы обсуждали в январе?",
        "What did we talk about last week?",
        "What did Anna say on March 3?",
        "Расскажи, что было вчера",
        "What was going on between March and May 2025?",
        "What happened in May?",
        "What happened from January to March?",
        "Can you tell me what happened yesterday?",
        "Расскажи про вчера",
    ],
)
def test_a_question_about_a_time_alone_is_known(question: str) -> None:
    assert parse_question(question, ["Anna", "Boris"], NOON).is_of_time


@pytest.mark.parametrize(
    "question",
    [
        "What did I say about the cat in May?",
        "What do I have to do before December?",
        "Where will I be in August?",
        "What am I doing today?",
        "Что мне делать сегодня?",
        "Что будет 20 августа?",
        "What did June say?",
        "What was I going to do yesterday?",
        "today",
    ],
)
def test_topics_plans_and_names_are_no_question_about_a_time_alone(question: str) -> None:
    assert not parse_question(question, ["Anna", "Boris"], NOON).is_of_time


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        ("How often was I at the dentist in May 2025?", {"dentist"}),
        ("Сколько раз я ходил в бассейн в мае 2025 года?", {"ходить", "бассейн"}),
        ("How often did I quarrel with June?", {"quarrel", "June"}),
        ("How often should I water the ficus?", set()),
        ("Как часто я должен поливать фикус?", set()),
        ("How many times a week should I take the pills?", set()),
        ("What should you do every time I ask for a recipe?", set()),
        ("Как часто нужно менять масло в машине?", set()),
        ("Сколько раз в день принимать таблетки?", set()),
        ("Что ты отвечаешь каждый раз, когда я опаздываю?", set()),
    ],
)
def test_what_is_counted_is_neither_advice_nor_the_time(question: str, counted: set[str]) -> None:
    assert parse_question(question, [], NOW).counted == set(query_stems(" ".join(counted)))


@pytest.mark.parametrize(
    "question",
    [
        "How often did I meet Max?",
        "How many times did we have to postpone the meeting?",
        "Do you remember every time I visited the dentist?",
        "Tell me how many times a client complained about the invoice.",
        "Сколько раз я спрашивал, сколько стоит ремонт?",
        "Сколько раз нам надо было перенести встречу?",
        "Сколько раз в день рождения мамы шёл дождь?",
        "Ты помнишь каждый раз, когда я болел?",
    ],
)
def test_what_was_is_counted_however_it_is_said(question: str) -> None:
    assert asks_how_often(question)


@pytest.mark.parametrize(
    ("question", "is_current"),
    [
        ("Is Oisín still against it?", True),
        ("Which field sites do we use these days?", True),
        ("Has the deadline been changed?", True),
        ("Сколько теперь платим за склад?", True),
        ("Изменились ли условия договора?", True),
        ("Тимур больше не ходит в бассейн?", True),
        ("Did the date of the launch change after the audit?", True),
        ("What has changed in the contract?", True),
        ("Where did I buy the exchange rate table?", False),
        ("How do I change a tyre?", False),
        ("What changes did we discuss in March?", False),
        ("Did I go to the climate change conference?", False),
        ("What was the latest version in 2019?", False),
        ("Кто тогда был нынешним директором?", False),
        ("Which stillness did she write of?", False),
        ("Сменная обувь где?", False),
        ("Где мы купили дачу?", False),
    ],
)
def test_a_question_says_itself_that_it_asks_how_things_stand(question: str, is_current: bool) -> None:
    assert asks_for_current(question) is is_current
