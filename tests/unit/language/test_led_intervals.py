"""Times that questions lead up to: ranges, bounds, what came since or before; seen from Wednesday, 18 March 2026."""

from datetime import UTC, datetime

import pytest

from language.dates.intervals import time_in

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
EVER = "0001-01-02"
TOMORROW = "2026-03-19"


@pytest.mark.parametrize(
    ("question", "begin", "end"),
    [
        ("What did we decide between March 2025 and May 2025?", "2025-03-01", "2025-06-01"),
        ("Что решили с марта по май 2025?", "2025-03-01", "2025-06-01"),
        ("What did I read from 2023 to 2024?", "2023-01-01", "2025-01-01"),
        ("Where was I between August 11 and August 15 2025?", "2025-08-11", "2025-08-16"),
        ("Who joined since 2024?", "2024-01-01", TOMORROW),
        ("What changed since December?", "2025-12-01", TOMORROW),
        ("What happened from March 2024 to today?", "2024-03-01", TOMORROW),
        ("Что делали с 2024 года?", "2024-01-01", TOMORROW),
        ("What changed after the 5th of May 2025?", "2025-05-06", TOMORROW),
        ("Что изменилось после мая 2025 года?", "2025-06-01", TOMORROW),
        ("What did John do the week before August 3, 2025?", "2025-07-26", "2025-08-03"),
        ("What happened the day after May 5, 2025?", "2025-05-06", "2025-05-07"),
        ("What did we discuss from March 2024 to May?", "2024-03-01", "2024-06-01"),
        ("The puppy that she got two weeks before August 11, 2025?", "2025-07-27", "2025-08-11"),
    ],
)
def test_a_range_is_understood(question: str, begin: str, end: str) -> None:
    found = time_in(question, NOW)

    assert found is not None
    assert (found.interval.begin.date().isoformat(), found.interval.end.date().isoformat()) == (begin, end)
    assert not found.interval.is_bound


@pytest.mark.parametrize(
    ("question", "end"),
    [
        ("What was the budget as of May 2025?", "2025-06-01"),
        ("Сколько было денег по состоянию на 1 марта?", "2026-03-02"),
        ("How many has Nate won by July 10, 2025?", "2025-07-11"),
        ("What did I think before June 2025?", "2025-06-01"),
        ("Что было до 1 февраля 2026?", "2026-02-01"),
        ("How many days before May 5, 2025 did I call?", "2025-05-05"),
        ("What did we decide before December?", "2025-12-01"),
        # A time to come is no bound of what was said.
        ("What must I send by September?", TOMORROW),
        ("Что надо сделать до сентября?", TOMORROW),
    ],
)
def test_as_of_and_before_are_upper_bounds(question: str, end: str) -> None:
    found = time_in(question, NOW)

    assert found is not None
    assert (found.interval.begin.date().isoformat(), found.interval.end.date().isoformat()) == (EVER, end)
    assert found.interval.is_bound


def test_the_words_that_name_the_time_are_known() -> None:
    question = "What did we decide between March and May 2025 about the cat?"
    found = time_in(question, NOW)

    assert found is not None
    assert question[found.start : found.stop] == "between March and May 2025"
    assert time_in("I paid from 50 to 2000 dollars", NOW) is None
