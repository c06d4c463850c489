"""Whose a task is and when it is due, by the grammar of everyday sentences; said on Wednesday, 11 March, at 10:30."""

import pytest

from agents.fragments import message_sentences
from agents.people import KnownPeople
from agents.syntax.clauses import ImpliedOwner
from agents.task_manager.extraction import NOTHING_BEFORE, find_likely_tasks, find_tasks, preceding_text
from tests.fragments import MORNING

Heard = list[tuple[str, str | None, str | None]]
NOBODY_KNOWN = KnownPeople()


def heard(text: str) -> Heard:
    """Text, owner and due day (with its time, if one was named) of every task of a message."""
    found: Heard = []
    before = NOTHING_BEFORE
    for sentence in message_sentences(text):
        for task in find_tasks(sentence, MORNING, NOBODY_KNOWN, before):
            implied = {ImpliedOwner.SPEAKER: "me", ImpliedOwner.NOBODY: None}
            owner = implied[task.doer] if isinstance(task.doer, ImpliedOwner) else task.doer.name
            due = task.due.at.strftime("%a %H:%M" if task.due.has_time else "%a %d") if task.due else None
            found.append((task.text, owner, due))
        before = preceding_text(sentence, MORNING, NOBODY_KNOWN)
    return found


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        # The subject of the clause decides.
        ("Ngozi is to collect the uniforms on Monday", [("Collect the uniforms", "Ngozi", "Mon 16")]),
        ("it's Tariq who has to ring the landlord tomorrow", [("Ring the landlord", "Tariq", "Thu 12")]),
        ("Tom's promised to fix the gate before sunday", [("Fix the gate", "Tom", "Sun 15")]),
        ("my cousin Delroy said he'd lend us the van on sunday", [("Lend us the van", "Delroy", "Sun 15")]),
        ("Iqra reckons she'll have the quote over by weds", [("Have the quote over", "Iqra", "Wed 18")]),
        ("Luca's supposed to send the budget today", [("Send the budget", "Luca", "Wed 11")]),
        ("Luca is the one sending the budget on monday", [("Send the budget", "Luca", "Mon 16")]),
        ("Sunita owes me the deposit, due friday", [("The deposit", "Sunita", "Fri 13")]),
        ("auntie Bisi is bringing the jollof on saturday", [("Bring the jollof", "Auntie Bisi", "Sat 14")]),
        ("Mr. Banerjee to sign the cheque by 15 March", [("Sign the cheque", "Mr Banerjee", "Sun 15")]),
        ("@kemi send the deck by 6pm", [("Send the deck", "kemi", "Wed 18:00")]),
        # "She" is who was named last.
        ("that one's on Farouk, he's got until friday to fix the boiler", [("Fix the boiler", "Farouk", "Fri 13")]),
        ("spoke to Yusra. She'll drop the keys off at 5", [("Drop the keys off", "Yusra", "Wed 17:00")]),
        # Somebody is put on it, or it is to come from somebody.
        ("we've got Leila on raffle tickets, by friday", [("Raffle tickets", "Leila", "Fri 13")]),
        ("put Kofi down for the bouncy castle, saturday", [("The bouncy castle", "Kofi", "Sat 14")]),
        ("leave the budget to Luca, he's promised monday", [("The budget", "Luca", "Mon 16")]),
        ("I need the budget from Luca by monday", [("The budget", "Luca", "Mon 16")]),
        ("would Luca mind sending the budget by monday?", [("Mind sending the budget", "Luca", "Mon 16")]),
        # Who is spoken to, by name and without.
        ("Dina don't forget the cake for weds", [("The cake", "Dina", "Wed 18")]),
        ("Gareth mate, pick up the bags tomorrow", [("Pick up the bags", "Gareth", "Thu 12")]),
        ("yo Mitch you're driving the van saturday", [("Drive the van", "Mitch", "Sat 14")]),
        ("Pavel, kindly send the figures by friday", [("Send the figures", "Pavel", "Fri 13")]),
        ("Darling, can you get the tickets for friday", [("Get the tickets", None, "Fri 13")]),
        ("honey the sink's blocked, can you call the plumber", [("Call the plumber", None, None)]),
        # The speaker.
        ("Mum made me promise to ring the dentist tomorrow", [("Ring the dentist", "me", "Thu 12")]),
        ("Dad talked me into running the stall on sunday", [("Run the stall", "me", "Sun 15")]),
        ("count me in for litter picking on sunday", [("Litter picking", "me", "Sun 15")]),
        ("me and Priti are doing the stall on sunday", [("Do the stall", "me", "Sun 15")]),
        ("the invoices I'll send on monday", [("Send the invoices", "me", "Mon 16")]),
        ("keep meaning to call the vet, doing it sat", [("Call the vet", "me", "Sat 14")]),
        ("as for the cake, that's Nell's department, due saturday", [("As for the cake", "Nell", "Sat 14")]),
        # Several in one sentence.
        (
            "you bring the tent, ill bring the stove on fri",
            [("Bring the tent", None, None), ("Bring the stove", "me", "Fri 13")],
        ),
        (
            "Sat - Jo sets up the gazebo, Finn does the sound",
            [("Set up the gazebo", "Jo", "Sat 14"), ("Do the sound", "Finn", "Sat 14")],
        ),
        (
            "tomorrow: Ali does the shopping, I cook",
            [("Do the shopping", "Ali", "Thu 12"), ("Cook", "me", "Thu 12")],
        ),
        (
            "cups are Hana's job, plates I'll do on saturday",
            [("Cups", "Hana", None), ("Do plates", "me", "Sat 14")],
        ),
        ("Petra's handling the flowers, starting friday", [("Handle the flowers", "Petra", "Fri 13")]),
    ],
)
def test_english_tasks_have_their_owner_and_their_day(text: str, tasks: Heard) -> None:
    assert heard(text) == tasks


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("Дильшод завтра плитку привозит", [("Привозить плитку", "Дильшод", "Thu 12")]),
        ("Ирина пишет отчёт к среде", [("Писать отчёт", "Ирина", "Wed 18")]),
        ("тётя Галя завтра привезёт рассаду", [("Привезти рассаду", "Тётя Галя", "Thu 12")]),
        ("Мурат взял на себя банк, до пятницы", [("Банк", "Мурат", "Fri 13")]),
        ("банк на Мурате, до пятницы", [("Банк", "Мурат", "Fri 13")]),
        ("нужен отчёт от Ирины к среде", [("Отчёт", "Ирина", "Wed 18")]),
        ("Передай Шухрату, пусть завтра ключи занесёт", [("Занести ключи", "Шухрат", "Thu 12")]),
        ("скажите Лене чтобы купила хлеб к шести", [("Купить хлеб", "Лена", "Wed 18:00")]),
        ("Голубушка, принесите ведомость к трём", [("Принести ведомость", None, "Wed 15:00")]),
        ("дорогая, купи хлеба вечерком", [("Купить хлеба", None, "Wed 19:00")]),
        ("если не трудно, отложите мне билет", [("Отложить мне билет", None, None)]),
        ("Вадик ты завтра везёшь детей в бассейн", [("Везти детей в бассейн", "Вадик", "Thu 12")]),
        ("мама велела вынести мусор до вечера", [("Вынести мусор", "me", "Wed 19:00")]),
        ("запишите меня на чистку снега в субботу", [("Чистку снега", "me", "Sat 14")]),
        ("сдай кассу к концу смены", [("Сдать кассу", None, "Wed 18:00")]),
        (
            "в субботу Ася режет салаты, Игорь жарит мясо",
            [("Резать салаты", "Ася", "Sat 14"), ("Жарить мясо", "Игорь", "Sat 14")],
        ),
        (
            "Ася — салаты, Игорь — мясо, я — торт, до субботы",
            [("Салаты", "Ася", None), ("Мясо", "Игорь", None), ("Торт", "me", "Sat 14")],
        ),
    ],
)
def test_russian_tasks_have_their_owner_and_their_day(text: str, tasks: Heard) -> None:
    assert heard(text) == tasks


@pytest.mark.parametrize(
    "text",
    [
        "lol yeah right, I'll run a marathon by monday 😂",
        "ага, конечно, я к четвергу ещё и на Луну слетаю 😂",
        "sign on the door says 'knock before entering after 6pm'",
        "every tuesday we do the quiz at the Crown",
        "Fridays my grandad mends clocks",
        "Nana bakes bread on saturdays",
        "дед всегда чинит часы по пятницам",
        "Would've rung them if I'd had the number",
        "Hana starts her new job on monday",
        "Hana was meant to bring the cups last sunday",
        "ill as a dog today",
        "мы решили, кота назовём Бим",
    ],
)
def test_jokes_signs_habits_and_events_are_no_tasks(text: str) -> None:
    assert heard(text) == []
    assert not any(find_likely_tasks(each, MORNING, NOBODY_KNOWN) for each in message_sentences(text))
