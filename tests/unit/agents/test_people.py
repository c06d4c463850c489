"""Who is meant by a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.people import KnownPeople, Person, same_name

KNOWN = KnownPeople([Person("boris_p", ("Борис Петров", "Боря", "Boris")), Person("kate", ("Kate Brown",))])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Отправь Ирине и Павлу, пусть Лев с Марией проверят.", ["Ирина", "Павел", "Лев", "Мария"]),
        ("Передай Игорю, Илье и Серёже.", ["Игорь", "Илья", "Серёжа"]),
        ("Tom asked Mary's sister to call Will.", ["Tom", "Mary"]),
        ("Сегодня хорошая погода.", []),
        ("in may i met rose", []),
    ],
)
def test_given_names_are_recognised_in_every_case(text: str, names: list[str]) -> None:
    assert [each.name for each in KnownPeople().mentions(text)] == names


@pytest.mark.parametrize("text", ["Спроси Борю.", "Это к Борису.", "@boris_p, привет", "С Борисом Петровым"])
def test_who_is_known_goes_by_their_first_name_and_has_an_id(text: str) -> None:
    assert [(each.name, each.user_id) for each in KNOWN.mentions(text)] == [("Борис Петров", "boris_p")]


def test_who_is_known_in_two_alphabets_is_spoken_of_in_the_one_that_was_used() -> None:
    assert [each.name for each in KNOWN.mentions("Ask Boris, he knows.")] == ["Boris"]


def test_a_mention_says_where_it_stands() -> None:
    text = "Пусть @kate решит"
    (found,) = KNOWN.mentions(text)

    assert text[found.start : found.end] == "@kate"


def test_a_user_whom_nobody_has_introduced_goes_by_their_id() -> None:
    assert KNOWN.name_of("kate") == "Kate Brown"
    assert KNOWN.name_of("u-17") == "u-17"


def test_two_forms_of_one_name_are_the_same() -> None:
    assert same_name("Ивану", "Иван")
    assert same_name("Пётр", "Петра")
    assert not same_name("Иван", "Ирина")


@given(st.text(max_size=60))
def test_any_text_can_be_searched_for_names(text: str) -> None:
    assert all(text[each.start : each.end] for each in KNOWN.mentions(text))
