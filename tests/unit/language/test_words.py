"""Language, tokens, stems of English and Russian."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from language.words import Language, first_words, language_of, query_stems, stem, stems, terms, words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The harbour froze.", Language.ENGLISH),
        ("Гавань замёрзла.", Language.RUSSIAN),
        ("Мигрируем billing в Kubernetes, остались cron и API gateway.", Language.RUSSIAN),
        ("The word «тетрадь» means notebook in Russian.", Language.ENGLISH),
        ("", Language.ENGLISH),
        ("12 + 30 = 42", Language.ENGLISH),
    ],
)
def test_the_language_is_told_by_the_share_of_letters(text: str, language: Language) -> None:
    assert language_of(text) is language


def test_each_word_is_stemmed_by_its_own_alphabet() -> None:
    assert stem("heating") == stem("heated") == "heat"
    assert stem("тетради") == stem("Тетрадью")
    assert stem("берёза") == stem("береза")


def test_terms_are_the_stems_of_words_that_mean_something() -> None:
    assert terms("The pipe is under the streets, и лёд на реке") == [
        stem("pipe"),
        stem("street"),
        stem("лед"),
        stem("река"),
    ]


def test_words_keep_hyphens_apostrophes_decimals_together() -> None:
    assert words("the pool's thirty-one 4.5 or 2,310 MWh, см. т.е.") == [
        *("the", "pool's", "thirty-one", "4.5", "or", "2,310", "MWh", "см", "т.е"),
    ]


def test_stemming_in_many_threads_gives_the_same_stems() -> None:
    vocabulary = [
        f"{root}{ending}" for root in ("вод", "лед", "heat", "cool") for ending in ("ing", "ами", "s", "ов", "")
    ] * 50
    alone = [stem(word) for word in vocabulary]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(stem, vocabulary)) == alone


def test_first_words_are_cut_between_words() -> None:
    assert first_words("one two, three", 2) == "one two…"
    assert first_words("one two", 2) == "one two"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Releases", "release"),
        ("документов", "документ"),
        ("ёлка", "елки"),
        ("E-MAIL", "email"),
        ("prod-7", "Prod7"),
        ("don't", "dont"),
        ("Cafe\u0301", "café"),
        ("«Документ»", "документами"),
    ],
)
def test_forms_of_a_word_are_one(one: str, other: str) -> None:
    assert set(stems(one)) & set(stems(other))


def test_parts_of_a_word_with_joints_find_it() -> None:
    assert list(stems("multilingual-e5-small"))[1:2] == ["e5"]
    assert list(stems("v2.3")) == ["v2", "3", "v23"]


def test_what_is_no_word_is_left_out() -> None:
    assert list(stems("a" * 65 + " 🙂 -- _ «»")) == []


def test_small_words_are_not_what_a_question_is_about() -> None:
    assert query_stems("Где и когда будет релиз?") == {"релиз": "релиз"}
    assert query_stems("Who is it?") == {"who": "Who", "is": "is", "it": "it"}
    assert query_stems("?!") == {}


def test_a_word_that_may_break_is_one_word() -> None:
    assert list(stems("Hand\xadbook and hand\xad\nbooks")) == list(stems("Handbook and handbooks"))
