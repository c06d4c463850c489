"""A row of `mindbus events`: data as people read it."""

import pytest

from bus_schema.envelope import Envelope
from bus_schema.timeline import TimelineEvent
from mindbus.cli.console import note, say, show_table
from mindbus.cli.events import event_row
from tests.raw_amqp import an_envelope


def test_what_others_have_written_reaches_the_terminal_as_letters(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("what",), [["\x1b[2Jtable"]])
    say("\x1b]52;c;eA==\x07said")
    note("\x1b[2Jnoted")

    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert r"\x1b[2Jtable" in told.out


def test_texts_come_first_on_one_line_and_what_is_nested_is_json() -> None:
    data = {"user_id": "anna", "text": "Привет,\nмир", "links": [{"kind": "message", "id": "msg_1"}], "is_new": True}
    envelope = an_envelope("mb.evt.dialogue.message_received.v1", data | {"context": None, "episodes": []})

    *_, shown = event_row(TimelineEvent.of(Envelope.model_validate(envelope)))

    assert shown == 'text: Привет, мир  user_id: anna  links: [{"kind": "message", "id": "msg_1"}]  is_new: true'
