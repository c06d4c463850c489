"""Whose question a request is, and under which id."""

from collections.abc import Sequence
from hashlib import sha256

from pydantic import TypeAdapter

from bus_schema.client_tools import ClientTools
from bus_schema.identities import UserId
from bus_schema.ids import mint
from bus_schema.replies import Code
from gateway.backend import Backend
from gateway.openai_api.answers import Question
from gateway.openai_api.client_tools import continued_message
from gateway.openai_api.conversation import ClientMessage
from gateway.openai_api.models import DIALOGUE
from mindbus.errors import Rejected

_USER_ID: TypeAdapter[str] = TypeAdapter(UserId)


def question_of(
    backend: Backend,
    model: str,
    messages: Sequence[ClientMessage],
    user: str | None,
    key: str | None,
    tools: ClientTools | None = None,
) -> Question:
    """A question of whoever is signed in, or one that goes on with results of the client's tools.

    Raises as `user_of_request` does.
    """
    user_id = user_of_request(backend, user)
    if tools and model != DIALOGUE:
        raise Rejected(Code.INVALID, f"tools: only {DIALOGUE} calls those of a client; {model} has its own")
    if continued := continued_message(messages, user_id):
        return Question(model, messages, user_id, continued, tools)
    own = f"{user_id}\0{key}"
    question_id = f"msg_{sha256(own.encode()).hexdigest()[:40]}" if key else mint("msg")
    return Question(model, messages, user_id, question_id, tools)


def user_of_request(backend: Backend, user: str | None) -> str:
    """The person who is signed in, or whom an operator names. Raises Rejected for an agent, ValidationError."""
    account = backend.account
    named = _USER_ID.validate_python(user) if user and account.is_operator else None
    user_id = named or account.user_id
    if user_id is None:
        raise Rejected(Code.INVALID, f"{account.identity} is not a person; sign in with a person's token")
    return user_id
