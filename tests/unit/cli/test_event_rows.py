"""A row of `mindbus events`: data as people read it."""

from bus_schema.envelope import Envelope
from bus_schema.timeline import TimelineEvent
from mindbus.cli.events import event_row
from tests.raw_amqp import an_envelope


def test_texts_come_first_on_one_line_and_what_is_nested_is_json() -> None:
    data = {"user_id": "anna", "text": "Привет,\nмир", "links": [{"kind": "message", "id": "msg_1"}], "is_new": True}
    envelope = an_envelope("mb.evt.dialogue.message_received.v1", data | {"context": None, "episodes": []})

    *_, shown = event_row(TimelineEvent.of(Envelope.model_validate(envelope)))

    assert shown == 'text: Привет, мир  user_id: anna  links: [{"kind": "message", "id": "msg_1"}]  is_new: true'
