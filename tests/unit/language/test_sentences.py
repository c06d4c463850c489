"""Sentence boundaries of English and Russian."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.sentences import LONGEST_SENTENCE_WORDS, leans_back, sentence_spans, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It cost 4.5 million. Prof. Brandt paid.", ["It cost 4.5 million.", "Prof. Brandt paid."]),
        ("They grow figs, pears, etc. The soil is poor.", ["They grow figs, pears, etc.", "The soil is poor."]),
        ("The answer is no. The town waits.", ["The answer is no.", "The town waits."]),
        ("J. R. Smith came. He left.", ["J. R. Smith came.", "He left."]),
        ("А. С. Пушкин приехал. Шёл снег.", ["А. С. Пушкин приехал.", "Шёл снег."]),
        ("Это было в 2019 г. Она ушла.", ["Это было в 2019 г.", "Она ушла."]),
        ("Родилась в г. Пермь. Жила там же.", ["Родилась в г. Пермь.", "Жила там же."]),
        ("Билет стоит 40 руб. Проезд платный.", ["Билет стоит 40 руб.", "Проезд платный."]),
        ("Живёт на ул. Садовой. Давно.", ["Живёт на ул. Садовой.", "Давно."]),
        ("Снег, т. е. зима. Лёд.", ["Снег, т. е. зима.", "Лёд."]),
        (
            "«Я взяла реку. Она моя», — сказала Вера. Так и было.",
            ["«Я взяла реку. Она моя», — сказала Вера.", "Так и было."],
        ),
        ('He said "No. Never." Then he left.', ['He said "No. Never."', "Then he left."]),
        ("**Bold. Still bold.** After.", ["**Bold. Still bold.**", "After."]),
        ("It runs `a. B` now. Done.", ["It runs `a. B` now.", "Done."]),
        ("See [the note. It is long](x). Next.", ["See [the note. It is long](x).", "Next."]),
        ("Wait… what? Yes.", ["Wait… what?", "Yes."]),
        ("First line\nstill first. Second.", ["First line still first.", "Second."]),
        ("1. Heat the oven.", ["1. Heat the oven."]),
        ("", []),
        ("   ", []),
    ],
)
def test_sentences_end_where_a_reader_says_they_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["Первое предложение.", "Второе!", "Третье?"],
        ["Т. е. он приехал в г. Москва в 2020 г.", "Потом уехал."],
        ["Роман А. С. Пушкина, см. рис. 3.", "Далее."],
        ["Dr. Smith met Mr. J. R. Jones at 5 p.m. on Main St. Nobody saw.", "It rained."],
        ["Version 2.10 of example.org is out…", "“Really?”", "Yes."],
        ["«Да!» — сказал он.", "Все ушли."],
        ["1. Введение в тему.", "2. Выводы."],
        ["Room No. 5 is free.", "She said no.", "He went."],
    ],
)
def test_spans_leave_out_the_space_between_sentences(expected: list[str]) -> None:
    text = "  ".join(expected)

    assert [text[start:end] for start, end in sentence_spans(text)] == expected


@given(st.text(alphabet='аБ bC.!?…"«»()[]*` \n', max_size=300))
def test_cutting_into_sentences_loses_nothing(text: str) -> None:
    assert " ".join(sentences(text)).split() == text.split()


def test_a_sentence_without_an_end_is_cut_at_a_comma() -> None:
    text = ", ".join(["several words here"] * 100)

    cut = sentences(text)

    assert len(cut) > 2
    assert max(len(each.split()) for each in cut) <= LONGEST_SENTENCE_WORDS
    assert all(each.endswith(",") for each in cut[:-1])
    assert " ".join(cut) == text


def test_a_stray_quotation_mark_spoils_a_few_sentences_at_most() -> None:
    text = 'He said "this. ' + " ".join(f"Sentence number {number} stands alone." for number in range(60))

    assert len(sentences(text)) > 30


@pytest.mark.parametrize(
    "sentence",
    [
        "It was turned down twice.",
        "However, the town waited.",
        "In other words, nothing happened.",
        "A heat pump lifts it to 55 °C.",
        "The merger of those departments helped.",
        "Однако прямой линии нет.",
        "Кроме того, бур сломан.",
        "Бур для неё стоит дорого.",
        "**This** is why.",
        '"The walk was long," she says.',
        "«Я взяла реку», — вспоминает она.",
    ],
)
def test_a_sentence_that_points_back_leans_on_the_one_before(sentence: str) -> None:
    assert leans_back(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The pump was loud until it was boxed in.",
        "In its first full year the pool bought less gas.",
        "Neighbours complained, and they were right.",
        "Первую тетрадь едва не потеряли: в 1995 году её залило.",
        "There are twelve buses.",
    ],
)
def test_a_sentence_that_names_what_it_means_stands_alone(sentence: str) -> None:
    assert not leans_back(sentence)
