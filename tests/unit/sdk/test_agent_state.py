"""A page of a notebook, once a user is to be forgotten."""

from pydantic import BaseModel

from mindbus.sdk.agent_state import MessageOutcome, StoredMessage, StoredState


class Count(BaseModel):
    tasks: int = 0


def told(*, trace: str | None = None, **data: object) -> StoredMessage:
    return StoredMessage.model_validate({"type": "mb.evt.processed.tasks_found.v1", "data": data, "trace": trace})


def test_what_was_said_about_a_forgotten_user_is_not_said_again() -> None:
    of_anna, of_her_talk = told(user_id="anna"), told(trace="conv_anna", text="релиз")
    deep, other = told(items=[{"task": {"asked_by": "anna"}}]), told(user_id="boris", text="anna knows")
    page = StoredState[Count](
        state=Count(tasks=2),
        turns=(
            MessageOutcome(cause="frag_1", said=(of_anna, of_her_talk, deep)),
            MessageOutcome(cause="frag_2", said=(other,)),
        ),
        owed=(of_anna, other),
    )

    left = page.without("anna", Count(tasks=1))

    assert left.state == Count(tasks=1)
    # What caused it is still known: the same fragment that comes again is no news.
    assert [(turn.cause, turn.said) for turn in left.turns] == [("frag_1", ()), ("frag_2", (other,))]
    assert left.owed == (other,)
