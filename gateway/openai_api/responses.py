"""Responses: answers that can be asked for again, also after the connection, or the gateway, was gone."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from bus_schema.conversations import GetMessage
from bus_schema.dialogue import CancelAnswer, DialogueMessage, Invoke, answer_id_of, conversation_trace
from bus_schema.replies import Code
from gateway.api.dialogues import answer_within_s, unless_gone, until_kept
from gateway.backend import Backend, BackendDependency, IdempotencyKey
from gateway.event_streams import EventStreams, StreamsDependency
from gateway.openai_api.answers import Answer, Question, answer, whole_answer
from gateway.openai_api.client_tools import client_tools
from gateway.openai_api.conversation import (
    ClientMessage,
    FunctionCallItem,
    FunctionOutputItem,
    as_messages,
    last_words,
)
from gateway.openai_api.models import DIALOGUE
from gateway.openai_api.questions import question_of, user_of_request
from gateway.openai_api.response_events import ResponseText, response_frames
from mindbus.errors import Rejected, ReplyError

router = APIRouter()

RESPONSE_ID = r"^resp_[A-Za-z0-9_-]{1,64}$"
ResponseId = Annotated[str, Path(pattern=RESPONSE_ID)]
AsUser = Annotated[str | None, Query(description="For operators: whose response it is.")]


class ResponseRequest(BaseModel):
    """Words to answer; with `background`, ask for the response by its id instead of waiting.

    Send results of the client's tools in the `input`, after the calls that the response had.
    """

    model_config = ConfigDict(extra="allow")
    model: str = DIALOGUE
    input: str | list[FunctionCallItem | FunctionOutputItem | ClientMessage]
    stream: bool = False
    background: bool = False
    user: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    previous_response_id: Annotated[str, StringConstraints(pattern=RESPONSE_ID)] | None = None

    @property
    def messages(self) -> list[ClientMessage]:
        items = [ClientMessage(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        return as_messages(items)


@router.post("/responses")
async def respond(
    body: ResponseRequest,
    request: Request,
    backend: BackendDependency,
    streams: StreamsDependency,
    key: IdempotencyKey = None,
) -> Response:
    """Answer the user's last words. The dialogue has its own memory of the conversation before."""
    await _require_previous(backend, body)
    tools = client_tools(body.tools, body.tool_choice, body.messages)
    question = question_of(backend, body.model, body.messages, body.user, key, tools)
    if not body.background:
        return await _answered(backend, streams, request, question, is_streamed=body.stream)
    if tools:
        raise Rejected(Code.INVALID, "background: tools of a client are called only while it waits")
    if question.model != DIALOGUE:
        raise Rejected(Code.INVALID, f"background: only {DIALOGUE} answers there; start a run instead")
    said = Invoke(user_id=question.user_id, message=last_words(question.messages), message_id=question.id)
    if body.stream:
        streams.require_room()
    deadline = backend.clock() + timedelta(seconds=answer_within_s(backend))
    with backend.asking(question.user_id) as bus:
        await bus.send(said, trace=conversation_trace(question.user_id), deadline=deadline)
        await until_kept(backend, question.user_id, question.id)
    if body.stream:
        return await _answered(backend, streams, request, question, is_streamed=True)
    return JSONResponse(_text_of(question, backend).as_json("in_progress"))


@router.get("/responses/{response_id}")
async def retrieve(
    response_id: ResponseId,
    request: Request,
    backend: BackendDependency,
    streams: StreamsDependency,
    stream: bool = False,
    user: AsUser = None,
) -> Response:
    """The response so far or, if streamed, from its beginning to its end. It outlives the gateway."""
    user_id, message_id = user_of_request(backend, user), _message_id_of(response_id)
    said = await _question_of(backend, user_id, response_id)
    question = Question(DIALOGUE, [ClientMessage(role="user", content=said.content)], user_id, message_id)
    answered = await _message(backend, user_id, answer_id_of(message_id))
    if answered is None and not stream:
        within_s = answer_within_s(backend)
        is_late = backend.clock() - said.time > timedelta(seconds=within_s)
        no_answer = {"code": "server_error", "message": f"no answer came within {within_s:g} s; send the input again"}
        text = _text_of(question, backend)
        return JSONResponse(text.as_json("failed", error=no_answer) if is_late else text.as_json("in_progress"))
    # The same question under the same id is not heard twice: it is answered as it was, or will be.
    return await _answered(backend, streams, request, question, is_streamed=stream)


@router.post("/responses/{response_id}/cancel")
async def stop(response_id: ResponseId, backend: BackendDependency, user: AsUser = None) -> Response:
    """Stop calling the model; what has arrived is kept."""
    user_id = user_of_request(backend, user)
    question = Question(DIALOGUE, [], user_id, _message_id_of(response_id))
    await _question_of(backend, user_id, response_id)
    command = CancelAnswer(user_id=user_id, message_id=question.id)
    done = await backend.acting_as(user_id).request(command, trace=conversation_trace(user_id))
    if not done.cancelled:
        raise Rejected(Code.CONFLICT, f"{response_id} is not being answered: it is over, or waits for its turn")
    return JSONResponse(_text_of(question, backend).as_json("cancelled"))


async def _require_previous(backend: Backend, body: ResponseRequest) -> None:
    """Have the response that this one goes on from, where it names one. Raises Rejected.

    The dialogue remembers what was said; results of tools need the calls before them, which nobody else keeps.
    """
    if body.previous_response_id is None:
        return
    if body.model != DIALOGUE:
        raise Rejected(Code.INVALID, f"previous_response_id: only {DIALOGUE} remembers; send the talk as `input`")
    await _question_of(backend, user_of_request(backend, body.user), body.previous_response_id)
    if not any(message.role == "user" for message in body.messages):
        told = "send the user's words and the response's items back before results of tools"
        raise Rejected(Code.INVALID, f"previous_response_id: calls are not kept; {told}")


async def _question_of(backend: Backend, user_id: str, response_id: str) -> DialogueMessage:
    said = await _message(backend, user_id, _message_id_of(response_id))
    if said is None or said.role != "user":
        raise Rejected(Code.NOT_FOUND, f"there is no response {response_id}")
    return said


def _message_id_of(response_id: str) -> str:
    return f"msg_{response_id.removeprefix('resp_')}"


async def _answered(
    backend: Backend, streams: EventStreams, request: Request, question: Question, *, is_streamed: bool
) -> Response:
    text = _text_of(question, backend)
    if not is_streamed:
        done = await unless_gone(request, whole_answer(backend, question))
        return JSONResponse(text.as_json("completed", done))
    streams.require_room()
    pieces = answer(backend, question)
    # An error before the first piece sets the status.
    first: str | Answer = await unless_gone(request, anext(pieces))
    return streams.respond(response_frames(text, first, pieces), backend.is_current)


def _text_of(question: Question, backend: Backend) -> ResponseText:
    return ResponseText(question.id.removeprefix("msg_"), question.model, int(backend.clock().timestamp()))


async def _message(backend: Backend, user_id: str, message_id: str) -> DialogueMessage | None:
    query = GetMessage(user_id=user_id, message_id=message_id)
    try:
        return await backend.acting_as(user_id).request(query, trace=conversation_trace(user_id))
    except ReplyError as error:
        if error.code is Code.NOT_FOUND:
            return None
        raise
