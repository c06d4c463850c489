"""The offline model as the writing team meets it: in prompts, step by step."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agents.models.errors import ModelRefused
from agents.models.language_model import ModelMessage, TokenUsage, complete_as
from agents.models.offline.article import statements
from agents.models.offline.model import NAME, OfflineModel, next_turn
from agents.models.offline.source import statement_key
from agents.models.prompt import Material, Step, Verdict, build_prompt, remarks
from language.markdown import BlockKind, parse, plain
from language.sentences import sentences
from language.words import words
from tests.unit.agents.briefs import ALL, ENGLISH, ONE_REQUEST, RUSSIAN

TEAM = {
    "research_report": (),
    "idea": ("research_report",),
    "draft": ("research_report", "idea"),
    "critique": ("draft",),
    "edited": ("draft", "critique"),
    "final": ("edited",),
}
MOST_ROUNDS = 2


def answer(messages: Sequence[ModelMessage]) -> str:
    return str(next_turn(messages))


def ask(task: str, *materials: Material, step: Step = "write") -> str:
    return answer(build_prompt(task, step, "You are one of a writing team.", "Do your part.", materials))


def judge(task: str, *materials: Material) -> Verdict:
    return Verdict.model_validate_json(ask(task, *materials, step="self-critique"))


def written(task: str, *materials: Material) -> tuple[str, list[Verdict]]:
    """A step as the team takes it: write, then criticise oneself, revise, until satisfied."""
    text, verdicts = ask(task, *materials), []
    for _ in range(MOST_ROUNDS + 1):
        attempt = Material("attempt", task, text)
        verdicts.append(judge(task, *materials, attempt))
        if verdicts[-1].satisfied:
            return text, verdicts
        text = ask(task, *materials, attempt, remarks(verdicts[-1].remarks), step="revise")
    raise AssertionError(f"{task} is never satisfied: {verdicts[-1].remarks}")


def team(brief: str, with_brief: bool = True) -> dict[str, str]:
    papers: dict[str, str] = {}
    for task, inputs in TEAM.items():
        given_now = [Material(f"art_{each}", each, papers[each]) for each in inputs]
        if with_brief or not inputs:
            given_now.insert(0, Material("art_brief", "brief", brief))
        papers[task], _ = written(task, *given_now)
    return papers


# The same brief makes the same papers: many tests look at them, each for something else.
papers_of = cache(team)


def said(text: str) -> list[str]:
    return list(statements(parse(text)))


def unsupported(text: str, brief: str) -> list[str]:
    """Statements of the text that are not literally in the brief."""
    material = f" {statement_key(plain(brief))} {statement_key(brief)} "
    return [statement for statement in said(text) if f" {statement_key(statement)} " not in material]


@pytest.mark.parametrize("brief", ALL.values(), ids=ALL)
def test_the_team_gets_an_article_out_of_any_brief(brief: str) -> None:
    for task, text in papers_of(brief).items():
        assert text.startswith("# "), task
        assert text.endswith("\n"), task
        assert text.count("```") % 2 == 0, task


@pytest.mark.parametrize("brief", [text for text in ALL.values() if len(text) > len(ONE_REQUEST)])
@pytest.mark.parametrize("task", ["draft", "edited", "final"])
def test_an_article_says_nothing_that_the_brief_does_not_say_literally(brief: str, task: str) -> None:
    assert unsupported(papers_of(brief)[task], brief) == []


@pytest.mark.parametrize("brief", ALL.values(), ids=ALL)
@pytest.mark.parametrize("task", ["draft", "final"])
def test_no_sentence_stands_in_an_article_twice(brief: str, task: str) -> None:
    found = said(papers_of(brief)[task])

    assert len(found) == len(set(found))


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
@pytest.mark.parametrize("task", ["research_report", "idea", "critique"])
def test_every_quotation_is_in_the_brief_to_the_letter(brief: str, task: str) -> None:
    one_line = " ".join(brief.split())
    quotes = [block.text for block in parse(papers_of(brief)[task]) if block.kind is BlockKind.QUOTE]
    lines = [line.removeprefix("- ") for quote in quotes for line in quote.split("\n") if line]

    assert lines or task == "critique"
    assert [line for line in lines if " ".join(line.split()) not in one_line] == []


@pytest.mark.parametrize(
    ("brief", "note"),
    [(ENGLISH, "This article organises and quotes the brief"), (RUSSIAN, "Статья составлена из материала задания")],
)
def test_the_article_says_whose_words_it_is_made_of(brief: str, note: str) -> None:
    final = papers_of(brief)["final"]

    assert note in final.rstrip().split("\n")[-1]
    assert final.count(note) == 1


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
def test_the_article_is_as_long_as_the_brief_asks(brief: str) -> None:
    length = sum(len(words(sentence)) for sentence in said(papers_of(brief)["final"]))

    assert 350 <= length <= 700


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
def test_what_the_brief_asks_of_the_writer_is_not_told_to_the_reader(brief: str) -> None:
    papers = papers_of(brief)

    for demand in (
        "Write an article",
        "Between 400",
        "Напишите статью",
        "Тон спокойный",
        "For the writer",
        "Для автора",
    ):
        assert demand not in papers["final"]
    assert re.search(r"## (What the brief asks for|О чём просит задание)\n\n- \w", papers["research_report"])


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
def test_the_article_has_title_lead_sections_in_good_markdown(brief: str) -> None:
    blocks = parse(papers_of(brief)["final"])

    assert [block.kind for block in blocks[:2]] == [BlockKind.HEADING, BlockKind.PROSE]
    assert [block.level for block in blocks if block.kind is BlockKind.HEADING] == [1, *[2] * 7] or len(blocks) > 14
    headings = [at for at, block in enumerate(blocks) if block.kind is BlockKind.HEADING]
    assert all(blocks[at + 1].kind is not BlockKind.HEADING for at in headings)


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
def test_the_editor_puts_in_what_the_critic_missed(brief: str) -> None:
    papers = papers_of(brief)
    critic = [block.text for block in parse(papers["critique"]) if block.kind is BlockKind.QUOTE]

    assert critic, "the draft leaves something out"
    assert all(quote not in papers["draft"] for quote in critic)
    assert all(quote in papers["edited"] for quote in critic)


def test_the_draft_follows_the_outline_that_people_may_have_edited() -> None:
    brief = Material("art_brief", "brief", ENGLISH)
    ideas = ask("idea", brief)
    second = re.findall(r"^## Angle 2: (.*?)$", ideas, re.MULTILINE)[0]
    first_section = second.removeprefix("Starting with “").removesuffix("”")
    swapped = ideas.replace(" (recommended)", "").replace(f": {second}", f": {second} (recommended)")

    assert headings(ask("draft", brief, Material("i", "idea", ideas)))[0] == "How it works"
    assert headings(ask("draft", brief, Material("i", "idea", swapped)))[0] == first_section != "How it works"


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_a_finding_that_somebody_struck_out_is_not_acted_on() -> None:
    papers = papers_of(ENGLISH)
    materials = [Material("art_brief", "brief", ENGLISH), Material("d", "draft", papers["draft"])]
    quotes = (block.text for block in parse(papers["critique"]) if block.kind is BlockKind.QUOTE)
    quote = next(quote for quote in quotes if "\n" not in quote)
    struck = "\n".join(line for line in papers["critique"].split("\n") if quote not in line)

    assert quote not in ask("edited", *materials, Material("c", "critique", struck))
    assert quote in ask("edited", *materials, Material("c", "critique", papers["critique"]))


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
def test_a_team_that_passes_on_only_its_own_papers_still_writes_an_article(brief: str) -> None:
    final = papers_of(brief, with_brief=False)["final"]

    assert len(said(final)) > 12
    assert unsupported(final, brief) == []


def test_without_material_the_instructions_are_the_material() -> None:
    draft = answer(build_prompt("draft", "write", "", "The harbour froze in May. It never had before.", []))

    assert said(draft) == ["The harbour froze in May.", "It never had before."]


@pytest.mark.parametrize("task", ["critique", "edited", "final"])
def test_a_text_without_a_brief_is_looked_at_for_its_form(task: str) -> None:
    sentence = "The valve froze open, and the pool cooled down over a long weekend in January; " * 3
    document = Material("doc", "document", f"# Notes\n\n{sentence.strip('; ')}.\n\nBirds sing. The cat sat on the mat.")

    assert "# " in ask(task, document)
    assert judge(task, document, Material("attempt", task, ask(task, document))).satisfied


def test_nothing_to_quote_is_said_and_not_made_up() -> None:
    papers = papers_of(ONE_REQUEST)

    assert "В материале нечего цитировать" in papers["final"]
    assert "- Напишите статью о кошках." in papers["research_report"]


@pytest.mark.parametrize("task", [*TEAM])
def test_every_step_is_satisfied_with_its_own_work_in_two_rounds_at_most(task: str) -> None:
    materials = [Material("art_brief", "brief", RUSSIAN)]
    for each in TEAM[task]:
        materials.append(Material(each, each, papers_of(RUSSIAN)[each]))

    assert written(task, *materials)[1][-1] == Verdict(satisfied=True, remarks=[])


def test_a_writer_finds_fault_with_a_poor_attempt() -> None:
    brief = Material("art_brief", "brief", ENGLISH)
    poor = " ".join(sentences(ENGLISH.split("\n\n")[1]) * 2)

    verdict = judge("draft", brief, Material("attempt", "draft", poor))

    assert not verdict.satisfied
    assert any("no title" in remark for remark in verdict.remarks)
    assert any("twice" in remark for remark in verdict.remarks)
    assert any("at least 400" in remark for remark in verdict.remarks)


ODD_TEXT = st.text(alphabet=st.sampled_from('абвABC12 .,:;!?\n\n#*-|>`«»()"'), max_size=400)
SENTENCES = st.lists(
    st.sampled_from(
        [
            *sentences(plain(ENGLISH))[3:20],
            *sentences(plain(RUSSIAN))[3:15],
            "## Heading",
            "- item one",
            "\n\n",
            "### Deep",
        ]
    ),
    max_size=40,
).map("\n".join)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.one_of(ODD_TEXT, SENTENCES))
def test_the_loop_ends_whatever_the_brief(brief: str) -> None:
    team(brief)


@pytest.mark.slow
@settings(max_examples=40)
@given(SENTENCES, SENTENCES)
def test_the_loop_ends_whatever_the_attempt(brief: str, attempt: str) -> None:
    material = Material("art_brief", "brief", brief)
    for task in ("draft", "final", "critique"):
        text = attempt
        for _ in range(MOST_ROUNDS + 1):
            verdict = judge(task, material, Material("attempt", task, text))
            text = ask(task, material, Material("attempt", task, text), remarks(verdict.remarks), step="revise")
        assert judge(task, material, Material("attempt", task, text)).satisfied


@pytest.mark.slow
def test_the_same_prompt_gives_the_same_answer_in_every_process() -> None:
    script = (
        "from agents.models.prompt import Material\n"
        "from tests.unit.agents.briefs import ENGLISH, RUSSIAN\n"
        "from tests.unit.agents.test_offline_model import ask, team\n"
        "print(team(ENGLISH), ask('draft', Material('b', 'brief', RUSSIAN)))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert runs[0] == runs[1]


@pytest.mark.parametrize("separator", ["\n\n", " ", "\n- "], ids=["paragraphs", "one breath", "bullets"])
def test_a_brief_of_100_kb_takes_less_than_two_seconds(separator: str) -> None:
    told = [each for text in (ENGLISH, RUSSIAN) for each in sentences(plain(text))]
    numbered = [f"Note {at}: {told[at % len(told)]}" for at in range(1400)]
    brief = Material("art_brief", "brief", separator.join(numbered)[:100_000])

    began = time.process_time()
    draft = ask("draft", brief)
    took = time.process_time() - began

    assert took < 2
    assert 300 < len(words(draft)) < 1200


ODD_BITS = [*'.,[(«"`#|>*—a\n', ". ", "](", "# ", "- ", "|\n|-|\n", "<!--", "a-", "Who? ", "т. е. ", "Word\n", "- a\n"]


@pytest.mark.slow
@pytest.mark.parametrize("bit", [*ODD_BITS, "x:\n- y\n", "x" + " " * 999 + "y |\n|--|\n"])
def test_no_text_is_so_odd_that_it_takes_for_ever(bit: str) -> None:
    brief = Material("art_brief", "brief", (bit * 20_000)[:20_000])

    began = time.process_time()
    for task in TEAM:
        ask(task, brief, Material("d", "draft", brief.text[:10_000]))

    assert time.process_time() - began < 12


async def test_an_answer_is_a_completion_like_any_other() -> None:
    model = OfflineModel()
    prompt = build_prompt(
        "draft", "write", "You write.", "Write.", [Material("b", "brief", "The harbour froze in May.")]
    )

    completion = await model.complete(prompt)

    assert model.name == completion.model_name == NAME
    assert completion.finish_reason == "stop"
    assert completion.tool_calls == ()
    assert completion.usage == TokenUsage(prompt_tokens=18, completion_tokens=len(words(completion.text)))
    await model.aclose()


async def test_a_stream_makes_up_the_answer() -> None:
    model = OfflineModel()
    prompt = build_prompt("final", "write", "", "", [Material("b", "brief", RUSSIAN)])

    chunks = [chunk async for chunk in model.stream(prompt)]

    assert len(chunks) > 10
    assert chunks[-1].completion is not None
    assert "".join(chunk.text for chunk in chunks) == chunks[-1].completion.text


async def test_the_verdict_comes_as_the_schema_says() -> None:
    prompt = build_prompt(
        "draft", "self-critique", "", "", [Material("b", "brief", ENGLISH), Material("attempt", "draft", "x")]
    )

    assert not (await complete_as(OfflineModel(), prompt, Verdict)).satisfied


class Invoice(BaseModel):
    total: int


async def test_a_schema_it_cannot_fill_is_refused_with_what_to_do() -> None:
    with pytest.raises(ModelRefused, match="MINDBUS_LLM_BASE_URL"):
        await complete_as(OfflineModel(), [ModelMessage(role="user", content="How much?")], Invoice)


def test_a_question_without_a_task_gets_quotes_with_a_plain_word_about_it() -> None:
    english = answer([ModelMessage(role="user", content=f"What does it cost?\n\n{ENGLISH}")])
    russian = answer([ModelMessage(role="user", content="Сколько стоит бур? Бур стоит 64 тысячи рублей.")])

    assert english.startswith("No language model is configured")
    assert english.count("\n> ") == 3
    assert "> Бур стоит 64 тысячи рублей." in russian
    assert "nothing was given" in answer([])


async def test_a_long_brief_does_not_stop_the_loop() -> None:
    long = build_prompt("draft", "write", "", "", [Material("b", "brief", ENGLISH * 25)])
    answering = asyncio.create_task(OfflineModel().complete(long))
    turns = 0
    while not answering.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns > 3
    assert answering.result().text
