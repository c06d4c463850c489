"""The histories: one worker that keeps what models are to be reminded of."""

import asyncio
from datetime import timedelta

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import MessageReceived
from bus_schema.envelope import Envelope
from bus_schema.history import (
    Appended,
    AppendHistories,
    AppendHistory,
    ChatHistory,
    ClearHistory,
    GetHistory,
    HistoryAddition,
    HistoryPage,
    ListHistories,
    ShowHistory,
    StoredHistory,
    chat_of,
    is_history_key,
)
from bus_schema.messages import Message
from bus_schema.replies import ReplyBatch
from config.settings import FleetSettings
from memory.history.histories import HistoryLimits, HistoryRepository, as_shown
from memory.history.session_log import SessionFiles, SessionLog
from memory.history.sql_store import SqlStore
from memory.history.store import HistoriesAway, HistoryStore
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import every, on_command, on_event
from mindbus.bus.outcomes import reply_of
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.middleware import RetryOn
from mindbus.sdk.conversations import refresh_dialogue
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseAway
from mindbus.sql.leadership import single_writer
from retrieval.cursors import InvalidCursor

# Requesters wait for the answer, so retry soon after the store is back.
_AGAIN = timedelta(seconds=1)


class HistoryWorker(Worker):
    """Keeps histories under the keys of spec 001, each in the order in which it was written.

    What it does may be done twice, for each store knows its own repetitions: so it has no inbox in its database.
    """

    name = "history"
    start_stage = 0
    concurrency = 64
    attempts = 60
    middleware = (RetryOn(HistoriesAway, DatabaseAway, delay=_AGAIN),)

    def __init__(self, context: WorkerContext) -> None:
        settings = context.settings_as(FleetSettings)
        self._bus = context.bus
        self._store = self._store_of(context)
        limits = HistoryLimits(settings.max_history, settings.chat_window, settings.subagent_window)
        self.histories = HistoryRepository(self._store, limits)
        self._log = SessionLog(SessionFiles(settings.session_logs, settings.session_log_bytes), context.clock)

    def order_key(self, message: Message | Envelope) -> str | None:
        return getattr(message, "key", None)

    async def start(self) -> None:
        await self._store.open()
        self._log.start()

    async def stop(self) -> None:
        await self._log.stop()
        await self._store.close()

    @on_command
    async def append(self, command: AppendHistory, context: MessageContext) -> Appended:
        return await self._append(command)

    @on_command
    async def append_many(self, command: AppendHistories, context: MessageContext) -> ReplyBatch:
        outcomes = await asyncio.gather(*map(self._appended_or_not, command.additions))
        return ReplyBatch(items=tuple(map(reply_of, outcomes)))

    @on_command
    async def get(self, query: GetHistory, context: MessageContext) -> ChatHistory:
        found = await self.histories.end(query.key, query.context_window, query.context_tokens)
        self._log.log_load(query.key, len(found.messages), found.length)
        return ChatHistory(
            key=query.key,
            messages=tuple(map(as_shown, found.messages)),
            length=found.length,
            message_ids=None if query.context_tokens is None else tuple(each.id for each in found.messages),
            version=None if query.context_tokens is None else found.version,
        )

    @on_command
    async def show(self, query: ShowHistory, context: MessageContext) -> StoredHistory:
        return StoredHistory(key=query.key, messages=await self.histories.whole(query.key))

    @on_command
    async def list_keys(self, query: ListHistories, context: MessageContext) -> HistoryPage:
        if query.cursor is not None and not is_history_key(query.cursor):
            raise InvalidCursor(reason="not a cursor")
        items = await self.histories.page(query.chat_id, query.cursor or "", query.limit)
        return HistoryPage(items=tuple(items), next_cursor=items[-1].key if len(items) == query.limit else None)

    @on_command
    async def clear_one(self, command: ClearHistory, context: MessageContext) -> None:
        self._log.log_clear(command.key, await self.histories.clear(command.key))
        await refresh_dialogue(self._bus, chat_of(command.key))

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        return await self._forget(None, context)

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        return await self._forget(command.user_id, context)

    @on_event
    async def note_request(self, event: MessageReceived) -> None:
        self._log.request(event.user_id, event.preview)

    @every(seconds=60)
    async def forget_old(self) -> None:
        await self._store.forget_old()

    async def _forget(self, chat_id: str | None, context: MessageContext) -> Removed:
        counts = await self.histories.forget(chat_id)
        # With it what has been deleted leaves SQLite's log.
        await self._store.forget_old()
        await refresh_dialogue(self._bus, chat_id)
        try:
            files = await self._log.remove(chat_id)
        except OSError as error:
            raise TemporaryFailure(f"session logs: {error}", _AGAIN) from error
        return Removed.of(counts | {"session_logs": files})

    async def _appended_or_not(self, addition: HistoryAddition) -> Appended | Rejected:
        try:
            return await self._append(addition)
        except Rejected as error:
            return error

    async def _append(self, addition: HistoryAddition) -> Appended:
        added = await self.histories.append(addition.key, addition.messages)
        self._log.log_messages(addition.key, added.messages)
        return Appended(length=added.length, version=added.version, preceding=added.preceding)

    def _store_of(self, context: WorkerContext) -> HistoryStore:
        """In Redis where there is one to be used."""
        settings = context.settings_as(FleetSettings)
        url = settings.redis_url
        if url is not None:
            # Its client takes 9 MB and 0.1 s that nobody else needs.
            from memory.history.redis_store import RedisStore

            return RedisStore(url)
        database = Database(settings.database_of("history"), "history")
        self.leadership = single_writer(database)
        return SqlStore(database, context.clock)
