"""JSON and texts out of what models put around them."""

import pytest
from pydantic import ValidationError

from agents.models.answer_text import RepetitionWatch, joined, without_fence, without_material_tags, without_thoughts
from agents.models.json_answers import parse_answer, parse_cut_answer
from agents.models.prompt import Verdict

SATISFIED = '{"satisfied": true, "remarks": []}'


@pytest.mark.parametrize(
    "answer",
    [
        SATISFIED,
        f"Sure! Here is my verdict:\n{SATISFIED}\nAnything else?",
        f"```json\n{SATISFIED}\n```",
        f"The format is {{satisfied, remarks}}. My answer:\n\n```\n{SATISFIED}\n```",
        f'<think>Is it {{"satisfied": false, "remarks": ["?"]}}?</think>{SATISFIED}',
        f"Let me see.\n</think>\n\n{SATISFIED}",
        '{"satisfied": true, "remarks": [], "score": 7, "details": {"tone": "dry"}}',
        f'{{"note": 1}} {SATISFIED}',
    ],
)
def test_a_verdict_is_read_out_of_what_is_around_it(answer: str) -> None:
    assert parse_answer(answer, Verdict) == Verdict(satisfied=True, remarks=[])


def test_of_too_many_remarks_the_first_are_kept() -> None:
    nine = '{"satisfied": false, "remarks": ["1", "2", "3", "4", "5", "6", "7", "8", "9"], "more": 1}'

    assert parse_answer(nine, Verdict).remarks == ["1", "2", "3", "4", "5", "6", "7", "8"]


@pytest.mark.parametrize("answer", ["", "Rather good.", "{", "[]", '{"satisfied": "perhaps"}', "{" * 5000, "<think>{}"])
def test_what_does_not_fit_is_an_error(answer: str) -> None:
    with pytest.raises(ValidationError):
        parse_answer(answer, Verdict)


def test_an_answer_that_stops_in_the_middle_is_read_as_far_as_it_goes() -> None:
    assert parse_cut_answer('Well: {"satisfied": false, "remarks": ["Shorter.", "Cle', Verdict) == Verdict(
        satisfied=False, remarks=["Shorter."]
    )
    assert parse_cut_answer('{"satisfied": fal', Verdict) is None
    assert parse_cut_answer("Rather good", Verdict) is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("```markdown\n# Rink\n\nIce.\n```", "# Rink\n\nIce."),
        ("```\n# Rink\n\nIce.\n```", "# Rink\n\nIce."),
        ("Here it is:\n\n```md\n# Rink\n\nIce is cold in Lindvik.\n```\nEnjoy!", "# Rink\n\nIce is cold in Lindvik."),
        ("```markdown\n# Rink\n\nIce.", "# Rink\n\nIce."),
        ("~~~\nIce.\n~~~", "Ice."),
    ],
)
def test_a_fence_around_the_text_is_taken_off(answer: str, text: str) -> None:
    assert without_fence(answer) == text


@pytest.mark.parametrize(
    "text",
    [
        "# Rink\n\nRun this:\n\n```sh\nmake ice\n```\n\nThen wait.",
        "# Rink\n\n```\nmake ice\n```",
        "```python\nprint('ice')\n```",
        "```\none\n```\n\nand\n\n```\ntwo\n```",
        "A `<think>` tag opens the thoughts of a model.",
    ],
)
def test_a_text_with_code_in_it_stays_as_it_is(text: str) -> None:
    assert without_fence(without_thoughts(text)) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The town saved gas.\n</material>", "The town saved gas."),
        ("<present>\nNow: Friday\n</present>\n\n<present>\nNow\n</present>\n\nThe town", "The town"),
        ("At <present>this</present> moment", "At <present>this</present> moment"),
        ('<material id="attempt" type=final>\nThe town saved gas.\n</material>\n', "The town saved gas."),
        ("A tag <material> in the middle stays.", "A tag <material> in the middle stays."),
        ("<materials>None.", "<materials>None."),
    ],
)
def test_tags_of_the_prompt_around_an_answer_are_taken_off(answer: str, text: str) -> None:
    assert without_material_tags(answer) == text


def test_thoughts_without_an_end_leave_nothing() -> None:
    assert without_thoughts("<think>First I look at the brief") == ""
    assert without_thoughts("<thinking>\nHm.\n</thinking>\n\nIce.") == "Ice."


def test_a_continuation_that_repeats_the_end_is_joined_without_it() -> None:
    assert joined("The ice is thick in", " January.") == "The ice is thick in January."
    assert joined("The ice is thick in", "ice is thick in January.") == "The ice is thick in January."
    assert joined("", "Ice.") == "Ice."


def watched(text: str, piece_chars: int = 5) -> RepetitionWatch:
    """What is known of a text that comes in pieces."""
    watch = RepetitionWatch()
    for start in range(0, len(text), piece_chars):
        watch.read(text[start : start + piece_chars])
    return watch


@pytest.mark.parametrize(
    "circle",
    [
        "- **What is the response time in {n}?**\n" * 3,
        "The median is three days in {n}. Nobody has to wait for longer than that! ",
        "{n}. Ответ даёт тот же отдел.\n\nСроки не изменились с прошлой осени.\n",
    ],
)
def test_a_text_that_goes_round_is_known_until_where_it_was_new(circle: str) -> None:
    beginning = "# DSRs\n\nIn October we answered 41 of them.\n\n"
    fresh = circle.format(n="May")
    text = beginning + fresh * 40

    watch = watched(text)

    assert watch.goes_round
    assert (beginning + fresh).startswith(text[: watch.fresh_chars])
    assert "41 of them." in text[: watch.fresh_chars]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"| {month} | {n} calls answered in time |\n|---|---|\n" for n, month in enumerate("ABCDEFGH" * 5)),
        "".join(f"| 2026-11-{day:02} | nobody is on call |\n" for day in range(1, 31)),
        "Row, row, row your boat, gently down the stream.\nMerrily, merrily, life is but a dream.\n" * 12,
        "```python\n" + "    timeout: Annotated[float, Doc(LATER)] = 3.0,\n    retries: int = 3,\n" * 40 + "```\n",
    ],
    ids=["table", "calendar", "song", "code"],
)
def test_a_text_that_may_repeat_itself_does_not_go_round(text: str) -> None:
    assert not watched(text).goes_round
