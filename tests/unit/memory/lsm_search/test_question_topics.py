"""Topics of questions, apart from what they say of the answer."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from language.words import query_stems
from memory.lsm.search.chat_index import ChatIndex, IndexedTurn
from memory.lsm.search.question_kinds import asks_for_order
from memory.lsm.search.questions import kinds_of, parse_question, without_form
from memory.lsm.search.ranking import match_words
from retrieval.segments import Scores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("When did I move? Answer in one sentence.", "When did I move?"),
        ("What do I cook? Please name only three things, no more.", "What do I cook?"),
        ("Keep it short. What did the doctor say?", "What did the doctor say?"),
        ("Когда я переехал? Ответь одним предложением.", "Когда я переехал?"),
        ("Что я готовлю? Пожалуйста, назови не больше трёх пунктов.", "Что я готовлю?"),
        # These are about something.
        ("I'm going to Oslo. List the things to pack.", None),
        ("We were in Rome. Name the hotel.", None),
        ("Я еду в Осло. Перечисли, что взять.", None),
        ("Answer in one sentence.", None),
        ("Name three points.", None),
        ("Hi! Tell me about my order.", None),
        ("Привет! Напиши пример.", None),
    ],
)
def test_what_is_said_of_the_answer_alone_is_no_part_of_the_question(question: str, kept: str | None) -> None:
    assert without_form(question) == (kept or question)


def test_the_form_of_the_answer_is_not_searched_for() -> None:
    question = parse_question("How did the boat get its name? Mention ONLY and ONLY ten items.", [], NOW)

    assert set(question.stems) == set(query_stems("boat get name"))
    assert question.clauses == ()


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Can you give me a comprehensive summary of how the greenhouse has progressed over time?", "greenhouse"),
        ("How did our discussions about bee hives evolve throughout our conversations, in order?", "bee hives"),
        ("Can you walk me through the order in which I brought up different aspects of welding?", "welding"),
        ("How did my focus on bees progress, in order?", "bees"),
        ("Summarize our conversation about the chat app", "chat app"),
        ("Give a summary of my mental change and progress", "my mental change progress"),
        ("Can you give me an overview of the development of my key rotation?", "development key rotation"),
        ("Вкратце: что мы обсуждали о теплице?", "теплице"),
        ("В каком порядке мы говорили о разных темах ремонта?", "ремонта"),
        # A question that has nothing else is about that.
        ("Give me an overview of our conversations in order", "Give overview conversations order"),
    ],
)
def test_an_overview_or_an_order_is_of_its_topic(question: str, topic: str) -> None:
    assert set(parse_question(question, [], NOW).stems) == set(query_stems(topic))


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("What did I first tell you about the boat?", "first boat"),
        ("Have I already mentioned allergies?", "already allergies"),
        ("What was it that you've said of the roof?", "roof"),
        ("The restaurant I told you about, where is it?", "restaurant"),
        ("What was I saying about Riga?", "Riga"),
        ("Когда я рассказывал о теплице?", "теплице"),
        ("Что мы вчера обсуждали про крышу?", "вчера крышу"),
        ("Упоминал ли я аллергию?", "аллергию"),
        # Said once more, they are a topic.
        ("When did I talk about my TED talk?", "TED talk"),
        ("What did I ask about the asking price?", "asking price"),
        # They are what somebody did, or does.
        ("What does Anna say about the roof?", "Anna say roof"),
        ("Who was mentioned in the will?", "mentioned"),
        ("How do I ask for a refund?", "ask refund"),
        # A question that has nothing else is about that.
        ("Did I tell?", "tell"),
        ("What have you said?", "said"),
    ],
)
def test_that_a_person_has_told_something_is_no_topic(question: str, topic: str) -> None:
    assert set(parse_question(question, [], NOW).stems) == set(query_stems(topic))


def test_the_halves_of_contractions_are_not_searched_for() -> None:
    assert set(parse_question("What's the boat that I'd sell if she'll let me?", [], NOW).stems) == {
        "boat",
        "sell",
        "let",
    }
    assert set(parse_question("Who’s Anna’s doctor?", [], NOW).stems) == {"anna", "s", "doctor"}


def test_of_how_often_something_was_told_each_time_is_counted() -> None:
    assert parse_question("How often have I told you about my knee?", [], NOW).counted == {"knee"}
    assert parse_question("Сколько раз я рассказывал тебе о колене?", [], NOW).counted == {"теб", "колен"}


def test_what_goes_without_saying_counts_for_how_long_a_question_is() -> None:
    overview = parse_question("Give me a comprehensive summary of our conversations about Python", [], NOW)

    assert set(overview.stems) == {"python"}
    assert overview.length == 5


def test_how_to_answer_is_no_kind_of_question() -> None:
    assert "overview" in kinds_of("Кратко: что мы решили о крыше?")
    assert "overview" not in kinds_of("Какой у меня размер обуви? Ответь кратко.")
    assert "order" in kinds_of("Which repairs were made? List them in order.")


def test_elsewhere_the_same_words_are_a_topic() -> None:
    assert set(query_stems("order item")) <= set(parse_question("Which item did I order?", [], NOW).stems)


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("How did my plans for the garden evolve, in order?", True),
        ("Tell me about the repairs in the right order.", True),
        ("Расскажи по порядку, как шёл ремонт", True),
        ("What did I buy in order to paint the boat?", False),
        ("What is in order for the audit?", False),
        ("Which books did I order?", False),
        ("What did I put in the order from the shop?", False),
        ("Is my visa paperwork in order?", False),
        ("List my friends in alphabetical order", False),
    ],
)
def test_an_order_is_asked_for_in_these_words(question: str, is_asked: bool) -> None:
    assert asks_for_order(question) == is_asked


@pytest.mark.parametrize(
    ("question", "is_of_assistant"),
    [
        ("What did you recommend for the roof?", True),
        ("Which of the tools you suggested is free?", True),
        ("What was your advice about the roof?", True),
        ("Что ты посоветовал мне насчёт крыши?", True),
        ("Что ты тогда ответила про крышу?", True),
        ("В чём была твоя рекомендация?", True),
        ("Что ты порекомендовал почитать?", True),
        ("Какой был ваш совет?", True),
        ("Напомни суть твоего ответа", True),
        ("Did you know where I parked?", False),
        ("What is my dog's name? Format your answer as JSON.", False),
        ("How would you suggest mending the roof?", False),
        ("Can you help me with the roof?", False),
        ("Что мне посоветовал кровельщик?", False),
        ("Как бы ты чинил крышу?", False),
    ],
)
def test_the_person_comes_first_unless_the_assistant_is_asked_what_it_said(
    question: str, is_of_assistant: bool
) -> None:
    assert parse_question(question, [], NOW).of_assistant == is_of_assistant


def test_whose_turn_it_is_counts_by_what_is_asked() -> None:
    index = ChatIndex(timedelta(hours=1))
    index.add(
        IndexedTurn(role, NOW + timedelta(minutes=minute), role, None, content, 5)
        for minute, (role, content) in enumerate([("user", "The roof leaks"), ("assistant", "Tar the roof")])
    )

    def signals(question: str) -> Mapping[str, Scores]:
        return match_words(index, parse_question(question, [], NOW)).signals

    assert signals("What did I say of the roof?")["user"].tolist() == [1, 0]
    assert "user" not in signals("What did you recommend for the roof?")
