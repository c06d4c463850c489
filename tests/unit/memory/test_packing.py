"""What packing keeps, how dense it is, whatever a model proposes (spec 002 F3, NF4)."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from agents.packer import ReadEntity, ReadPoint, ReadWarm, read_warm
from bus_schema.episodes import ColdContent, Decision, Entity, RawTurn, WarmContent
from language.words import stem_key
from memory.packing.budget import content_words, raw_words
from memory.packing.cold import cold_of
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of
from memory.packing.packing import OFFLINE, Pack, Proposal, pack_cold, pack_warm
from memory.packing.sentences import turns_of_warm, without_filler
from memory.packing.supersession import superseded
from memory.packing.verification import verify
from memory.packing.warm import warm_of
from tests.generated_episodes import Generated, generated_episodes
from tests.scripted_model import ScriptedModel

EPISODES = generated_episodes(50)


def said(*texts: str) -> tuple[RawTurn, ...]:
    return tuple(
        RawTurn(raw_log_id=f"raw_{number}", role="user", content=text, time=datetime(2026, 1, 1, tzinfo=UTC))
        for number, text in enumerate(texts)
    )


def names(*texts: str) -> list[str]:
    return [entity.name for entity in entities_of(said(*texts))]


def decided(*texts: str) -> list[str]:
    return [decision.text for decision in decisions_of(said(*texts))]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "Yesterday I met Anna Novak from Zephyr Labs in Lisbon.",
            ["Anna Novak", "Zephyr Labs", "Lisbon", "Yesterday"],
        ),
        ("We pay $1,250 a month, 15% more, until March 3.", ["$1,250", "15%", "March 3"]),
        ("Вчера встретил Анну Лукину из Казани.", ["Вчера", "Анну Лукину", "Казани"]),
        ("Бюджет 350 000 рублей, срок 15 марта 2027 года.", ["350 000 рублей", "15 марта 2027 года"]),
        ("Подрядчик: ООО «Ромашка», база PostgreSQL.", ["ООО «Ромашка»", "PostgreSQL"]),
        ("She bought an iPhone 15 for 900 euros.", ["iPhone 15", "900 euros"]),
        ("Zarina and Omar approved 5000 USD for invoice INV-2024-001.", ["Zarina", "Omar", "5000 USD", "INV-2024-001"]),
        ("Everyone had fun, nothing was broken.", []),
        ("Painting helps me to relax after a long day.", []),
        ("Работа идёт своим чередом, ничего нового.", []),
    ],
)
def test_what_is_named_is_found(text: str, named: list[str]) -> None:
    assert sorted(names(text)) == sorted(named)


def test_a_name_is_one_entity_in_all_its_cases() -> None:
    entities = entities_of(said("Звонила Анна Лукина.", "Передай Анне Лукиной привет.", "Анна согласна."))

    assert [(each.name, each.raw_log_ids) for each in entities] == [("Анна Лукина", ("raw_0", "raw_1", "raw_2"))]


@pytest.mark.parametrize(
    "text",
    [
        "We decided to use PostgreSQL.",
        "It's settled, Anna leads the project.",
        "Let's go with the second offer.",
        "We'll go with three layers.",
        "We concluded that the old API must go.",
        "Используем три слоя.",
        "Поставщиком выбран «Вектор».",
        "Решили использовать PostgreSQL.",
        "Договорились встретиться в пятницу.",
        "Запуск переносим на 15 марта.",
    ],
)
def test_a_decision_is_kept_in_its_own_words(text: str) -> None:
    assert decided(f"Hello there! {text} What do you think?") == [text]


@pytest.mark.parametrize(
    "text",
    [
        "We haven't decided yet.",
        "Did we decide on anything?",
        "Мы пока не решили.",
        "Надо решить, что делать.",
        "Hi!",
        "I can't decide.",
    ],
)
def test_what_is_open_is_no_decision(text: str) -> None:
    assert decided(text) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Запомни это навсегда: у меня аллергия на пенициллин.",) * 2,
        ("Hi! Remember this for ever. My locker is number forty two.", "My locker is number forty two."),
        ("I am deaf in my left ear. Please remember that for good!", "I am deaf in my left ear."),
    ],
)
def test_what_is_to_be_remembered_is_kept_like_a_decision(text: str, kept: str) -> None:
    assert decided(text) == [kept]
    assert kept in pack_warm(said(text)).content.model_dump_json()


def test_a_proposal_that_is_accepted_is_a_decision() -> None:
    assert decided("Давайте встретимся в субботу.", "Хорошо, я буду.") == ["Давайте встретимся в субботу."]
    assert decided("Давайте встретимся в субботу.", "Не знаю, посмотрим.") == []


def require_kept(episode: Generated, content: WarmContent) -> None:
    kept = " | ".join((*(each.name for each in content.entities), *(each.text for each in content.decisions)))
    assert [name for name in episode.entities if name not in kept] == []
    keys = [stem_key(each.text) for each in content.decisions]
    planted = {text: stem_key(without_filler(text)) for text in episode.decisions}
    assert [text for text, said_key in planted.items() if not any(_has_either(key, said_key) for key in keys)] == []


def _has_either(one: str, other: str) -> bool:
    """Whether one contains the other: a decision has what tells its subject, or lacks a filler word."""
    return one in other or other in one


def require_dense(episode: Generated, warm: WarmContent, cold: ColdContent) -> None:
    # Names and decisions are never left out, even if they are more than the budget, a 3.2th of the words.
    kept = content_words(warm.model_copy(update={"summary": "", "key_points": (), "key_point_sources": ()}))
    assert episode.words / content_words(warm) <= 10
    assert episode.words / content_words(warm) >= 3 or kept > episode.words / 3.2
    if episode.words >= 400:
        assert 10 <= content_words(warm) / content_words(cold) <= 20
    else:
        assert content_words(cold) < content_words(warm)
        assert any(f" {stem_key(cold.headline)} " in f" {stem_key(turn.content)} " for turn in episode.turns)
        assert not cold.headline.endswith("…")


def require_packs_keep_everything(episodes: Sequence[Generated]) -> None:
    for episode in episodes:
        warm, cold = _both(episode)
        require_kept(episode, warm)
        require_dense(episode, warm, cold)
        assert len(warm.key_points) == len(warm.key_point_sources)


def _both(episode: Generated) -> tuple[WarmContent, ColdContent]:
    warm = pack_warm(episode.turns).content
    assert isinstance(warm, WarmContent)
    cold = pack_cold(warm, episode.words).content
    assert isinstance(cold, ColdContent)
    assert verify(warm, episode.turns).holds
    assert verify(cold, episode.turns).holds
    return warm, cold


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (("Train or bus to Porto?", "Bus it is."), "Train or bus to Porto? Bus it is."),
        (
            ("Есть Марина Громова, готова выйти за 60 тысяч.", "Бери Марину."),
            "Есть Марина Громова, готова выйти за 60 тысяч. Бери Марину.",
        ),
        (("Could we meet on Thursday instead?", "Sure, Thursday works."), "Could we meet on Thursday instead?"),
        (
            ("Обои или краска в детскую?", "Краска так краска, покупаю завтра."),
            "Обои или краска в детскую? Краска так краска, покупаю завтра.",
        ),
        (
            ("Ravi could cater for 40 pounds a head.", "Fine by me."),
            "Ravi could cater for 40 pounds a head. Fine by me.",
        ),
        (
            ("Which choir, Anna's or Ravi's?", "Ravi's it is, at noon."),
            "Which choir, Anna's or Ravi's? Ravi's it is, at noon.",
        ),
        (
            ("Электрик Марат просит 90 тысяч за проводку.", "Марату дали добро."),
            "Электрик Марат просит 90 тысяч за проводку. Марату дали добро.",
        ),
    ],
)
def test_a_decision_is_told_with_what_it_answers(texts: Sequence[str], text: str) -> None:
    decision = decisions_of(said(*texts))[0]

    assert (decision.text[: len(text)], decision.raw_log_ids) == (text, ("raw_0", "raw_1"))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            "The report is due Friday 20 March.",
            "Let's push it back to Friday. The report is due Friday 20 March.",
        ),
        ("Is Friday enough for the grant report?", "Let's push it back to Friday."),
        ("Good. Have you watered the roses?", "Let's push it back to Friday."),
    ],
)
def test_a_decision_that_says_little_is_told_with_what_says_it_again(answer: str, text: str) -> None:
    turns = said(
        "The roses are watered, the post is in and the cat has eaten.", "Let's push it back to Friday.", answer
    )

    assert [each.text for each in decisions_of([*turns[:2], turns[2].model_copy(update={"role": "assistant"})])] == [
        text
    ]


def test_what_says_a_decision_again_and_goes_on_is_quoted_once() -> None:
    assert decided("We agreed on Friday.", "I'll move the choir to Friday then. I'll book the hall for Friday.") == [
        "We agreed on Friday. I'll move the choir to Friday then. I'll book the hall for Friday."
    ]


def test_a_decision_is_told_with_the_change_that_is_its_reason() -> None:
    assert decided("It rains. The ferry to Oban was cancelled. We decided to take the night bus on Friday.") == [
        "The ferry to Oban was cancelled. We decided to take the night bus on Friday."
    ]


def test_two_short_decisions_that_share_no_word_are_two() -> None:
    texts = decided("We agreed to paint the hall green.", "The plumber is free on Monday. Book him then.")

    assert texts == ["We agreed to paint the hall green.", "The plumber is free on Monday. Book him then."]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many chairs do we hire, 40 or 60?", "Then 60."),
        ("Кого зовём играть на свадьбе?", "Значит, Ансамбль «Лира»."),
        ("Hall or barn, and which choir?", "The hall is 300 and the choir 200. Both booked, 500 in all."),
    ],
)
def test_an_answer_without_a_verb_of_its_own_settles_a_question(question: str, answer: str) -> None:
    (text,) = decided(question, answer)

    assert text.endswith(answer)


def test_a_plan_that_the_other_approves_is_a_decision() -> None:
    plan, role = "I'm converting the plots to plants per square metre.", {"role": "assistant"}

    assert [
        [each.text for each in decisions_of([turn, reply.model_copy(update=role)])]
        for turn, reply in (
            said(plan, "A wise choice: plots and plants differ."),
            said(plan, "Plots and plants differ."),
        )
    ] == [[plan], []]


@pytest.mark.parametrize("text", ["Of course it is.", "That is what it is, sadly.", "Как оно есть."])
def test_a_comment_settles_nothing(text: str) -> None:
    assert decided("Ravi could cater for 40 pounds a head.", text) == []


def test_what_is_said_between_two_sentences_of_a_decision_belongs_to_it() -> None:
    (text,) = decided("We can move the deadline of the review.", "Move it. End of March. We'll send it to Anna then.")

    assert text == "Move it. End of March. We'll send it to Anna then."


@pytest.mark.parametrize(
    "text",
    [
        "Consider switching to a managed database, and keep your backups elsewhere.",
        "Возьмите две банки краски и оставьте стену сохнуть на сутки.",
    ],
)
def test_advice_of_an_assistant_decides_nothing(text: str) -> None:
    turns = [turn.model_copy(update={"role": "assistant"}) for turn in said(text)]

    assert decisions_of(turns) == ()


def test_code_decides_nothing() -> None:
    assert decided("Why does this fail?\n```\nlet us = use(keep)\n// Drop the old table\n```\n# Use the new one") == []


def test_a_decision_that_a_later_one_changes_says_so() -> None:
    made = decisions_of(said("We decided to fly to Naples on 8 June.", "Nice.", "We agreed to keep the blue sofa."))
    later = decisions_of(said("Flight's off: we're going to Naples by train on 10 June instead."))
    marked = superseded(made, [each.model_copy(update={"raw_log_ids": ("raw_9",)}) for each in later])

    assert [(each.text, each.superseded_by) for each in marked] == [
        ("We decided to fly to Naples on 8 June.", ("raw_9",)),
        ("We agreed to keep the blue sofa.", ()),
    ]


def test_another_day_for_the_same_thing_changes_a_decision() -> None:
    made = decisions_of(said("We agreed to open the shop on 4 May.", "Nice.", "We agreed to hire Tom."))
    changed = [
        [
            each.text
            for each in superseded(made, [one.model_copy(update={"raw_log_ids": ("raw_9",)}) for one in later])
            if each.superseded_by
        ]
        for later in map(
            decisions_of,
            (said("We agreed on May the 18th to open the shop."), said("We agreed to open the shop with 18 shelves.")),
        )
    ]

    assert changed == [["We agreed to open the shop on 4 May."], []]


def test_what_was_put_off_stands_no_more_once_it_is_decided() -> None:
    rooms = [decisions_of(said(f"We agreed to paint the {room} green."))[0] for room in ("hall", "attic", "kitchen")]
    made = decisions_of(said("We agreed to leave the balcony until next year.", "Nice.", "We agreed to keep the sofa."))
    later = decisions_of(said("We agreed to glaze the balcony in October."))
    marked = superseded(
        [*made, *rooms, *decisions_of(said("We agreed to buy lamps.", "Nice.", "We agreed to sell the car."))],
        [each.model_copy(update={"raw_log_ids": ("raw_9",)}) for each in later],
    )

    assert [each.text for each in marked if each.superseded_by] == ["We agreed to leave the balcony until next year."]


@pytest.mark.slow
def test_packs_keep_every_entity_and_every_decision() -> None:
    require_packs_keep_everything(EPISODES)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_five_hundred_packs_keep_every_entity_and_every_decision() -> None:
    require_packs_keep_everything(generated_episodes(500))


def test_a_pack_is_the_same_whenever_it_is_made() -> None:
    assert [warm_of(each.turns) for each in EPISODES[:10]] == [warm_of(each.turns) for each in EPISODES[:10]]


@pytest.mark.parametrize(
    "text",
    ["Hi!", "Привет! Как дела?", "Решили ехать в Казань 5 мая.", "no" * 50_000, "a@" * 9000, "👍 …", "a, b. " * 900],
)
def test_whatever_was_said_can_be_packed(text: str) -> None:
    turns = said(text)
    warm = warm_of(turns)

    assert warm.summary
    assert verify(warm, turns).holds
    assert cold_of(warm, raw_words(turns)).headline


GIBBERISH = "Anna Решили decided 5% $3 «Ромашка» the и не http://a.b/c ? ! . … 👍 - NASA Q3 it's O'Neil #x ( 1С:Б"


@pytest.mark.slow
def test_gibberish_is_packed_like_anything_else() -> None:
    dice, pieces = random.Random(5), GIBBERISH.split()
    for _ in range(150):
        turns = said(*(dice.choice(("", " ")).join(dice.choices(pieces, k=dice.randint(1, 30))) for _ in range(4)))
        warm = pack_warm(turns).content
        assert isinstance(warm, WarmContent)
        assert verify(warm, turns).holds
        assert verify(pack_cold(warm, raw_words(turns)).content, (*turns, *turns_of_warm(warm))).holds


def hostile_answer(episode: Generated, number: int) -> ReadWarm | str:
    """Drops most, invents the rest, cites turns that say something else, or answers nonsense."""
    if number % 5 == 4:
        return ("{broken", "null", '{"summary": 5}', "", "Sure! Here is your summary.")[number // 5 % 5]
    first = episode.turns[0].content
    return ReadWarm(
        summary=f"{first.split('. ')[0]}. They argued with Kanzler Zuckerberg about 7341 bananas in Ulaanbaatar.",
        key_points=[
            ReadPoint(text="Napoleon Dynamite paid 999,999 dollars for the moon.", turns=[1]),
            ReadPoint(text=episode.turns[-1].content[:80], turns=[1]),
            ReadPoint(text=first.split(". ")[0], turns=[1]),
            ReadPoint(text="Nobody said this.", turns=[4000, -1]),
        ],
        entities=[ReadEntity(name="Xanadu Corporation", kind="organization", turns=[1])],
        decisions=[
            ReadPoint(text="We decided to sell the company to Xanadu Corporation.", turns=[1]),
            ReadPoint(text="Мы решили продать всё до последней табуретки.", turns=[2]),
        ],
    )


async def packed_by(answer: ReadWarm | str, episode: Generated) -> Pack:
    reading = await read_warm(episode.turns, ScriptedModel(answer))
    proposal = Proposal("scripted-1", reading.content, reading.unfounded) if reading else None
    return await asyncio.to_thread(pack_warm, episode.turns, proposal)


async def require_hostility_is_harmless(episodes: Sequence[Generated]) -> None:
    for number, episode in enumerate(episodes):
        answer = hostile_answer(episode, number)
        pack = await packed_by(answer, episode)
        assert isinstance(pack.content, WarmContent)
        require_kept(episode, pack.content)
        everything = pack.content.model_dump_json()
        invented = ("Xanadu", "7341", "Napoleon", "Zuckerberg", "табуретки", "Nobody said")
        assert [each for each in invented if each in everything] == []
        cold = pack_cold(pack.content, episode.words, Proposal("scripted-1", a_hostile_headline(number))).content
        assert isinstance(cold, ColdContent)
        assert "Xanadu" not in cold.model_dump_json()
        assert verify(cold, episode.turns).holds
        require_dense(episode, pack.content, cold)
        if isinstance(answer, str):
            assert pack.report.maker == OFFLINE
        else:
            assert pack.report.maker == "scripted-1"
            assert pack.report.put_back
            assert {"Xanadu Corporation", "Nobody said this."} <= set(pack.report.struck_out)


def a_hostile_headline(number: int) -> ColdContent:
    return (
        ColdContent(headline="Xanadu buys 12 moons.", tags=("Xanadu", "moon")),
        ColdContent(headline="", tags=()),
        ColdContent(headline="word " * 500, tags=("Xanadu",) * 90),
    )[number % 3]


@pytest.mark.slow
async def test_a_model_that_drops_invents_or_babbles_does_no_harm() -> None:
    await require_hostility_is_harmless(EPISODES)


@pytest.mark.proof
@pytest.mark.timeout(1800)
async def test_five_hundred_hostile_answers_do_no_harm() -> None:
    await require_hostility_is_harmless(generated_episodes(500))


CHAIR = (
    "У меня снова болит спина после работы за компьютером.",
    "Вставайте каждый час и проверьте высоту стула: он старый, без поддержки поясницы.",
    "Ну хорошо, решил: закажу кресло Markus в пятницу, бюджет 20 тысяч рублей.",
)
INTERVIEW = (
    "By the way, I have an interview at Spotify on Monday for a data engineer position.",
    "Great! That's a big step. Which topics will they ask about?",
    "SQL and Airflow, it seems. Could you ask me about them on Sunday?",
    "Sure, with pleasure. You will do well there, since you have done that sort of thing for years by now.",
)


@pytest.mark.parametrize(
    ("talk", "headline", "tags"),
    [
        (CHAIR, "Решил: закажу кресло Markus в пятницу, бюджет 20 тысяч рублей.", ()),
        (INTERVIEW, "I have an interview at Spotify on Monday for a data engineer position.", ("Airflow", "SQL")),
    ],
)
def test_of_a_short_talk_one_sentence_is_left_that_says_what_it_came_to(
    talk: Sequence[str], headline: str, tags: tuple[str, ...]
) -> None:
    turns = said(*talk)
    cold = cold_of(warm_of(turns), raw_words(turns))

    assert cold.headline == headline
    assert set(tags) <= set(cold.tags)


TALK = said(
    "Hi! Anna Novak moved to Lisbon last week, so she cannot come on Friday.",
    "Good to know. We decided to postpone the workshop to June 5.",
    "Thanks! The venue costs 400 euros and it does not have a projector.",
    *["Some more words that are said just to have enough of them around here."] * 12,
)


def a_pack(**changes: object) -> WarmContent:
    told = {
        "summary": "The workshop is postponed because Anna Novak moved to Lisbon.",
        "key_points": ("Anna Novak moved to Lisbon.", "The venue costs 400 euros."),
        "key_point_sources": (("raw_0",), ("raw_2",)),
        "entities": entities_of(TALK),
        "decisions": decisions_of(TALK),
    }
    return WarmContent.model_validate(told | changes)


def point(text: str, source: str) -> dict[str, object]:
    return {"key_points": (text,), "key_point_sources": ((source,),)}


def test_a_pack_that_is_true_holds_as_it_is() -> None:
    assert verify(a_pack(), TALK).holds
    mended = pack_warm(TALK, Proposal("m", a_pack()))
    assert isinstance(mended.content, WarmContent)
    assert mended.content.key_points == a_pack().key_points
    assert (mended.report.put_back, mended.report.struck_out) == ((), ())


def test_what_a_decision_says_is_no_point_as_well() -> None:
    proposed = a_pack(**point("The workshop is postponed to June 5.", "raw_1"))
    mended = pack_warm(TALK, Proposal("m", proposed)).content

    assert isinstance(mended, WarmContent)
    assert "The workshop is postponed to June 5." not in mended.key_points
    assert [each.text for each in mended.decisions] == ["We decided to postpone the workshop to June 5."]


@pytest.mark.parametrize(
    ("changes", "invented"),
    [
        (point("The venue costs 500 euros.", "raw_2"), "The venue costs 500 euros."),
        (point("The venue costs 400 euros.", "raw_0"), "The venue costs 400 euros."),
        (point("The venue does have a projector.", "raw_2"), "The venue does have a projector."),
        (point("Anna moved.", "raw_99"), "Anna moved."),
        ({"summary": "Anna Novak moved to Madrid."}, "Anna Novak moved to Madrid."),
        ({"entities": (*entities_of(TALK), Entity(name="Bob", kind="person", raw_log_ids=("raw_0",)))}, "Bob"),
        (
            {"decisions": (*decisions_of(TALK), Decision(text="We decided to cancel it.", raw_log_ids=("raw_1",)))},
            "We decided to cancel it.",
        ),
    ],
)
def test_what_nobody_has_said_is_found(changes: dict[str, object], invented: str) -> None:
    assert verify(a_pack(**changes), TALK).invented == (invented,)


def test_what_is_missing_is_found() -> None:
    found = verify(a_pack(entities=(), decisions=()), TALK)

    assert {each.name for each in found.missing_entities} >= {"Anna Novak", "Lisbon", "400 euros", "Friday"}
    assert [each.text for each in found.missing_decisions] == ["We decided to postpone the workshop to June 5."]


async def test_without_a_model_nothing_is_read() -> None:
    assert await read_warm(TALK, ScriptedModel("babble")) is None


def test_a_headline_of_a_model_is_kept_if_it_is_true() -> None:
    warm = warm_of(EPISODES[-1].turns)
    subject = warm.entities[0].name
    proposed = ColdContent(headline=f"{subject}.", tags=(warm.entities[1].name,))
    pack = pack_cold(warm, EPISODES[-1].words, Proposal("m", proposed))

    assert isinstance(pack.content, ColdContent)
    assert pack.content.headline == f"{subject}."
    assert warm.entities[1].name in pack.content.tags
