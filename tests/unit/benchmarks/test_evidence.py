"""When a turn that is returned counts as found, and how sessions are recorded."""

from datetime import UTC, datetime

from benchmarks.evidence import judge, shares
from benchmarks.locomo import parts_of
from benchmarks.locomo_data import Question
from bus_schema.lsm import RecordExchange, SaidMessage

TEXTS = {
    "long": " ".join(f"word{n}" for n in range(500)),
    "middle": " ".join(f"w{n}" for n in range(70)),
    "short": "Yes, on the 4th of May next year at ten",
}
QUESTION = Question("What?", "update", "", frozenset(TEXTS))


def first(words: int) -> dict[str, str]:
    return {name: " ".join(text.split()[:words]) for name, text in TEXTS.items()}


def test_eight_words_of_every_turn_find_nothing() -> None:
    report = shares(
        [
            judge(QUESTION, first(5), TEXTS),
            judge(Question("Which?", "x", "", frozenset({"long", "middle"})), first(8), TEXTS),
        ]
    )

    assert (report["any"], report["all"], report["evidence"]) == (0.0, 0.0, 0.0)


def test_sixty_words_of_a_long_turn_and_more_than_half_of_a_shorter_one_are_enough() -> None:
    assert judge(QUESTION, first(60), TEXTS).enough == (True, True, True)
    found = dict(zip(QUESTION.evidence, judge(QUESTION, first(42), TEXTS).enough, strict=True))
    assert found == {"long": False, "middle": True, "short": True}


def test_only_uncut_turns_are_whole() -> None:
    found = dict(zip(QUESTION.evidence, judge(QUESTION, first(70), TEXTS).whole, strict=True))

    assert found == {"long": False, "middle": True, "short": True}


def test_a_turn_that_is_not_returned_is_not_found() -> None:
    verdict = judge(QUESTION, {"long": TEXTS["long"]}, TEXTS)

    assert sum(verdict.enough) == 1
    assert shares([verdict]) == {"any": 100.0, "all": 0.0, "evidence": 33.3, "questions": 1}


def test_a_session_of_any_length_is_recorded_in_parts_that_are_taken() -> None:
    session = tuple(
        SaidMessage(role="user", content=f"word {number}", time=datetime(2026, 3, 1, tzinfo=UTC))
        for number in range(430)
    )

    parts = [RecordExchange(chat_id="anna", messages=part).messages for part in parts_of(session)]

    assert list(map(len, parts)) == [200, 200, 30]
    assert sum(parts, start=()) == session
