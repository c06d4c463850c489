"""What sub-agents do for a user, as it happens."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import AwareDatetime

from bus_schema.dialogue import conversation_trace
from bus_schema.identities import UserId
from bus_schema.timeline import GetTimeline
from gateway.api.dependencies import Desk, OpenStreams
from gateway.backend import Backend

router = APIRouter(tags=["dialogues"])

TOPIC = "subagent"
_RETRY_MS = 2000
_PAGE = 200


@router.get(
    "/dialogues/{user:path}/subagents", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}}
)
async def subagents(
    user: UserId,
    desk: Desk,
    streams: OpenStreams,
    since: Annotated[AwareDatetime | None, Query()] = None,
    cursor: Annotated[str | None, Query(max_length=256)] = None,
    last_event_id: Annotated[str | None, Header(max_length=256)] = None,
) -> Response:
    """Delegations with what comes of them, each event under its name; from where `Last-Event-ID` or a cursor says.

    Without either from `since`, else from now; ids are places on the timeline, so none is missed or comes twice.
    """
    streams.require_room()
    after = last_event_id or cursor
    place = await desk.place("0" if after is None and since is not None else after)
    wanted = GetTimeline(since=since, trace_id=conversation_trace(user), topics=(TOPIC,), cursor=place, limit=_PAGE)
    return streams.respond(_frames(desk, wanted))


async def _frames(desk: Backend, wanted: GetTimeline) -> AsyncGenerator[bytes]:
    yield format_sse_event(comment="from here on", retry=_RETRY_MS)
    async with aclosing(desk.follow(wanted)) as happening:
        async for event in happening:
            data = json.dumps(event.envelope.data or {}, ensure_ascii=False)
            yield format_sse_event(event=event.name, id=str(event.sequence), data_str=data)
