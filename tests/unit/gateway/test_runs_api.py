"""What the API of runs knows of cards."""

from pathlib import Path

import pytest

from gateway.api.runs import parameters_of

OUTER = """
name: outer
result: whole
parameters: {tone: {default: dry}}
steps: [{id: part, card: inner}, {id: whole, role: editor, inputs: [part], produces: edited}]
"""
INNER = """
name: inner
result: part
parameters: {tone: {default: warm}, length: {type: integer}}
steps: [{id: part, role: researcher, produces: research_report}, {id: again, card: outer}]
"""


def test_a_card_asks_for_the_parameters_of_the_cards_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path))
    (tmp_path / "cards").mkdir()
    for name, text in (("outer", OUTER), ("inner", INNER)):
        (tmp_path / "cards" / f"{name}.yaml").write_text(text, encoding="utf-8")

    asked = parameters_of("outer")

    assert {name: each.default for name, each in asked.items()} == {"tone": "dry", "length": None}
