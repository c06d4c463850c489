"""A redelivered message's consequences bear the same ids."""

from bus_schema.envelope import Envelope
from mindbus import MessageContext
from tests.raw_amqp import an_envelope


def test_the_same_messages_said_again_bear_the_same_ids() -> None:
    envelope = Envelope.model_validate(an_envelope())
    ids = [[context.next_id("mb.evt.a.b.v1") for _ in range(3)] for context in _twice(envelope)]

    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3


def test_what_is_left_out_the_second_time_does_not_shift_the_outcomes_id() -> None:
    first, second = _twice(Envelope.model_validate(an_envelope()))
    for _ in range(4):
        first.next_id("mb.evt.process.step_progress.v1")

    assert first.next_id("mb.evt.process.step_completed.v1") == second.next_id("mb.evt.process.step_completed.v1")


def test_two_consumers_of_one_message_say_different_things() -> None:
    envelope = Envelope.model_validate(an_envelope())

    assert MessageContext(envelope, "a").next_id("mb.evt.a.b.v1") != MessageContext(envelope, "b").next_id(
        "mb.evt.a.b.v1"
    )


def _twice(envelope: Envelope) -> tuple[MessageContext, MessageContext]:
    return MessageContext(envelope, "greeter"), MessageContext(envelope, "greeter", attempt=2)
