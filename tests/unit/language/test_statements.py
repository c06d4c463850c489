"""Statements that cannot both hold, and those that say the same in almost the same words."""

from datetime import UTC, datetime

import pytest

from language.statements import Statement

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def read(text: str) -> Statement:
    return Statement(text, NOW)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The meeting is on Tuesday", "The meeting is on Thursday"),
        ("The meeting is on Tuesday.", "The meeting is on Thursday at 10:00."),
        ("Бюджет 2 млн", "Бюджет 3 млн"),
        ("The launch is on 5 May.", "Launch: 6 May 2025"),
        ("The CEO is Anna", "The CEO is Boris"),
        ("Директор — Анна Петрова", "Директор — Иван Сидоров"),
        ("Room 5 has 20 seats", "Room 5 has 30 seats"),
        ("The office is closed", "The office is not closed"),
        ("Офис открыт", "Офис не открыт"),
        ("The price of apples is 20 euros", "The price of apples is 30 dollars"),
        ("Sales in 2024 were 3 million", "Sales in 2024 were 4 million"),
        ("The budget of Apollo is 2 million", "The budget of Apollo for May is 3 million"),
        ("The budget is 2 million", "The budget was increased to 3 million"),
    ],
)
def test_other_values_of_one_subject_contradict_each_other(one: str, other: str) -> None:
    assert read(one).contradicts(read(other))
    assert read(other).contradicts(read(one))
    assert not read(one).repeats(read(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Room 5 is closed", "Room 6 is closed"),
        ("Комната 5 закрыта", "Комната 6 закрыта"),
        ("Version 2.1 is supported", "Version 2.2 is supported"),
        ("Sales in 2024 were 3 million", "Sales in 2025 were 4 million"),
        ("Продажи в 2024 году 3 млн", "Продажи в 2025 году 4 млн"),
        ("The price of apples is 20 euros", "The price of pears is 30 euros"),
        ("The Red printer costs 200 euros", "The Blue printer costs 300 euros"),
        ("Red printer costs 200 euros", "The Blue printer costs 300 euros"),
        ("Аренда склада стоит 100 тысяч рублей", "Аренда офиса стоит 200 тысяч рублей"),
        ("The standup of the design team is on Tuesday", "The standup of the backend team is on Thursday"),
        ("Совещание отдела продаж во вторник", "Совещание отдела закупок в четверг"),
        ("The meeting is on Tuesday", "Lunch at the meeting is vegetarian"),
        ("Sprint 4 starts on 5 May", "Sprint 5 starts on 19 May"),
        ("The budget of Apollo is 2 million", "The budget of Zeus is 3 million"),
        ("The meeting is on Tuesday", "The meeting lasts 2 hours"),
        ("The meeting is on Tuesday", "The office is closed on Thursday"),
        ("The launch is on 5 May.", "The launch of Aurora is on 5 May."),
        ("Payment is due before delivery", "Payment is due after delivery"),
        ("Maria likes cats", "Anna likes cats"),
        ("The office is closed until May 5", "The office is closed from May 5"),
        ("The office is closed on May 5", "The office is closed by May 5"),
        ("Скидка действует до 5 мая", "Скидка действует с 5 мая"),
        ("Price: $20", "Price: €20"),
        ("The rate is 5%", "The rate is 5"),
        ("Budget 2 млн", "Budget 2 тыс"),
        ("The lake is at -5 degrees", "The lake is at 5 degrees"),
    ],
)
def test_what_is_of_something_else_neither_contradicts_nor_repeats(one: str, other: str) -> None:
    assert not read(one).contradicts(read(other))
    assert not read(one).repeats(read(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The launch is on 5 May.", "Launch: 5 May 2025"),
        ("The meeting is on Tuesday", "The meeting takes place on Tuesday"),
        ("The office is closed until May 5", "Office closed until 5 May."),
        ("Запуск 5 мая", "Запуск состоится 5 мая 2025 года"),
        ("Бюджет 2 млн", "Бюджет составляет 2 млн"),
    ],
)
def test_the_same_values_in_almost_the_same_words_are_a_repetition(one: str, other: str) -> None:
    assert read(one).repeats(read(other))
    assert not read(one).contradicts(read(other))
