"""Past times that questions name, seen from Wednesday, 18 March 2026."""

from datetime import UTC, datetime

import pytest

from language.dates.intervals import time_in

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "begin", "end"),
    [
        ("What did we do on 2023-05-08?", "2023-05-08", "2023-05-09"),
        ("What happened in May 2023?", "2023-05-01", "2023-06-01"),
        ("Что было 8 мая 2023?", "2023-05-08", "2023-05-09"),
        ("Что я делал в январе?", "2026-01-01", "2026-02-01"),
        ("What did I say in December?", "2025-12-01", "2026-01-01"),
        ("о чём говорили вчера", "2026-03-17", "2026-03-18"),
        ("What was on March 8th?", "2026-03-08", "2026-03-09"),
        ("Who came in 2024?", "2024-01-01", "2025-01-01"),
        ("Куда ездили на прошлой неделе?", "2026-03-04", "2026-03-17"),
        ("Что обсуждали 2 месяца назад?", "2026-01-02", "2026-02-02"),
    ],
)
def test_the_time_that_a_question_names_is_understood(question: str, begin: str, end: str) -> None:
    found = time_in(question, NOW)

    assert found is not None
    assert (found.interval.begin.date().isoformat(), found.interval.end.date().isoformat()) == (begin, end)


@pytest.mark.parametrize("question", ["May I ask something?", "What may happen?", "on 2023-13-40", "кто такая Марта"])
def test_what_is_no_time_is_none(question: str) -> None:
    assert time_in(question, NOW) is None
