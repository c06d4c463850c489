"""What agents tell a model is shipped whole, or refused with what is wrong."""

from importlib import resources

import pytest

from agents.configuration.prompts import InvalidGuide, parse_guide, shipped_guide

NAMES = sorted(
    file.name.removesuffix(".yaml") for file in (resources.files("config") / "guides").iterdir() if file.is_file()
)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_guide_can_be_followed(name: str) -> None:
    assert shipped_guide(name).name == name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: x\ndescription: d\nprompt_version: 1.0.0\n", "guides/x.yaml:1: system: is missing; add it"),
        ("name: x\nsystm: s\n", "did you mean 'system'?"),
        ("name: x\nname: y\n", "guides/x.yaml:2: file: 'name' is given twice"),
        ("[]", "guides/x.yaml:1: file: must be a mapping"),
        ("", "guides/x.yaml:1: file: the file is empty"),
    ],
)
def test_what_is_wrong_with_a_guide_is_said_with_file_line_and_field(text: str, complaint: str) -> None:
    with pytest.raises(InvalidGuide) as bad:
        parse_guide(text.encode(), "guides/x.yaml")

    assert complaint in str(bad.value)
