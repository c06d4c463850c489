"""Talk, over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict

from bus_schema.conversations import DialoguePage, MessagePage
from bus_schema.dialogue import Answered, DialogueMessageId, Ended, MessageText
from bus_schema.identities import UserId
from gateway.api.dependencies import Desk, OpenStreams, wants_stream
from gateway.problems import EXPECTED, Problem

router = APIRouter(tags=["dialogues"])


class UserMessage(BaseModel):
    """What a user says; with an id of one's own it can be sent again without being heard twice."""

    model_config = ConfigDict(extra="forbid")
    message: MessageText
    message_id: DialogueMessageId | None = None


@router.get("/dialogues")
async def dialogues(
    desk: Desk,
    cursor: Annotated[str | None, Query(max_length=256)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DialoguePage:
    """Everybody with whom something was said, the latest first."""
    return await desk.all_dialogues(cursor, limit)


@router.post("/dialogues/{user:path}/messages", response_model=Answered)
async def say(
    user: UserId, said: UserMessage, request: Request, desk: Desk, streams: OpenStreams
) -> Response | Answered:
    """Say something as a user. With `Accept: text/event-stream` the answer comes as `piece`, `piece`, …, `answered`."""
    pieces = desk.send_message(user, said.message, message_id=said.message_id)
    if wants_stream(request):
        streams.require_room()
        # What goes wrong at once is told by the status.
        return streams.respond(_frames(await anext(pieces), pieces))
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answered):
                return piece
    raise AssertionError("unreachable: the answer ends it")


@router.get("/dialogues/{user:path}/messages")
async def history(
    user: UserId,
    desk: Desk,
    cursor: Annotated[str | None, Query(max_length=256)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    order: Literal["oldest", "newest"] = "newest",
) -> MessagePage:
    """What was said with a user, a page at a time."""
    return await desk.history(user, cursor, limit, order)


@router.post("/dialogues/{user:path}/end")
async def end(user: UserId, desk: Desk) -> Ended:
    """Make a fragment of what has been said; the next message begins another."""
    return await desk.end_dialogue(user)


async def _frames(first: str | Answered, rest: AsyncGenerator[str | Answered]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        try:
            yield _frame(first)
            async for piece in rest:
                yield _frame(piece)
        except EXPECTED as error:
            yield format_sse_event(event="error", data_str=Problem.of(error).model_dump_json())


def _frame(piece: str | Answered) -> bytes:
    if isinstance(piece, Answered):
        return format_sse_event(event="answered", data_str=piece.model_dump_json())
    return format_sse_event(event="piece", data_str=AnswerChunk(text=piece).model_dump_json())


class AnswerChunk(BaseModel):
    """A part of an answer."""

    text: str
