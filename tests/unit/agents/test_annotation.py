"""Tasks, facts, moods and changes that the rules find in single messages of everyday talk."""

from datetime import datetime

import pytest

from agents.annotation import Annotation, SpokenMessage, annotate

WEDNESDAY = datetime.fromisoformat("2026-03-11T10:00:00+03:00")


def heard(text: str, context: str | None = None) -> Annotation:
    return annotate(SpokenMessage(text=text, user="anna", at=WEDNESDAY, context=context))


def tasks(text: str) -> list[tuple[str, str | None, str | None]]:
    return [(task.text, task.owner, task.due) for task in heard(text).tasks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Напомни мне завтра в 9:00 позвонить маме", [("Позвонить маме", "me", "2026-03-12T09:00")]),
        ("Remind me tomorrow at 9am to call mom", [("Call mom", "me", "2026-03-12T09:00")]),
        ("На мне висит отчёт, сдавать 30-го", [("Сдавать отчёт", "me", "2026-03-30")]),
        ("The mockups are Olga's now", [("The mockups", "Olga", None)]),
        ("до конца недели допишу главу", [("Дописать главу", "me", "2026-03-13")]),
        ("I've to finish the deck by thursday", [("Finish the deck", "me", "2026-03-12")]),
        ("не могли бы вы прислать счёт до вторника", [("Прислать счёт", None, "2026-03-17")]),
        ("would you be able to cover my shift on thursday?", [("Cover my shift", None, "2026-03-12")]),
        ("начальство требует сдать табели до среды", [("Сдать табели", None, "2026-03-18")]),
        ("бабушке лекарства купить не забыть бы", [("Купить бабушке лекарства", "me", None)]),
        ("нужно чтобы Рома завтра съездил на объект", [("Съездить на объект", "Рома", "2026-03-12")]),
        ("my turn to cook tomorrow", [("Cook", "me", "2026-03-12")]),
    ],
)
def test_a_task_is_heard_with_its_owner_and_its_date(
    text: str, expected: list[tuple[str, str | None, str | None]]
) -> None:
    assert tasks(text) == expected


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("Алия, забронируй переговорку", "Алия"),
        ("Эльдар сделает замеры", "Эльдар"),
        ("Попроси Гульнару прислать накладные", "Гульнара"),
        ("Серёж, можешь посмотреть принтер?", "Серёжа"),
        ("за Мариной презентация", "Марина"),
        ("Ahmed will send the quotes", "Ahmed"),
        ("Wei to draft the agenda", "Wei"),
        ("Kev, could you drop the keys at reception?", "Kev"),
        ("расписание жду от Анны Сергеевны к пятнице", "Анна Сергеевна"),
    ],
)
def test_a_name_needs_no_list(text: str, owner: str) -> None:
    assert [task.owner for task in heard(text).tasks] == [owner]


@pytest.mark.parametrize(
    "text",
    [
        "я бы на твоём месте уволился",
        "если выиграю в лотерею, куплю яхту",
        "начальник кричал «сдайте отчёты к утру!»",
        "как думаешь, успеем?",
        "больше так не делай",
        "I might go to the gym later",
        "if I win the lottery I'll buy you a boat",
        "the kids shouted 'buy us a pony today'",
        "see you tomorrow",
        "did you send the invoice?",
    ],
)
def test_what_nobody_is_to_do_is_no_task(text: str) -> None:
    assert heard(text).tasks == []


def test_what_a_clause_leaves_out_is_said_before_it() -> None:
    assert tasks("Кран на кухне течёт. Фарид, почини до субботы") == [
        ("Починить — Кран на кухне течёт", "Фарид", "2026-03-14")
    ]
    assert tasks("the invoice for Harris is due on friday, Beth can you do it") == [
        ("Do the invoice for Harris", "Beth", "2026-03-13")
    ]


@pytest.mark.parametrize(
    ("before", "text", "change", "due"),
    [
        ("надо забрать посылку", "забрал, лежит у меня", "done", None),
        ("Лена, закажи воду", "воду привезли", "done", None),
        ("I'll pick up the parcel", "got it", "done", None),
        ("sort the bins tonight", "did the bins", "done", None),
        ("в субботу поедем на дачу", "дача отменяется, дождь весь день", "cancelled", None),
        ("вечером в бассейн", "в бассейн сегодня не иду", "cancelled", None),
        ("I'll bake a cake for saturday", "no cake needed, Jo's bringing one", "cancelled", None),
        ("завтра сдам отчёт", "с отчётом затык, сдам в пятницу", "moved", "2026-03-13"),
        ("встреча с юристом в 15:00", "юрист попросил на час позже", "moved", "2026-03-11T16:00"),
        ("I'll call the bank today", "bank's closed, will ring tomorrow", "moved", "2026-03-12"),
    ],
)
def test_what_becomes_of_a_task_of_a_moment_ago_is_understood(
    before: str, text: str, change: str, due: str | None
) -> None:
    assert [(each.change, each.due) for each in heard(text, before).changes] == [(change, due)]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("помою машину в субботу", "а где ты её моешь обычно?"),
        ("I'll walk the dog at 6", "how long did you walk the dog for?"),
        ("I'll send the proposal", "The minutes were sent to the board."),
    ],
)
def test_talk_of_a_task_does_not_change_it(before: str, text: str) -> None:
    assert heard(text, before).changes == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("У Саши непереносимость лактозы", "fact"),
        ("парковка за домом платная", "fact"),
        ("The spare key is under the blue pot", "fact"),
        ("The boiler man comes every october", "fact"),
        ("Жена не переносит кошек", "preference"),
        ("Jo prefers texts to calls", "preference"),
        ("Решили ставить окна летом", "decision"),
        ("We've agreed no meetings on fridays", "decision"),
        ("директор школы Наталья Викторовна", "role"),
        ("Sofia runs the north team", "role"),
    ],
)
def test_how_things_are_is_a_fact(text: str, kind: str) -> None:
    assert [fact.kind for fact in heard(text).facts] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "вчера был сильный дождь",
        "ну и жара сегодня",
        "мне кажется он прав",
        "what a game last night",
        "it's raining again",
    ],
)
def test_talk_is_no_fact(text: str) -> None:
    assert heard(text).facts == []


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("как же я счастлива", 1),
        ("тоскливо что-то", -1),
        ("замечательно, третий раз переделываем", -1),
        ("knackered, can't do this anymore", -1),
        ("great, another form to fill in", -1),
        ("I got the job!!", 1),
        ("надо продлить страховку", 0),
        ("спасибо за помощь", 0),
        ("ok great, see you there", 0),
        ("Jo hates phone calls", 0),
    ],
)
def test_a_mood_is_the_speakers_and_neither_courtesy_nor_matter_of_fact(text: str, sign: int) -> None:
    mood = heard(text).mood

    assert (0 if abs(mood) < 0.2 else 1 if mood > 0 else -1) == sign
