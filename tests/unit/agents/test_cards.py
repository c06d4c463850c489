"""Process Cards: what is read, what is refused with which words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.prompts import role_names
from agents.processes.cards import (
    InvalidCard,
    UnknownCard,
    card_from_file,
    card_names,
    parse_card,
    runnable,
    shipped_card,
)
from bus_schema.cards import Card, CardStep

ROLES = frozenset({"researcher", "ideator", "critic", "editor", "pushkin", "importer"})

GOOD = """\
name: note
result: write
steps:
  - id: find
    role: researcher
    produces: research_report
    instructions: Найди факты.
    timeout_s: 60
  - id: write
    role: pushkin
    inputs: [brief, find]
    produces: final
    instructions: |
      Напиши заметку.
"""


def complaints(text: str | bytes) -> list[str]:
    with pytest.raises(InvalidCard) as bad:
        parse_card(text.encode() if isinstance(text, str) else text, "cards/note.yaml", ROLES)
    return str(bad.value).splitlines()


def test_a_card_is_read_with_its_defaults() -> None:
    card = parse_card(GOOD.encode(), "note.yaml", ROLES)

    find, write = card.steps
    assert (find.inputs, find.critical, find.timeout_s, find.attempts) == (("brief",), True, 60, 3)
    assert (write.inputs, write.instructions) == (("brief", "find"), "Напиши заметку.\n")
    assert card.result == "write"


def test_a_card_may_say_how_long_its_artifacts_are_kept() -> None:
    assert parse_card(GOOD.encode(), "note.yaml", ROLES).retention is None
    assert parse_card(f"retention: 90d\n{GOOD}".encode(), "note.yaml", ROLES).retention == "90d"
    (complaint,) = complaints(f"retention: a while\n{GOOD}")
    assert complaint.startswith("cards/note.yaml:1: retention: 'a while' has characters that do not fit here")


def test_a_card_may_start_with_a_byte_order_mark() -> None:
    assert parse_card(b"\xef\xbb\xbf" + GOOD.encode(), "note.yaml", ROLES).name == "note"


@pytest.mark.parametrize("name", card_names())
def test_every_shipped_card_can_be_run(name: str) -> None:
    card = shipped_card(name, ROLES)

    assert card.name == name
    assert all(len(step.instructions) > 200 for step in card.steps if step.role in role_names())


def test_the_article_goes_from_research_to_a_final_text_by_pushkin() -> None:
    card = shipped_card("article", ROLES)

    assert [(step.id, step.role, step.produces) for step in card.steps] == [
        ("research", "researcher", "research_report"),
        ("ideas", "ideator", "idea"),
        ("draft", "pushkin", "draft"),
        ("critique", "critic", "critique"),
        ("edit", "editor", "edited"),
        ("final", "pushkin", "final"),
    ]
    assert card.result == "final"


def test_the_review_has_branches_that_do_not_wait_for_each_other() -> None:
    steps = {step.id: step for step in shipped_card("review", ROLES).steps}

    assert steps["critique"].inputs == steps["facts"].inputs == ("brief",)
    assert not steps["facts"].critical


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "    timeout_s: 60",
            "    timeout: 60",
            "cards/note.yaml:8: steps[0].timeout: there is no such field; did you mean 'timeout_s'? known: ",
        ),
        (
            "    timeout_s: 60",
            "    timeout_s: 4000",
            "cards/note.yaml:8: steps[0].timeout_s: 4000 is out of range; should be less than or equal to 1500",
        ),
        (
            "    timeout_s: 60",
            "    timeout_s: soon",
            "cards/note.yaml:8: steps[0].timeout_s: must be a number, not 'soon'",
        ),
        (
            "    timeout_s: 60",
            "    attempts: 0",
            "cards/note.yaml:8: steps[0].attempts: 0 is out of range; should be greater than or equal to 1",
        ),
        (
            "role: pushkin",
            "role: puskin",
            "cards/note.yaml:10: steps[1].role: there is no role 'puskin'; did you mean 'pushkin'? known: critic, ",
        ),
        (
            "[brief, find]",
            "[brief, fnd]",
            "cards/note.yaml:11: steps[1].inputs[1]: no step is called 'fnd'; did you mean 'find'? known: brief, ",
        ),
        ("[brief, find]", "[]", "cards/note.yaml:11: steps[1].inputs: names nothing to work on; leave the field out"),
        ("[brief, find]", "[find, find]", "cards/note.yaml:11: steps[1].inputs[1]: 'find' is listed twice; keep one"),
        ("[brief, find]", "find", "cards/note.yaml:11: steps[1].inputs: must be a list; write [name, …]"),
        (
            "[brief, find]",
            "[write]",
            "cards/note.yaml:11: steps[1].inputs: these steps wait for each other: write → write; cut one",
        ),
        ("id: write", "id: find", "cards/note.yaml:9: steps[1].id: two steps are called 'find'; rename one"),
        ("id: find", "id: brief", "cards/note.yaml:4: steps[0].id: 'brief' is the name of what the run was started"),
        (
            "result: write",
            "result: wrote",
            "cards/note.yaml:2: result: no step is called 'wrote'; did you mean",
        ),
        ("result: write", "", "cards/note.yaml:1: result: is missing; add it"),
        ("    produces: final\n", "", "cards/note.yaml:9: steps[1].produces: is missing; add it"),
        ("name: note", "name: Заметка", "cards/note.yaml:1: name: 'Заметка' has characters that do not fit here"),
        ("name: note", "name: 12", "cards/note.yaml:1: name: must be text, not 12; put it in quotes"),
        (
            "    produces: final\n",
            "    produces: final\n    critical: false\n",
            "cards/note.yaml:13: steps[1].critical: this step makes the result, so it is critical; remove the field",
        ),
        ("result: write", "name: again", "cards/note.yaml:2: file: 'name' is given twice; keep one of them"),
        ("name: note", "name: [note", "cards/note.yaml:2: file: not YAML: while parsing a flow sequence, "),
    ],
)
def test_a_mistake_is_named_with_file_line_field_and_remedy(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)

    assert [line for line in complaints(text) if line.startswith(complaint)], complaints(text)


def test_a_cycle_is_shown_from_step_to_step() -> None:
    text = GOOD.replace("    timeout_s: 60", "    inputs: [write]")

    assert complaints(text) == [
        "cards/note.yaml:8: steps[0].inputs: these steps wait for each other: find → write → find; cut one"
    ]


def test_all_mistakes_are_named_at_once() -> None:
    text = GOOD.replace("researcher", "resercher").replace("[brief, find]", "[brief, fnd]")

    assert len(complaints(text)) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "cards/note.yaml:1: file: the file is empty"),
        (b"# nothing yet\n", "cards/note.yaml:1: file: the file is empty"),
        (b"- a\n- b\n", "cards/note.yaml:1: file: a card is a mapping that starts with"),
        (b"just words", "cards/note.yaml:1: file: a card is a mapping that starts with"),
        (b"a: 1\n---\nb: 2\n", "cards/note.yaml:2: file: not YAML: expected a single document"),
        (b"a: &x [1]\nb: [*x, *x]\n", "cards/note.yaml:2: file: *x repeats another part by reference"),
        (b"[" * 5_000, "cards/note.yaml:1: file: nested deeper than 10 levels"),
        (b"a: 1\nname: \x00\n", "cards/note.yaml:2: file: not YAML: special characters are not allowed"),
        (b"a: 1\nb: \xff\xfe\n", "cards/note.yaml:2: file: is not text in UTF-8"),
        (b"a: 2025-99-99\n", "cards/note.yaml:1: file: '2025-99-99' has no value"),
        (b"a: !!python/name:os.system x\n", "cards/note.yaml:1: file: not YAML: could not determine a constructor"),
        (b"? [a]\n: b\n", "cards/note.yaml:1: file: a field's name is a single word"),
        (b"name: a\nresult: a\nsteps: []\n", "cards/note.yaml:3: steps: is empty; list at least one"),
        (b"x" * 300_000, "cards/note.yaml:1: file: is larger than 256 KiB"),
    ],
)
def test_a_file_that_is_no_card_is_refused_with_a_reason(text: bytes, complaint: str) -> None:
    assert complaints(text)[0].startswith(complaint)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_file_whatever_breaks_the_reader(text: bytes) -> None:
    assert complaints(text)


def test_a_card_that_came_by_message_is_checked_by_the_same_rules() -> None:
    step = CardStep(id="a", role="nobody", instructions="x", produces="draft", inputs=("b",))

    with pytest.raises(InvalidCard) as bad:
        runnable(Card(name="c", steps=(step,), result="a"), ROLES)

    assert str(bad.value).startswith("card: steps[0].role: there is no role 'nobody'")


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownCard, match="there is no card 'artcle'; shipped are article, due-diligence, review"):
        shipped_card("artcle", ROLES)
    with pytest.raises(UnknownCard, match=r"nowhere\.yaml"):
        card_from_file(tmp_path / "nowhere.yaml", ROLES)


def test_a_folder_is_no_card(tmp_path: Path) -> None:
    with pytest.raises(InvalidCard, match="file: cannot be read"):
        card_from_file(tmp_path, ROLES)


def test_a_users_own_card_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "заметка.yaml"
    path.write_text(GOOD, encoding="utf-8")

    assert card_from_file(path, ROLES).name == "note"
