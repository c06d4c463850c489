"""A context manager remembers what was said to be so, until something else is said to be so."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.context_manager.agent import ContextManager, facts_for, relevant_facts, with_speaker
from agents.context_manager.extraction import ExtractedFact, ExtractedFacts, find_statement, shared_project
from agents.context_manager.knowledge import FactBase
from agents.fragment_reader import FragmentReader
from agents.fragments import message_sentences
from agents.models.errors import ModelUnavailable
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from agents.people import KnownPeople, Person
from agents.present import Present
from bus_schema.dialogue import MessageKind
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Fact, FactKind, FactUpdate
from bus_schema.users import User
from language.statements import statement_content
from tests.fragments import MORNING, MOSCOW, Said, a_fragment
from tests.scripted_model import ScriptedModel

PEOPLE = KnownPeople([Person("anna", ("Анна", "Anna")), Person("boris", ("Борис", "Boris"))])


PROJECTS = ("Полярис", "Site redesign")


class Memory:
    def __init__(self, model: LanguageModel | None = None) -> None:
        self.agent = ContextManager(FragmentReader(model or OfflineModel()), PEOPLE, MOSCOW)
        self.knowledge = FactBase()
        self.told: tuple[NotificationGenerated, ...] = ()
        self._fragments = 0

    async def hears(self, user_id: str, *said: Said) -> list[tuple[str, str]]:
        self._fragments += 1
        return [(each.change, each.fact.text) for each in await self.updates(user_id, *said)]

    async def updates(self, user_id: str, *said: Said) -> tuple[FactUpdate, ...]:
        fragment = a_fragment(self._fragments, user_id, said, MORNING + timedelta(days=self._fragments))
        present = Present(fragment.ended_at, "Europe/Moscow", user_id, projects=PROJECTS)
        self.knowledge, outcome = await self.agent.process(fragment, self.knowledge, present)
        self.told = outcome.notifications
        return outcome.items

    @property
    def current(self) -> list[str]:
        return [fact.text for fact in self.knowledge.current]


def member(user_id: str) -> User:
    return User(user_id=user_id, name=user_id, projects=PROJECTS)


def kinds_in(text: str) -> list[FactKind]:
    found = (find_statement(utterance, MORNING, PEOPLE) for utterance in message_sentences(text))
    return [statement.kind for statement in found if statement]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Бюджет проекта — 500 тысяч рублей.", FactKind.FACT),
        ("Релиз назначен на 15 мая.", FactKind.FACT),
        ("Заказчик — компания «Полярис».", FactKind.FACT),
        ("У нас 12 разработчиков в Казани.", FactKind.FACT),
        ("Мы решили использовать PostgreSQL.", FactKind.DECISION),
        ("Договорились, что созвоны по вторникам.", FactKind.DECISION),
        ("От лендинга отказались.", FactKind.DECISION),
        ("Я предпочитаю созваниваться утром.", FactKind.PREFERENCE),
        ("Мне удобнее писать в почту.", FactKind.PREFERENCE),
        ("Анна отвечает за маркетинг.", FactKind.ROLE),
        ("Наш подрядчик — ООО «Вектор».", FactKind.ROLE),
        ("The budget is 500 thousand dollars.", FactKind.FACT),
        ("The release is set for May 15.", FactKind.FACT),
        ("The client is Acme Corp from Boston.", FactKind.FACT),
        ("We decided to go with PostgreSQL.", FactKind.DECISION),
        ("The board approved the second office.", FactKind.DECISION),
        ("I prefer calls in the morning.", FactKind.PREFERENCE),
        ("Call me Annie, please.", FactKind.PREFERENCE),
        ("Olga is responsible for hiring.", FactKind.ROLE),
        ("Our new designer is Mike.", FactKind.ROLE),
    ],
)
def test_what_is_worth_remembering_is_told_by_its_kind(text: str, kind: FactKind) -> None:
    assert kinds_in(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Спасибо, очень помог!",
        "Доброе утро, Анна!",
        "Погода отличная.",
        "А сколько стоит лицензия?",
        "Может быть, возьмём MySQL.",
        "Если бы у нас было 10 миллионов!",
        "Он вырос на 5 процентов.",
        "Подготовлю смету до пятницы.",
        "Отправил договор Ирине.",
        "Thanks a lot!",
        "Good morning Anna!",
        "How much is the licence?",
        "Maybe we should use MySQL.",
        "It grew by 5 percent.",
        "I'll send the proposal by Friday.",
        "Nice weather.",
    ],
)
def test_the_rest_is_let_go(text: str) -> None:
    assert kinds_in(text) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Бюджет проекта — 500 тысяч рублей.", "Бюджет увеличили до 700 тысяч."),
        ("Релиз назначен на 15 мая.", "Релиз перенесли на 20 мая."),
        ("Мы решили использовать PostgreSQL.", "Передумали: берём MySQL вместо PostgreSQL."),
        ("Для почты решили использовать Redis.", "Мы больше не используем Redis."),
        ("Я предпочитаю созваниваться утром.", "Теперь предпочитаю созваниваться вечером."),
        ("The budget is 500 thousand dollars.", "The budget was raised to 700 thousand dollars."),
        ("The release is set for May 15.", "The release is set for May 20."),
        (
            "We decided to use PostgreSQL for billing.",
            "We changed our mind: billing will use MySQL instead of PostgreSQL.",
        ),
        ("We have 12 developers.", "We have 14 developers now."),
    ],
)
async def test_what_holds_no_longer_is_superseded_and_kept(before: str, after: str) -> None:
    memory = Memory()
    await memory.hears("anna", before)

    assert await memory.hears("anna", after) == [("superseded", before), ("found", after)]
    assert memory.current == [after]
    old, new = memory.knowledge.facts
    assert (old.superseded_by, new.supersedes) == (new.fact_id, old.fact_id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Бюджет маркетинга — 300 тысяч рублей.", "Бюджет найма — 200 тысяч рублей."),
        ("Релиз назначен на 15 мая.", "Ретроспектива назначена на 18 мая."),
        ("Мы решили использовать PostgreSQL.", "Мы решили нанять аналитика в Казани."),
        ("The office has 3 meeting rooms.", "The warehouse has 2 gates."),
        ("Olga is responsible for hiring.", "Boris is responsible for sales."),
        ("У нас 12 разработчиков в Казани.", "У нас 3 дизайнера в Перми."),
        ("Созвон с подрядчиком по бюджету — по вторникам в 15:00.", "Бюджет увеличили до 700 тысяч."),
        ("Сергей отвечает за созвоны по бюджету.", "Бюджет теперь 2 миллиона рублей."),
        ("Счёт АБ-7 на 800 рублей.", "Счёт АБ-8 на 900 рублей."),
        ("The budget call with Olga is at 15:00.", "The budget was raised to 700 thousand dollars."),
        ("Olga is responsible for the office budget.", "The budget was raised to 200 thousand dollars."),
    ],
)
async def test_what_is_about_something_else_stands_beside_it(one: str, other: str) -> None:
    memory = Memory()
    await memory.hears("anna", one)

    assert await memory.hears("anna", other) == [("found", other)]
    assert memory.current == [one, other]


async def test_what_is_said_again_is_confirmed_not_doubled() -> None:
    memory = Memory()
    await memory.hears("anna", "Бюджет проекта — 500 тысяч рублей.")

    again = await memory.hears("anna", "Напомню: бюджет проекта 500 тысяч рублей.")

    assert again == [("confirmed", "Бюджет проекта — 500 тысяч рублей.")]
    assert memory.knowledge.facts[0].message_ids == ("msg_1_0", "msg_2_0")


async def test_what_two_people_share_each_of_them_has_said_until_it_holds_no_longer() -> None:
    memory = Memory()
    await memory.hears("anna", "Бюджет проекта Полярис — 500 тысяч рублей.")

    assert await memory.hears("boris", "Напомню: бюджет проекта Полярис 500 тысяч рублей.") == [
        ("found", "Напомню: бюджет проекта Полярис 500 тысяч рублей.")
    ]
    assert [fact.said_by for fact in facts_for(member("boris"), memory.knowledge)] == ["boris"]
    await memory.hears("olga", "Бюджет проекта Полярис увеличили до 700 тысяч рублей.")
    assert memory.current == ["Бюджет проекта Полярис увеличили до 700 тысяч рублей."]


async def test_what_is_said_privately_is_told_to_nobody_and_strikes_out_nothing_of_others() -> None:
    memory = Memory()
    await memory.hears("anna", "Бюджет проекта Полярис — 500 тысяч рублей.")

    await memory.hears(
        "ivan", "Моя зарплата теперь 310 тысяч, только между нами.", "Бюджет увеличили до 900 тысяч рублей."
    )

    assert memory.told == ()
    assert [fact.text for fact in facts_for(member("maria"), memory.knowledge)] == [
        "Бюджет проекта Полярис — 500 тысяч рублей."
    ]
    assert len(facts_for(member("ivan"), memory.knowledge)) == 3
    assert facts_for(User(user_id="stranger", name="Stranger"), memory.knowledge) == ()


async def test_a_model_cannot_share_or_strike_out_what_its_speaker_kept_private() -> None:
    memory = Memory()
    await memory.hears("anna", "Бюджет проекта Полярис — 500 тысяч рублей.")
    (known,) = memory.knowledge.facts
    said = "Бюджет увеличили до 900 тысяч рублей."
    answer = ExtractedFacts(items=[read(kind="fact", quote=said, text=said, supersedes=known.fact_id)])
    memory.agent = ContextManager(FragmentReader(ScriptedModel(answer)), PEOPLE, MOSCOW)

    await memory.hears("ivan", said)

    assert known in memory.knowledge.current
    assert [fact.shared_with for fact in memory.knowledge.facts if fact.said_by == "ivan"] == [None]


@pytest.mark.parametrize(
    ("said", "shared"),
    [
        ("По проекту Полярис релиз назначен на 15 мая.", "Полярис"),
        ("Релиз «Поляриса» назначен на 15 мая.", "Полярис"),
        ("Полярис переезжает на Postgres.", "Полярис"),
        ("The launch of the Site Redesign is set for May 15.", "Site redesign"),
        ("The project site redesign has two designers now.", "Site redesign"),
        ("Релиз назначен на 15 мая.", None),
        ("Ночью был виден полярис.", None),
        ("Наш site redesign tool сломался.", None),
    ],
)
def test_sharing_is_said_never_guessed(said: str, shared: str | None) -> None:
    assert shared_project(said, PROJECTS) == shared


@pytest.mark.parametrize(
    "said",
    [
        ("В проекте Полярис 12 разработчиков.", "Только никому не говори."),
        ("The Site redesign project has 12 developers.", "That is confidential, by the way."),
        ("По секрету: в проекте Полярис 12 разработчиков.",),
        ("My salary on the Site redesign project is 310,000.",),
    ],
)
async def test_what_is_said_in_confidence_or_of_oneself_is_not_shared(said: tuple[str, ...]) -> None:
    memory = Memory()

    await memory.hears("ivan", *said)

    assert memory.knowledge.facts
    assert {fact.shared_with for fact in memory.knowledge.facts} == {None}


def test_a_project_that_the_speaker_is_not_in_shares_nothing() -> None:
    said = "По проекту Вега релиз назначен на 15 мая."

    assert shared_project(said, PROJECTS) is None


async def test_two_projects_do_not_overwrite_each_other() -> None:
    memory = Memory()
    await memory.hears("anna", "У проекта «Полярис» всё по плану. Бюджет — 500 тысяч рублей.")
    await memory.hears("anna", "По проекту «Вега» новости. Бюджет — 300 тысяч рублей.")

    budgets = [fact for fact in memory.knowledge.current if "Бюджет" in fact.text]
    assert [fact.project for fact in budgets] == ["Полярис", "Вега"]


async def test_whoever_said_what_holds_no_longer_is_told() -> None:
    memory = Memory()
    await memory.hears("anna", "Релиз проекта Полярис назначен на 15 мая.")

    await memory.hears("boris", "Релиз проекта Полярис перенесли на 20 мая.")

    assert [(each.to_user, each.message) for each in memory.told] == [
        (
            "anna",
            "Борис: «Релиз проекта Полярис перенесли на 20 мая.» "
            "Раньше было: «Релиз проекта Полярис назначен на 15 мая.»",
        )
    ]
    await memory.hears("boris", "Релиз проекта Полярис перенесли на 25 мая.")
    assert memory.told == ()


async def test_only_what_the_user_said_of_their_own_accord_is_remembered() -> None:
    memory = Memory()

    await memory.hears(
        "anna",
        ("user", MessageKind.HIDDEN, "[hidden instruction] Бюджет — 900 тысяч рублей."),
        ("assistant", MessageKind.NATIVE, "Бюджет — 800 тысяч рублей."),
        ("user", MessageKind.RESPONSE, "Бюджет — 500 тысяч рублей."),
    )

    assert memory.current == ["Бюджет — 500 тысяч рублей."]


async def test_the_users_own_facts_come_before_those_shared_with_their_project() -> None:
    memory = Memory()
    await memory.hears("anna", "Бюджет Поляриса — 500 тысяч рублей.", "Я предпочитаю созваниваться утром.")
    await memory.hears("boris", "Мы решили использовать PostgreSQL.", "Релиз назначен на 15 мая.")

    assert [fact.text for fact in facts_for(member("boris"), memory.knowledge)] == [
        "Мы решили использовать PostgreSQL.",
        "Релиз назначен на 15 мая.",
        "Бюджет Поляриса — 500 тысяч рублей.",
    ]
    assert len(facts_for(member("boris"), memory.knowledge, limit=2)) == 2


async def test_news_strike_out_what_they_contradict_and_nothing_else() -> None:
    memory = Memory()
    await memory.hears("anna", "Встреча с командой дизайна назначена на 15 мая.", "Бюджет проекта — 500 тысяч рублей.")

    assert await memory.hears("anna", "Встречу перенесли на 20 мая.") == [
        ("superseded", "Встреча с командой дизайна назначена на 15 мая."),
        ("found", "Встречу перенесли на 20 мая."),
    ]
    assert memory.current == ["Бюджет проекта — 500 тысяч рублей.", "Встречу перенесли на 20 мая."]


@pytest.mark.parametrize(
    ("of_one", "of_another"),
    [
        ("Я предпочитаю созваниваться утром.", "Теперь я предпочитаю созваниваться вечером."),
        ("Я живу в Казани на улице Баумана 5.", "Я живу в Казани на улице Баумана 7."),
        ("My desk number is 12.", "My desk number is 14."),
    ],
)
async def test_what_people_say_of_themselves_holds_for_each(of_one: str, of_another: str) -> None:
    memory = Memory()
    await memory.hears("anna", of_one)

    assert await memory.hears("boris", of_another) == [("found", of_another)]
    assert {fact.said_by for fact in memory.knowledge.current} == {"anna", "boris"}


async def test_no_fact_is_dropped_for_others() -> None:
    memory = Memory()
    await memory.hears("anna", "Счёт АБ-1 на 500 рублей.")
    (fact,) = memory.knowledge.facts
    memory.knowledge = FactBase.of(
        fact.model_copy(update={"fact_id": f"fact_{number}", "text": f"Счёт ВГ-{number} на {number + 1}00 рублей."})
        for number in range(480)
    )

    await memory.hears("anna", *(f"Счёт АБ-{each} на {each + 1}00 рублей." for each in range(30)))

    assert len(memory.knowledge.facts) == 510


async def test_what_bears_on_the_matter_comes_before_what_is_only_new() -> None:
    memory = Memory()
    await memory.hears("anna", "Дверь склада открывает код 4417.")
    for part in range(3):
        await memory.hears("anna", *(f"Счёт АБ-{part * 30 + each} на {each + 1}00 рублей." for each in range(30)))

    facts = relevant_facts(member("anna"), memory.knowledge, "Какой код у двери на склад?", limit=12)

    assert len(facts) == 12
    assert facts[0].text == "Дверь склада открывает код 4417."


async def test_a_model_is_shown_those_known_facts_that_the_messages_may_be_about() -> None:
    model = ScriptedModel(ExtractedFacts(items=[]))
    memory = Memory()
    await memory.hears("anna", "Дверь склада открывает код 4417.")
    for part in range(3):
        await memory.hears("anna", *(f"Счёт АБ-{part * 30 + each} на {each + 1}00 рублей." for each in range(30)))
    memory.agent = ContextManager(FragmentReader(model), PEOPLE, MOSCOW)

    await memory.hears("anna", "Кстати, у двери склада сменили замок.")

    shown = "".join(message.content for message in model.asked[-1])
    assert "4417" in shown
    assert "АБ-7 " not in shown


def test_others_facts_are_shown_with_their_speaker_and_the_day() -> None:
    fact = Fact.model_validate(
        {
            "fact_id": "fact_1",
            "kind": "fact",
            "text": "Бюджет — 5.",
            "said_by": "boris",
            "said_at": MORNING,
            "message_ids": ["msg_1"],
        }
    )
    assert (
        with_speaker(fact, "anna", PEOPLE, MORNING + timedelta(days=1)) == "Борис (вчера, 11 марта, 10:30): Бюджет — 5."
    )
    assert with_speaker(fact, "boris", PEOPLE, MORNING) == "Бюджет — 5."


def read(**changes: object) -> ExtractedFact:
    fields: dict[str, object] = {
        "kind": "role",
        "message_id": "msg_1_0",
        "quote": "договорами занимались соседи по этажу",
        "text": "Договорами занимались соседи по этажу",
        "supersedes": None,
    }
    return ExtractedFact.model_validate(fields | changes)


async def test_a_model_finds_what_the_rules_miss() -> None:
    memory = Memory(ScriptedModel(ExtractedFacts(items=[read()])))

    assert await memory.hears("anna", "Кажется, договорами занимались соседи по этажу.") == [
        ("found", "Договорами занимались соседи по этажу")
    ]


@pytest.mark.parametrize(
    "answer",
    [
        ExtractedFacts(items=[read(quote="договоры ведёт Анна")]),
        ExtractedFacts(items=[read(message_id="msg_7")]),
        ExtractedFacts(items=[read(text="Борис уволен за воровство")]),
        "no JSON",
        ModelUnavailable("away"),
    ],
)
async def test_what_no_message_bears_out_is_dropped(answer: ExtractedFacts | str | ModelUnavailable) -> None:
    memory = Memory(ScriptedModel(answer))

    assert await memory.hears("anna", "Кажется, договорами занимались соседи по этажу.") == []


@pytest.mark.parametrize(
    "said",
    [
        "Позвони мне, пожалуйста, вечером.",
        "Ха-ха, ну ты даёшь!",
        "Can you call me back later?",
        "Рустам, забери Тимура с тренировки в среду, я не успеваю",
    ],
)
async def test_a_model_that_takes_everything_for_a_fact_is_not_followed(said: str) -> None:
    memory = Memory(ScriptedModel(ExtractedFacts(items=[read(kind="fact", quote=said, text=said)])))

    assert await memory.hears("anna", said) == []


@pytest.mark.parametrize(
    "said",
    [
        "Tell the analyst that my name is Anna Berg, then ask what my name is",
        "Скажи подагенту моё имя Алия, а потом спроси у него",
        "Add a task: the budget is 500 thousand",
    ],
)
async def test_what_the_assistant_is_asked_to_do_is_no_fact(said: str) -> None:
    assert await Memory().hears("anna", said) == []


async def test_a_model_that_repeats_the_rules_adds_nothing() -> None:
    said = "Бюджет проекта — 500 тысяч рублей."
    memory = Memory(ScriptedModel(ExtractedFacts(items=[read(kind="fact", quote=said, text=said)])))

    assert await memory.hears("anna", said) == [("found", said)]


@given(st.text(max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    kinds_in(text)
    assert statement_content(text, MORNING) == statement_content(text, MORNING)
