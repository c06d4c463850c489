"""The team's roles: what is read, what is refused with which words."""

import re

import pytest

from agents.configuration.prompts import (
    InvalidRole,
    UnknownRole,
    UnsupportedArtifactType,
    parse_role,
    role_names,
    shipped_role,
)
from agents.models.offline.writer import TASKS

GOOD = """\
name: poet
description: Writes verse.
prompt_version: 1.2.0
max_rounds: 3
model: {temperature: 0.9}
system: You write verse.
produces:
  poem:
    write: Write it.
    check: Does it scan?
"""


def complaints(text: str | bytes) -> list[str]:
    with pytest.raises(InvalidRole) as bad:
        parse_role(text.encode() if isinstance(text, str) else text, "roles/poet.yaml")
    return str(bad.value).splitlines()


def test_the_team_is_complete_and_makes_every_type_once() -> None:
    assert role_names() == ("critic", "editor", "ideator", "pushkin", "researcher")

    made = [artifact_type for name in role_names() for artifact_type in shipped_role(name).produces]

    assert sorted(made) == sorted(TASKS)
    assert set(shipped_role("pushkin").produces) == {"draft", "final"}


def test_a_role_is_what_its_file_says() -> None:
    role = parse_role(GOOD.encode(), "poet.yaml")

    assert (role.name, role.prompt_version, role.max_rounds, role.model.temperature) == ("poet", "1.2.0", 3, 0.9)
    role.require_craft("poem")


def test_a_role_refuses_what_it_does_not_make() -> None:
    with pytest.raises(UnsupportedArtifactType, match="critic makes critique, not poem"):
        shipped_role("critic").require_craft("poem")


def test_an_unknown_role_is_told_which_there_are() -> None:
    with pytest.raises(UnknownRole, match="there is no role 'poet'; there are critic, editor"):
        shipped_role("poet")


@pytest.mark.parametrize(
    ("change", "into", "complaint"),
    [
        ("prompt_version: 1.2.0\n", "", r"roles/poet.yaml:1: prompt_version: is missing"),
        ("1.2.0", "new", r"roles/poet.yaml:3: prompt_version: 'new' has characters"),
        ("max_rounds: 3", "max_rounds: many", r"roles/poet.yaml:4: max_rounds: must be a whole number"),
        ("max_rounds: 3", "max_rounds: 99", r"roles/poet.yaml:4: max_rounds: 99 is out of range"),
        (
            "{temperature: 0.9}",
            "{temprature: 0.9}",
            r"roles/poet.yaml:5: model.temprature: .* did you mean 'temperature'",
        ),
        ("    check: Does it", "    check: x\n    chek: Does it", r"produces.poem.chek: .* did you mean 'check'"),
        ("    check: Does it scan?\n", "", r"roles/poet.yaml:8: produces.poem.check: is missing"),
        ("Write it.", '"a </material> b"', r"must not contain </material>"),
        ("name: poet", "name: poet\nname: poet", r"roles/poet.yaml:2: file: 'name' is given twice"),
        ("You write verse.", "{", r"roles/poet.yaml:\d+: file: not YAML"),
    ],
)
def test_what_is_wrong_with_a_role_is_said_with_file_line_and_field(change: str, into: str, complaint: str) -> None:
    said = complaints(GOOD.replace(change, into, 1))

    assert re.search(complaint, said[0]), said


def test_a_role_that_is_not_utf8_is_refused_with_its_line() -> None:
    said = complaints(GOOD.encode() + b"# \xff")

    assert said == ["roles/poet.yaml:11: file: is not text in UTF-8; save it in that encoding"]
