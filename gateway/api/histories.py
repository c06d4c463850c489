"""Histories over HTTP: the messages that models are shown of a chat, and of a chat's talk with a sub-agent."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.history import (
    MAX_APPENDED,
    Appended,
    AppendHistory,
    ChatMessage,
    ClearHistory,
    HistoryKey,
    HistoryMessage,
    HistoryMessageId,
    HistoryPage,
    ListHistories,
    ShowHistory,
    StoredHistory,
)
from bus_schema.ids import derived, mint
from gateway.backend import BackendDependency, Cursor, IdempotencyKey

router = APIRouter(tags=["histories"])

Key = Annotated[HistoryKey, Path(description="Such as `chat_history:anna` or `subagent:analytic:anna`.")]


class NewHistoryMessage(ChatMessage):
    """A message in OpenAI's format; it is given an id and a time if it has none."""

    id: HistoryMessageId | None = None
    timestamp: AwareDatetime | None = None


class NewHistoryMessages(BaseModel):
    """Messages to append, all or none."""

    model_config = ConfigDict(extra="forbid")
    messages: tuple[NewHistoryMessage, ...] = Field(min_length=1, max_length=MAX_APPENDED)


@router.get("/histories")
async def histories(
    backend: BackendDependency,
    chat: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> HistoryPage:
    """Histories of one chat or of all, in order of their keys. For operators."""
    return await backend.bus.request(ListHistories(chat_id=chat, cursor=cursor, limit=limit))


@router.get("/histories/{key}")
async def show(key: Key, backend: BackendDependency) -> StoredHistory:
    """All messages of a history."""
    return await backend.bus.request(ShowHistory(key=key))


@router.post("/histories/{key}/messages", status_code=201)
async def append(
    key: Key, new: NewHistoryMessages, backend: BackendDependency, idempotency_key: IdempotencyKey = None
) -> Appended:
    """Append messages to a history; those whose ids it already has are skipped."""
    now = backend.clock()
    messages = tuple(
        HistoryMessage(
            **message.model_dump(exclude={"id", "timestamp"}),
            id=message.id or _id_of(backend.bus.owner, key, idempotency_key, number),
            timestamp=message.timestamp or now,
        )
        for number, message in enumerate(new.messages)
    )
    return await backend.bus.request(AppendHistory(key=key, messages=messages))


@router.delete("/histories/{key}", status_code=204)
async def clear(key: Key, backend: BackendDependency) -> None:
    """Delete a history; what people have said stays in storage."""
    await backend.bus.request(ClearHistory(key=key))


def _id_of(owner: str, key: str, idempotency_key: str | None, number: int) -> str:
    return derived(owner, key, idempotency_key, number) if idempotency_key else mint("msg")
