"""Outputs that are no result, and those that look like it but are one."""

import pytest

from agents.creative.misbehaviour import Expectation, ModelMisbehaviour, is_off_topic
from agents.creative.refusals import is_refusal
from bus_schema.runs import MisbehaviourKind

REFUSALS = (
    "As an AI language model I cannot help with that.",
    "I'm sorry, but I can't assist with that request.",
    "I’m sorry, but I can’t write this article, as it goes against my guidelines.",
    "I cannot fulfill this request. I am just an AI, and it is not within my programming to write about real people.",
    "Sorry, I am unable to provide that. Is there anything else I can help you with today?",
    "I apologize, but I don't feel comfortable writing about this topic. Please ask for something else.",
    "# Article\n\nUnfortunately, I cannot create this content. It would violate our policies.",
    "I must decline to answer.",
    "I won't be able to do that. However, I can:\n\n- summarise it\n- translate it\n- shorten it\n- proofread it",
    "We are sorry, but we are unable to process this request at the moment.",
    "Извините, но я не могу помочь с этим запросом.",
    "К сожалению, я не могу написать такую статью.",
    "Как языковая модель, я не могу выполнить эту просьбу.",
    "Я — ИИ и не могу обсуждать эту тему. Давайте поговорим о чём-нибудь другом.",
    "Я вынужден отказаться от выполнения этого задания.",
    "Прошу прощения, но я не смогу с этим помочь.",
)
RESULTS = (
    # A poem whose first line would pass for one.
    "I cannot help but watch the river go,\nit carries all the lanterns of the town,\nI cannot write the things the "
    "waters know,\nand so I lay my paper down.",
    "Я не могу помочь тебе, река,\nты всё уносишь в море без следа,\nи белые над нею облака\nплывут неведомо куда.",
    # Translations and stories that begin with the word of another.
    "“As an AI language model I cannot help with that,” the machine wrote, and the whole council laughed.",
    "«Извините, но я не могу помочь», — ответила машина, и совет рассмеялся.",
    "The chatbot answered: as an AI language model I cannot help with that. The town then asked its engineer.",
    "I am sorry to report that the pool was closed for a weekend in January. The valve has been replaced since.",
    "Unfortunately, the first pump was too loud. Neighbours complained for eleven weeks until it was boxed in.",
    "К сожалению, первый насос был слишком шумным. Соседи жаловались одиннадцать недель.",
    "I can't write.\n\nThat was the first sentence of the diary that Marta kept in the winter of 1998, and she wrote "
    "on every day of it. " + "The ice was thick, the pool was warm, and she swam before work each morning. " * 8,
    # Tables.
    "| Year | Gas | Power |\n|---|---|---|\n| 2022 | 2,310 | 1,120 |\n| 2024 | 670 | 1,019 |",
    "An AI counts the fish of this river; it cannot err by more than three percent.",
    "Sorry is a word that the town's council has never used. This is what it did instead.",
    "We cannot process milk in summer, said no cheesemaker ever; this one in Lindvik does it in July.",
)


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_known_by_its_opening_and_its_length(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", RESULTS)
def test_a_text_that_quotes_rhymes_or_regrets_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)


ENGLISH = (
    "The rink and the pool have shared their heat since October, and the town has saved money with it. It was the idea "
    "of the driver who swims before work, and it has been copied by two of the towns that are near."
)
RUSSIAN = (
    "Каток и бассейн делят тепло с октября, и город уже сберёг на этом деньги. Это придумала водитель, которая плавает "
    "перед работой, а два соседних города уже повторили её опыт."
)
FRENCH = (
    "La patinoire et la piscine partagent leur chaleur depuis octobre, et la ville a fait des économies avec "
    "cette idée. Elle est venue de la conductrice qui nage avant le travail, et deux villes voisines ont repris le "
    "projet pour les écoles."
)
CHINESE = "溜冰场的余热温暖了游泳池，小镇节省了很多钱。" * 4
POEM = "\n".join(["Ice, ice, blue light,", "steam above water —", "swallows, swallows,", "dawn."] * 6)
TABLE = "| Rink | MWh |\n|---|---|\n" + "\n".join(f"| Lindvik {year} | {year} |" for year in range(1990, 2024))
QUOTING = f"The council wrote to its neighbours in their own words: «{RUSSIAN}» Nobody in Lindvik could read it."
PHRASEBOOK = "\n".join(f"- {pair}" for pair in ("rink — каток", "pool — бассейн", "heat — тепло", "town — город") * 6)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("en", RUSSIAN),
        ("en", FRENCH),
        ("en", CHINESE),
        ("ru", ENGLISH),
        ("ru", CHINESE),
        ("fr", ENGLISH),
        ("de", FRENCH),
    ],
)
def test_a_text_in_another_language_is_no_result(expected: str, text: str) -> None:
    with pytest.raises(ModelMisbehaviour, match="instead of") as caught:
        Expectation(expected).check(text)

    assert caught.value.kind is MisbehaviourKind.WRONG_LANGUAGE


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("en", ENGLISH),
        ("ru", RUSSIAN),
        ("fr", FRENCH),
        ("zh", CHINESE),
        ("en", POEM),
        ("en", TABLE),
        ("de", TABLE),
        ("en", QUOTING),
        ("en", PHRASEBOOK),
        ("ru", PHRASEBOOK),
        ("en", "42"),
        (None, CHINESE),
    ],
)
def test_a_short_quoting_or_sparse_text_is_in_the_right_language(expected: str | None, text: str) -> None:
    Expectation(expected).check(text)


@pytest.mark.parametrize("text", ["", " \n", "---\n\n***", "…"])
def test_nothing_is_no_result(text: str) -> None:
    with pytest.raises(ModelMisbehaviour, match="answered nothing"):
        Expectation().check(text)


TOLD = (
    "You are a demanding editor. Check every claim against the research and mark what has no support. Answer with text."
)


@pytest.mark.parametrize(
    "text",
    [
        "Check every claim against the research and mark what has no support.",
        "**Check every claim** against the research\nand mark what has no support!",
    ],
)
def test_what_a_role_was_told_of_its_work_is_no_result(text: str) -> None:
    with pytest.raises(ModelMisbehaviour, match="repeated what it was told") as caught:
        Expectation(told=TOLD).check(text)

    assert caught.value.kind is MisbehaviourKind.OFF_TOPIC


@pytest.mark.parametrize(
    "text",
    [
        "Text.",
        "A demanding editor.",
        ENGLISH,
        "The guide says: “Check every claim against the research and mark what has no support.” Ours is longer: "
        "it wants every figure traced to the page that it came from, and every name to somebody who exists.",
    ],
)
def test_what_quotes_its_instructions_or_says_little_is_a_result(text: str) -> None:
    Expectation(told=TOLD).check(text)


def test_a_text_about_something_else_shares_no_terms_with_its_material() -> None:
    recipe = (
        "Preheat your oven, mash ripe bananas, melt butter, whisk sugar, fold flour, pour batter, sprinkle walnuts, "
        "bake until golden, slice thickly and serve alongside cream."
    )
    assert is_off_topic(recipe, ENGLISH)
    assert not is_off_topic("Marta swims. She drives the ice resurfacer, and her idea heats the pool.", ENGLISH)
    assert not is_off_topic("Ja.", ENGLISH)
