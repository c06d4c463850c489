"""Dialogues over HTTP: messages with streamed answers, history, events of sub-agents."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Literal, TypeVar, cast

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import AwareDatetime, BaseModel, ConfigDict

from bus_schema.client_tools import ClientTools
from bus_schema.conversations import DialoguePage, GetMessage, GetMessages, MessagePage, RateAnswer
from bus_schema.dialogue import (
    Answered,
    CancelAnswer,
    DialogueMessageId,
    EndDialogue,
    Ended,
    Invoke,
    MessageText,
    conversation_trace,
)
from bus_schema.identities import UserId
from bus_schema.ids import mint
from bus_schema.message_parts import Attachment, Attachments, FileName, Rating
from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.backend import Backend, BackendDependency, Cursor
from gateway.event_streams import (
    STREAM_RESPONSES,
    LastEventId,
    StreamsDependency,
    accepts_stream,
    answer_frames,
    event_frames,
)
from mindbus.errors import Rejected, ReplyError
from mindbus.sdk.errors import StorageAway
from mindbus.sdk.transfers import guess_content_type

router = APIRouter(tags=["dialogues"])

T = TypeVar("T")
SUBAGENT_TOPIC = "subagent"
_PAGE = 200
_LOOK_S = 0.05
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class UserMessage(BaseModel):
    """A user's message; if sent again with the same `message_id`, it is processed only once."""

    model_config = ConfigDict(extra="forbid")
    message: MessageText
    message_id: DialogueMessageId | None = None
    attachments: Attachments = ()


class AnswerRating(BaseModel):
    """The user's rating of an answer; null withdraws it."""

    model_config = ConfigDict(extra="forbid")
    rating: Rating | None


