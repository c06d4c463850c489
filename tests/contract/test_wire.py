"""Today's code reads every message that was ever on the wire; the generated contracts are up to date."""

import json
from pathlib import Path

import pytest

from bus_schema.catalogue import commands, events
from bus_schema.envelope import from_wire
from bus_schema.messages import Command, Event, UnknownType, message_class
from mindbus.cli.schema import differences, write_files

GOLDEN = Path(__file__).parent / "golden"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_every_type_and_version_has_a_golden_file() -> None:
    missing = {message.wire.type for message in [*commands(), *events()]} - {path.stem for path in GOLDEN.iterdir()}

    assert not missing, "add a frozen sample envelope for each"


@pytest.mark.parametrize("path", sorted(GOLDEN.iterdir()), ids=lambda path: path.stem)
def test_a_golden_envelope_is_still_understood(path: Path) -> None:
    frozen = json.loads(path.read_text())

    envelope = from_wire(path.read_bytes())
    message = message_class(envelope.type).model_validate(envelope.data)

    assert envelope.type == path.stem
    assert json.loads(envelope.to_wire()) == frozen
    assert message.model_dump(mode="json", exclude_unset=True) == frozen["data"]


def test_the_generated_contracts_in_docs_are_up_to_date() -> None:
    assert differences(REFERENCE) == [], "run: mindbus schema export"


def test_an_export_removes_what_is_gone(tmp_path: Path) -> None:
    write_files(tmp_path)
    stale = tmp_path / "schemas" / "mb.evt.gone.gone.v1.json"
    stale.write_text("{}")

    assert differences(tmp_path) == [f"unknown: {stale}"]
    write_files(tmp_path)
    assert not stale.exists()


def test_a_command_refuses_unknown_fields_where_an_event_ignores_them() -> None:
    kinds = {message.wire.type: message.model_config["extra"] for message in [*commands(), *events()]}

    assert {extra for name, extra in kinds.items() if name.startswith("mb.cmd.")} == {"forbid"}
    assert {extra for name, extra in kinds.items() if name.startswith("mb.evt.")} == {"ignore"}


def test_every_reference_in_the_asyncapi_document_leads_somewhere() -> None:
    document = json.loads((REFERENCE / "asyncapi.json").read_text())
    text = json.dumps(document)

    for reference in {part.split('"')[0] for part in text.split('"$ref": "#/')[1:]}:
        target = document
        for word in reference.split("/"):
            target = target[word]


def test_a_type_has_one_class_alone() -> None:
    with pytest.raises(TypeError, match=r"mb\.evt\.fleet\.heartbeat\.v1 is Heartbeat already"):

        class Pulse(Event, topic="fleet", name="heartbeat"):
            """A second claim."""


def test_wire_names_are_checked_where_they_are_given() -> None:
    with pytest.raises(TypeError, match="lowercase letters"):

        class Shout(Command, domain="Greeter", action="shout"):  # type: ignore[type-arg]  # never made
            """Not a wire name."""

    with pytest.raises(UnknownType):
        message_class("mb.cmd.greeter.shout.v1")
