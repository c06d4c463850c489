"""Which labelled decisions and entities count as found in packs."""

from typing import Any

from benchmarks.chats import ChangeReport, PackReport, changes_of
from benchmarks.recall import message_id_of
from bus_schema.episodes import Decision, Entity, raw_log_id_of


def cited(*numbers: int) -> tuple[str, ...]:
    return tuple(raw_log_id_of("anna", message_id_of("anna", each)) for each in numbers)


LABELS: list[dict[str, Any]] = [
    {"text": "Use Kinvara as the only site", "messages": [7], "superseded_by": [27]},
    {"text": "Submit paper one in March", "messages": [41], "superseded_by": None},
]


def test_a_decision_is_found_by_a_cited_message_and_half_of_its_words() -> None:
    report = PackReport()
    items = [
        Decision(text="We use Kinvara as our only site then", raw_log_ids=cited(7)),
        Decision(text="The weather was fine", raw_log_ids=cited(41)),
        Decision(text="Submit paper one in March", raw_log_ids=cited(3)),
    ]

    report.add_decisions("anna", LABELS, items)

    assert report.as_json()["decisions"] == {"recall": 50.0, "precision": 33.3, "superseded_shown": 1, "superseded": 1}


def test_one_item_is_found_for_one_label_alone() -> None:
    report = PackReport()
    twice = [LABELS[0], LABELS[0]]

    report.add_decisions("anna", twice, [Decision(text="Kinvara is the only site to use", raw_log_ids=cited(7))])

    assert report.decisions == [True, False]


def test_entities_are_compared_by_their_stems_but_for_dates_and_amounts() -> None:
    report = PackReport()
    items = [
        Entity(name="Тамары Павловны", kind="person", raw_log_ids=cited(1)),
        Entity(name="5 мая", kind="date", raw_log_ids=cited(1)),
        Entity(name="Рига", kind="place", raw_log_ids=cited(1)),
    ]

    report.add_entities([{"name": "Тамара Павловна"}, {"name": "Зураб"}], items)

    assert report.as_json()["entities"] == {"recall": 50.0, "precision": 50.0}


def test_the_latest_word_is_first_where_it_is_before_every_earlier_one() -> None:
    report = ChangeReport()
    for found in (["c", "b", "a"], ["a", "c", "b"], ["c"], ["a"], []):
        report.add(found, {"a", "b"}, {"c"})

    assert report.as_json()["changes"] == {"both_shown": 40.0, "newest_first": 20.0, "questions": 5}


def test_without_a_file_the_topics_of_updates_are_asked_for() -> None:
    labels = {"anna": {"updates": [{"topic": "The site", "old": [7], "new": [27]}]}}

    (asked,) = changes_of(labels, None)

    assert (asked["chat_id"], asked["question"], asked["old"], asked["new"]) == ("anna", "The site", [7], [27])
