"""A task manager over days of talk: what it remembers, whom it tells, what it takes from a language model."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from agents.fragment_reader import FragmentReader
from agents.models.errors import ModelUnavailable
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from agents.people import KnownPeople, Person
from agents.task_manager.agent import TaskManager
from agents.task_manager.model_extraction import ReadTask, ReadTasks, shown_tasks
from agents.task_manager.tasks import TaskList
from bus_schema.dialogue import MessageKind
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TaskUpdate
from tests.fragments import MORNING, MOSCOW, Said, a_fragment
from tests.scripted_model import ScriptedModel

PEOPLE = KnownPeople(
    [Person("anna", ("Анна", "Anna")), Person("boris", ("Борис", "Boris")), Person("olga", ("Ольга",))]
)
Heard = list[tuple[str, str]]


class Team:
    """Fragments go in one after the other; what the agent says of each comes out."""

    def __init__(self, model: LanguageModel | None = None) -> None:
        self.agent = TaskManager(FragmentReader(model or OfflineModel()), PEOPLE, MOSCOW)
        self.book = TaskList()
        self.told: tuple[NotificationGenerated, ...] = ()
        self._fragments = 0

    async def hears(self, user_id: str, *said: Said, days: int = 0) -> Heard:
        self._fragments += 1
        return [(each.change, each.task.text) for each in await self.updates(user_id, said, days)]

    async def updates(self, user_id: str, said: Sequence[Said], days: int = 0) -> tuple[TaskUpdate, ...]:
        fragment = a_fragment(self._fragments, user_id, said, MORNING + timedelta(days=days))
        self.book, outcome = await self.agent.process(fragment, self.book)
        self.told = outcome.notifications
        return outcome.items


async def test_a_task_is_followed_from_its_promise_to_its_end() -> None:
    team = Team()

    assert await team.hears("anna", "Подготовлю смету до пятницы.") == [("found", "Подготовить смету")]
    assert await team.hears("anna", "Смету не успеваю, переношу её на понедельник.") == [("moved", "Подготовить смету")]
    assert await team.hears("anna", "Смета готова!", days=4) == [("done", "Подготовить смету")]
    assert team.book.open == ()
    (task,) = team.book.tasks
    assert task.due is not None
    assert task.due.isoformat() == "2026-03-16T23:59:59+03:00"
    assert task.message_ids == ("msg_1_0", "msg_2_0", "msg_3_0")


async def test_a_task_that_is_spoken_of_again_is_not_a_second_one() -> None:
    team = Team()
    await team.hears("anna", "I'll send the proposal by Friday.")

    assert await team.hears("anna", "As I said, I will send the proposal on Friday.") == []
    assert await team.hears("anna", "I'll send the proposal by Monday.") == [("moved", "Send the proposal")]
    assert len(team.book.tasks) == 1


async def test_the_same_work_of_two_people_is_two_tasks() -> None:
    team = Team()

    await team.hears("anna", "Я подготовлю отчёт, а Борис подготовит отчёт.")

    assert [task.owner_id for task in team.book.open] == ["anna", "boris"]


async def test_one_may_report_what_another_was_to_do() -> None:
    team = Team()
    await team.hears("anna", "Борис проверит договор до четверга.")

    assert await team.hears("boris", "Договор проверил, замечаний нет.") == [("done", "Проверить договор")]
    assert [(each.to_user, each.message) for each in team.told] == [
        ("anna", "Борис: задача «Проверить договор» выполнена.")
    ]


async def test_done_alone_means_the_only_task_there_is() -> None:
    team = Team()
    await team.hears("anna", "I'll send the proposal by Friday.")
    await team.hears("olga", "Я закажу пропуск.")

    assert await team.hears("anna", "Done!") == [("done", "Send the proposal")]
    assert await team.hears("olga", "Готово.") == [("done", "Заказать пропуск")]
    assert await team.hears("olga", "Готово.") == []


@pytest.mark.parametrize(
    "report",
    [
        "The laundry is done.",
        "Отменили рейс в Казань.",
        "The client sent 4 remarks.",
        "It is approved.",
        "I've read the proposal of our rivals.",
        "The minutes were sent to the board.",
    ],
)
async def test_a_report_about_something_else_changes_nothing(report: str) -> None:
    team = Team()
    await team.hears("anna", "I'll send the proposal to the client by Friday.")

    assert await team.hears("anna", report) == []


@pytest.mark.parametrize(
    "said",
    [
        "Show my tasks",
        "What do I have to do tomorrow?",
        "Tell the analyst that my name is Anna Berg, then ask what my name is",
        "Скажи подагенту моё имя Алия, а потом спроси у него",
        "Отмени созвон с банком",
        "Remind me",
        "Remind me yesterday to call Bob",
        "Напомни вчера позвонить Бобу",
    ],
)
async def test_what_the_assistant_is_asked_to_do_is_no_task(said: str) -> None:
    assert await Team().hears("anna", said) == []


async def test_a_task_that_the_assistant_is_asked_to_note_is_noted_in_its_words() -> None:
    team = Team()

    assert await team.hears("anna", "Add task: buy milk", "Запиши мне на субботу полить цветы") == [
        ("found", "Buy milk"),
        ("found", "Полить цветы"),
    ]
    assert [task.owner_id for task in team.book.tasks] == ["anna", "anna"]


async def test_a_task_without_an_object_moves_none_that_was_spoken_of_before() -> None:
    team = Team()
    await team.hears("anna", "Я подготовлю смету.")

    assert [change for change, _ in await team.hears("anna", "Завтра в 9 утра побегаю.")] != ["moved"]


async def test_what_has_been_sent_has_been_written_before() -> None:
    team = Team()
    await team.hears("anna", "Подготовлю смету до пятницы.", "Борис напишет отзыв.")

    assert await team.hears("anna", "Смету отправила.") == [("done", "Подготовить смету")]
    assert await team.hears("boris", "Отзыв обсудили.") == []


async def test_of_two_tasks_about_one_thing_the_speakers_own_is_meant() -> None:
    team = Team()
    await team.hears("anna", "Я подготовлю отчёт.", "Борис согласует отчёт.")

    assert await team.hears("boris", "Отчёт готов.") == [("done", "Согласовать отчёт")]


async def test_whoever_gets_a_task_is_told_and_nobody_is_told_their_own_news() -> None:
    team = Team()

    await team.hears("anna", "Борис забронирует зал к 20 марта, а я куплю торт.")
    assert [(each.to_user, each.message) for each in team.told] == [
        ("boris", "Анна: для вас есть задача «Забронировать зал», срок — пятница, 20 марта.")
    ]

    await team.hears("boris", "Передаю бронь зала Ольге.")
    assert [(each.to_user, each.about.endswith("reassigned")) for each in team.told] == [("olga", True)]


async def test_only_what_the_user_said_of_their_own_accord_makes_tasks() -> None:
    team = Team()

    heard = await team.hears(
        "anna",
        ("user", MessageKind.HIDDEN, "[hidden instruction] Напомни подготовить смету до пятницы."),
        ("assistant", MessageKind.NOTIFICATION, "Не забудьте подготовить смету до пятницы."),
        ("assistant", MessageKind.NATIVE, "Я подготовлю список до завтра."),
        ("user", MessageKind.RESPONSE, "Хорошо, завтра отправлю счёт."),
    )

    assert heard == [("found", "Отправить счёт")]


async def test_ids_repeat_so_that_a_lost_book_gives_the_same_tasks() -> None:
    one, other = Team(), Team()

    await one.hears("anna", "I'll send the proposal by Friday and call the bank tomorrow.")
    await other.hears("anna", "I'll send the proposal by Friday and call the bank tomorrow.")

    assert one.book.tasks == other.book.tasks
    assert len({task.task_id for task in one.book.tasks}) == 2


async def test_no_open_task_is_ever_dropped() -> None:
    team = Team()
    await team.hears("anna", "Подготовлю смету до пятницы для всех объектов на севере, юге и востоке.")
    (task,) = team.book.tasks

    for number in range(300):
        found_at = task.found_at + timedelta(minutes=number)
        changes = {"task_id": f"{task.task_id}{number}", "found_at": found_at}
        team.book = team.book.with_task(task.model_copy(update=changes))

    assert len(team.book.open) == 301


def read(**changes: object) -> ReadTask:
    fields: dict[str, object] = {
        "change": "found",
        "message_id": "msg_1_0",
        "quote": "смету Ирине к пятнице обещала Аня",
        "task_id": None,
        "text": "Отдать смету Ирине",
        "owner": "Аня",
        "due_said": "к пятнице",
    }
    return ReadTask.model_validate(fields | changes)


ODD = "Из новостей: смету Ирине к пятнице обещала Аня, вот и всё."


async def test_a_model_finds_what_the_rules_miss() -> None:
    team = Team(ScriptedModel(ReadTasks(items=[read(owner="Анна", quote="смету Ирине к пятнице")])))
    assert await Team().hears("boris", ODD) == []

    assert await team.hears("boris", ODD) == [("found", "Отдать смету Ирине")]
    (task,) = team.book.tasks
    assert task.due is not None
    assert task.due.date().isoformat() == "2026-03-13"


@pytest.mark.parametrize(
    "item",
    [
        read(quote="отчёт Ирине"),
        read(message_id="msg_9"),
        read(text="Купить билеты в театр"),
        read(text="Отдать 500 смет Ирине"),
        read(quote=""),
        read(change="done", task_id="task_unknown"),
        read(change="moved", task_id=None),
    ],
)
async def test_what_no_message_bears_out_is_dropped(item: ReadTask) -> None:
    team = Team(ScriptedModel(ReadTasks(items=[item])))

    assert await team.hears("boris", ODD) == []


async def test_a_date_that_a_model_makes_up_is_not_taken() -> None:
    team = Team(ScriptedModel(ReadTasks(items=[read(due_said="13.03.2031")])))

    await team.hears("boris", ODD)

    assert [task.due for task in team.book.tasks] == [None]


async def test_a_model_that_repeats_the_rules_adds_nothing() -> None:
    said = read(quote="Подготовлю смету до пятницы", text="Подготовить смету", due_said="до пятницы", owner="me")
    team = Team(ScriptedModel(ReadTasks(items=[said])))

    assert await team.hears("anna", "Подготовлю смету до пятницы.") == [("found", "Подготовить смету")]


def numbered(number: int, text: str, owner: str = "anna") -> Task:
    at = MORNING + timedelta(minutes=number)
    return Task(task_id=f"task_{number}", text=text, owner_id=owner, asked_by=owner, found_at=at, changed_at=at)


def test_of_many_open_tasks_a_model_is_shown_those_that_were_named_and_the_last_ones() -> None:
    tasks = [numbered(number, f"Pay the invoice of {number} dollars") for number in range(300)]
    tasks += [numbered(300 + number, f"Оплатить счёт {number}", "boris") for number in range(300)]
    tasks += [numbered(-1, "Order a cake for the party"), numbered(-2, "Починить кофемашину", "boris")]

    shown = shown_tasks(tasks, "The cakes have come. Кофемашина тоже работает, кстати.", "anna")

    assert {task.task_id for task in shown[:2]} == {"task_-1", "task_-2"}
    assert [task.task_id for task in shown[2:]] == [f"task_{number}" for number in range(299, 279, -1)]
    assert len(shown_tasks(tasks, "Which invoice, what dollars?", "anna")) == 60


async def test_a_model_may_close_a_task_that_is_known() -> None:
    model = ScriptedModel(ReadTasks(items=[]), "{}", "{}")
    team = Team(model)
    await team.hears("anna", "I'll send the proposal by Friday.")
    closing = read(
        change="done", message_id="msg_2_0", quote="proposal went out", task_id=team.book.open[0].task_id, text=""
    )
    team.agent = TaskManager(FragmentReader(ScriptedModel(ReadTasks(items=[closing]))), PEOPLE, MOSCOW)

    assert await team.hears("anna", "The proposal went out at last.") == [("done", "Send the proposal")]


async def test_a_model_closes_no_task_by_the_words_that_give_it() -> None:
    said = "Оплачу счёт завтра."
    heard = Team()
    assert await heard.hears("anna", said) == [("found", "Оплатить счёт")]
    closing = read(change="done", quote="Оплачу счёт", task_id=heard.book.open[0].task_id, text="")

    assert await Team(ScriptedModel(ReadTasks(items=[closing]))).hears("anna", said) == [("found", "Оплатить счёт")]


async def test_a_model_that_takes_anything_for_a_task_is_not_followed() -> None:
    said = "Cheers for the heads up everyone, really enjoyed finding out from the customer"
    item = read(quote="heads up everyone", text="heads up everyone", owner=None, due_said=None)

    assert await Team(ScriptedModel(ReadTasks(items=[item]))).hears("anna", said) == []


@pytest.mark.parametrize("answer", ["no JSON at all", ModelUnavailable("away")])
async def test_where_the_model_is_of_no_help_the_rules_stand(answer: str | ModelUnavailable) -> None:
    team = Team(ScriptedModel(answer))

    assert await team.hears("anna", "Подготовлю смету до пятницы.") == [("found", "Подготовить смету")]


async def test_a_model_is_asked_only_about_what_the_user_said() -> None:
    model = ScriptedModel(ReadTasks(items=[]))
    team = Team(model)

    await team.hears("anna", "Привет!", ("user", MessageKind.HIDDEN, "[hidden instruction] Секрет."))

    (asked,) = model.asked
    assert "Привет!" in asked[1].content
    assert "Секрет" not in asked[1].content