@router.get("/dialogues")
async def dialogues(
    backend: BackendDependency, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> DialoguePage:
    """All dialogues, latest first; if you are not an operator, only your own."""
    return await backend.dialogues(limit, cursor)


@router.post("/dialogues/{user:path}/messages", response_model=Answered)
async def say(
    user: UserId, body: UserMessage, request: Request, backend: BackendDependency, streams: StreamsDependency
) -> Response | Answered:
    """Send a message as a user. With `Accept: text/event-stream`, the answer comes as `piece`, `piece`, …, `answered`.

    A `piece` with `restart` starts the answer over. Disconnecting before the end cancels the rest of the answer.
    """
    message_id = body.message_id or mint("msg")
    cancel = partial(cancel_answer, backend, user, message_id)
    if not accepts_stream(request):
        whole = answer_to(backend, user, body.message, message_id, body.attachments)
        return await unless_gone(request, whole, cancel)
    streams.require_room()
    chunks = send_message(backend, user, body.message, message_id, body.attachments)
    # An error before the first chunk sets the status.
    first = await unless_gone(request, anext(chunks), cancel)
    return streams.respond(answer_frames(first, chunks, cancel))


@router.post("/dialogues/{user:path}/attachments", openapi_extra=_FILE_BODY)
async def attach(user: UserId, name: FileName, request: Request, backend: BackendDependency) -> Attachment:
    """Store the body as a file of the dialogue; a message can then list it in its `attachments`."""
    backend.acting_as(user)
    async with backend.own_artifacts() as artifacts:
        put = await artifacts.put(
            await request.body(),
            artifact_type="attachment",
            content_type=guess_content_type(Path(name)),
            trace=conversation_trace(user),
        )
    if put.is_pending:
        raise StorageAway
    return Attachment(name=name, ref=put.ref)


@router.get("/dialogues/{user:path}/messages")
async def history(
    user: UserId,
    backend: BackendDependency,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    order: Literal["oldest", "newest"] = "newest",
) -> MessagePage:
    """Messages of a dialogue, a page at a time; hidden instructions are marked by their kind."""
    query = GetMessages(user_id=user, cursor=cursor, limit=limit, order=order)
    return await backend.acting_as(user).request(query, trace=conversation_trace(user))


@router.put("/dialogues/{user:path}/messages/{message_id}/rating")
async def rate(
    user: UserId, message_id: DialogueMessageId, body: AnswerRating, backend: BackendDependency
) -> AnswerRating:
    """Rate an answer of the assistant in your own dialogue; long-term memory learns from it what is worth finding."""
    command = RateAnswer(user_id=user, message_id=message_id, rating=body.rating)
    await backend.acting_as_self(user).request(command, trace=conversation_trace(user))
    return body


@router.post("/dialogues/{user:path}/end")
async def end(user: UserId, backend: BackendDependency) -> Ended:
    """Close the current fragment; the next message begins another."""
    return await backend.acting_as(user).request(EndDialogue(user_id=user), trace=conversation_trace(user))


@router.get("/dialogues/{user:path}/subagents", response_class=Response, responses=STREAM_RESPONSES)
async def subagents(
    user: UserId,
    backend: BackendDependency,
    streams: StreamsDependency,
    since: Annotated[AwareDatetime | None, Query()] = None,
    cursor: Cursor = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Events of a user's delegations, each under its name, starting after `Last-Event-ID` or the cursor.

    Without either, they start at `since`, by default now. Event ids are timeline cursors: none is missed or repeated.
    """
    backend.acting_as(user)
    streams.require_room()
    after = last_event_id or cursor
    start = await backend.tail.start_cursor("0" if after is None and since is not None else after)
    trace = conversation_trace(user)
    query = GetTimeline(since=since, trace_id=trace, topics=(SUBAGENT_TOPIC,), cursor=start, limit=_PAGE)
    return streams.respond(event_frames(backend.tail.follow(query), _subagent_frame), backend.is_current)


async def send_message(
    backend: Backend,
    user_id: str,
    text: str,
    message_id: str | None = None,
    attachments: Sequence[Attachment] = (),
    client_tools: ClientTools | None = None,
) -> AsyncGenerator[str | Answered]:
    """Chunks of the answer, then the whole answer; closing the generator does not stop the agent: `cancel_answer` does.

    Raises NotYours, BudgetSpent, TooManyUnanswered, ReplyError, BusUnavailable.
    """
    command = _invocation(user_id, text, message_id, attachments, is_streamed=True)
    command = command.model_copy(update={"client_tools": client_tools})
    trace, timeout_s = conversation_trace(user_id), answer_within_s(backend)
    with backend.asking(user_id) as bus:
        chunks = bus.stream(command, trace=trace, timeout_s=timeout_s)
        async with aclosing(cast("AsyncGenerator[str | Answered]", chunks)):
            async for chunk in chunks:
                yield chunk


async def answer_to(
    backend: Backend,
    user_id: str,
    text: str,
    message_id: str | None = None,
    attachments: Sequence[Attachment] = (),
    client_tools: ClientTools | None = None,
) -> Answered:
    """The whole answer alone. Raises as `send_message` does."""
    command = _invocation(user_id, text, message_id, attachments, is_streamed=False)
    command = command.model_copy(update={"client_tools": client_tools})
    with backend.asking(user_id) as bus:
        return await bus.request(command, trace=conversation_trace(user_id), timeout_s=answer_within_s(backend))


def _invocation(
    user_id: str,
    text: str,
    message_id: str | None,
    attachments: Sequence[Attachment],
    *,
    is_streamed: bool,
) -> Invoke:
    return Invoke(
        user_id=user_id,
        message=text,
        message_id=message_id or mint("msg"),
        attachments=tuple(attachments),
        stream=is_streamed,
    )


def answer_within_s(backend: Backend) -> float:
    """Seconds that an answer may take."""
    settings = backend.settings
    return settings.llm_timeout_s + settings.subagent_timeout_s + settings.request_timeout_s


async def until_kept(backend: Backend, user_id: str, message_id: str) -> None:
    """Wait until a message that was sent is stored: from then on nothing loses it. Raises Rejected, BusUnavailable."""
    query = GetMessage(user_id=user_id, message_id=message_id)
    try:
        async with asyncio.timeout(backend.settings.request_timeout_s):
            while True:
                with suppress(ReplyError):
                    await backend.acting_as(user_id).request(query, trace=conversation_trace(user_id))
                    return
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        why = "the dialogue has not taken the message yet; ask again with the same key"
        raise Rejected(Code.UNAVAILABLE, why) from None


async def unless_gone(request: Request, work: Awaitable[T], cancel: Callable[[], None] = lambda: None) -> T:
    """The result of the work; where the client hangs up before it, the answer is cancelled so. Raises HTTPException."""
    working, leaving = asyncio.ensure_future(work), asyncio.create_task(_disconnect(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            cancel()
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the client has hung up")
        return await working
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))


async def _disconnect(request: Request) -> None:
    """Return when the client has hung up; its request has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


_cancelling: set[asyncio.Task[str]] = set()


def cancel_answer(backend: Backend, user_id: str, message_id: str) -> None:
    """Stop the answer to a message, in a task of its own: the request that it belongs to may be cancelled itself."""
    command = CancelAnswer(user_id=user_id, message_id=message_id)
    sending = asyncio.create_task(backend.acting_as(user_id).send(command, trace=conversation_trace(user_id)))
    _cancelling.add(sending)
    sending.add_done_callback(_cancelling.discard)


def _subagent_frame(event: TimelineEvent) -> bytes:
    data = json.dumps(event.envelope.data or {}, ensure_ascii=False)
    return format_sse_event(event=event.name, id=str(event.sequence), data_str=data)
