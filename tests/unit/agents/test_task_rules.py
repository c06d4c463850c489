"""Tasks that the rules find in conversations."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.fragments import message_sentences
from agents.people import KnownPeople, Person
from agents.status_reports import find_reports
from agents.syntax.clauses import ImpliedOwner
from agents.task_manager.extraction import TaskCandidate, find_tasks
from language.words import stem, words
from tests.fragments import MORNING
from tests.unit.agents.task_talk import DEVELOPMENT, HELD_OUT, Expected, Talk

PEOPLE = KnownPeople([Person("boris", ("Борис", "Боря")), Person("kate", ("Kate",))])


def drafts(text: str, people: KnownPeople = PEOPLE) -> list[TaskCandidate]:
    return [draft for utterance in message_sentences(text) for draft in find_tasks(utterance, MORNING, people)]


def reports(text: str) -> list[tuple[str, str]]:
    found = (report for utterance in message_sentences(text) for report in find_reports(utterance, MORNING, PEOPLE))
    return [(report.change, report.about) for report in found]


def owner_of(draft: TaskCandidate) -> str | None:
    named = {ImpliedOwner.SPEAKER: "me", ImpliedOwner.NOBODY: None}
    return named[draft.doer] if isinstance(draft.doer, ImpliedOwner) else draft.doer.name


def due_of(draft: TaskCandidate) -> str | None:
    return draft.due.at.strftime("%m-%d %H:%M" if draft.due.has_time else "%m-%d") if draft.due else None


def compared(talk: Talk) -> Iterator[tuple[TaskCandidate | None, Expected | None]]:
    """Each found task with the one that was expected, then what was missed."""
    missing = list(talk.tasks)
    for draft in (draft for text in talk.said for draft in drafts(text, KnownPeople())):
        spoken = {stem(word) for word in words(draft.text)}
        meant = next((each for each in missing if {stem(word) for word in words(each.words)} <= spoken), None)
        if meant:
            missing.remove(meant)
        yield draft, meant
    yield from ((None, each) for each in missing)


@pytest.mark.parametrize("talk", [*DEVELOPMENT, *HELD_OUT], ids=lambda talk: talk.name)
def test_every_task_is_found_with_its_owner_and_its_date_and_nothing_else(talk: Talk) -> None:
    for draft, meant in compared(talk):
        assert meant, f"no task: {draft}"
        assert draft, f"missed: {meant}"
        assert (owner_of(draft), due_of(draft)) == (meant.owner, meant.due), draft.text


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("Смету подготовлю до пятницы.", ["Подготовить смету"]),
        ("Я завтра отправлю отчёт и позвоню в банк.", ["Отправить отчёт", "Позвонить в банк"]),
        ("Нужно срочно обновить сайт, потому что он лежит.", ["Обновить срочно сайт"]),
        ("I'll draft the plan and send it to Kate by Friday.", ["Draft the plan", "Send it to Kate"]),
        ("Could you please ask Kate to review the budget?", ["Review the budget"]),
        ("Please, don't forget to water the plants, thanks!", ["Water the plants"]),
    ],
)
def test_a_task_begins_with_its_verb_and_says_no_more_than_the_work(text: str, tasks: list[str]) -> None:
    assert [draft.text for draft in drafts(text)] == tasks


@pytest.mark.parametrize(
    ("text", "owner", "user_id"),
    [
        ("Боря подготовит слайды.", "Борис", "boris"),
        ("Поручи Борису подготовить слайды.", "Борис", "boris"),
        ("@boris, please prepare the slides.", "Борис", "boris"),
        ("Слайды подготовит Тимур.", "Тимур", None),
        ("Сайт надо обновить, это на Боре.", "Борис", "boris"),
    ],
)
def test_who_is_known_is_recognised_in_any_case_and_by_any_name(text: str, owner: str, user_id: str | None) -> None:
    (draft,) = drafts(text)

    assert not isinstance(draft.doer, ImpliedOwner)
    assert (draft.doer.name, draft.doer.user_id) == (owner, user_id)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("Отчёт отправила вчера.", "done"),
        ("Смета готова!", "done"),
        ("Договор подписан, ура", "done"),
        ("I've finally sent the report.", "done"),
        ("The slides are ready.", "done"),
        ("Done with the slides ✅", "done"),
        ("Перенесли демо на понедельник.", "moved"),
        ("Давайте сдвинем релиз на 20 марта.", "moved"),
        ("The demo is postponed to next Monday.", "moved"),
        ("Совещание отменили.", "cancelled"),
        ("Зал больше не нужен.", "cancelled"),
        ("We no longer need the venue.", "cancelled"),
        ("Пироги не печём, заказали торт.", "cancelled"),
        ("Передаю смету Борису.", "reassigned"),
        ("Слайды вместо Кати сделает Борис.", "reassigned"),
        ("I'm handing the slides over to Kate.", "reassigned"),
        ("Kate will take over the slides.", "reassigned"),
    ],
)
def test_what_has_become_of_a_task_is_understood(text: str, change: str) -> None:
    assert [found for found, _ in reports(text)][:1] == [change]


@pytest.mark.parametrize(
    "text",
    [
        "Отчёт ещё не готов.",
        "Когда смета будет готова, напишу.",
        "Отчёт должен быть готов завтра.",
        "Я готов обсудить это завтра.",
        "Договор подписан?",
        "The report isn't ready yet.",
        "When the slides are done we can meet.",
        "The report will be sent tomorrow.",
        "Have you sent the report?",
        "Almost finished the report.",
    ],
)
def test_what_is_not_done_yet_is_not_done(text: str) -> None:
    assert "done" not in [change for change, _ in reports(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Не отменяй созвон с банком.",
        "Созвон с банком не отменяется.",
        "Не переноси созвон на пятницу.",
        "Don't cancel the call with the bank.",
        "The call hasn't been moved to Friday.",
        "Don't move the call to Friday.",
    ],
)
def test_what_stays_as_it_is_is_no_change(text: str) -> None:
    assert reports(text) == []


def test_what_stays_may_be_said_with_what_changes() -> None:
    assert [change for change, _ in reports("Созвон не отменяем, переносим на пятницу.")] == ["moved"]


@given(st.text(max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    for draft in drafts(text):
        assert draft.text
    assert isinstance(reports(text), list)
