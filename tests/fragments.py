"""Stretches of dialogue, as the processing agents get them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from bus_schema.dialogue import DialogueFragment, DialogueMessage, MessageKind, Role

MOSCOW = ZoneInfo("Europe/Moscow")
# A Wednesday.
MORNING = datetime(2026, 3, 11, 10, 30, tzinfo=MOSCOW)

Said = str | tuple[Role, MessageKind, str]


def a_fragment(number: int, user_id: str, said: Sequence[Said], at: datetime = MORNING) -> DialogueFragment:
    """What a user said, a minute after the other; anything else with its role and kind."""
    messages = tuple(
        a_message(f"msg_{number}_{place}", user_id, each, at + timedelta(minutes=place))
        for place, each in enumerate(said)
    )
    return DialogueFragment(
        fragment_id=f"frag_{number}",
        user_id=user_id,
        message_ids=tuple(message.message_id for message in messages),
        messages=messages,
        started_at=messages[0].time,
        ended_at=messages[-1].time,
        reason="timeout",
    )


def a_message(message_id: str, user_id: str, said: Said, at: datetime = MORNING) -> DialogueMessage:
    role, kind, text = ("user", MessageKind.NATIVE, said) if isinstance(said, str) else said
    return DialogueMessage(message_id=message_id, user_id=user_id, role=role, kind=kind, content=text, time=at)
