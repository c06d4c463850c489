"""The histories: one worker that keeps what models are to be reminded of."""

from collections.abc import Iterator
from contextlib import contextmanager

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.envelope import Envelope
from bus_schema.history import (
    Appended,
    AppendHistory,
    ChatHistory,
    ClearHistory,
    GetHistory,
    HistoryPage,
    ListHistories,
    ShowHistory,
    StoredHistory,
    is_history_key,
)
from bus_schema.identities import is_operator
from bus_schema.messages import Message
from memory.history.histories import Histories, Limits
from memory.history.redis_store import RedisStore
from memory.history.refusals import HistoriesAway, NotForAgents
from memory.history.sql_store import SqlStore
from memory.history.store import HistoryStore
from memory.refusals import NotACursor
from mindbus.bus.failures import TemporaryFailure
from mindbus.bus.handlers import every, on_command
from mindbus.bus.handling import Handling
from mindbus.bus.worker import Kit, Worker
from mindbus.sql.database import Database
from workers.refusing import refusing


class HistoryWorker(Worker):
    """Keeps histories under the keys of spec 001, each in the order in which it was written.

    What it does may be done twice, for each store knows its own repetitions: so it has no ledger in its database.
    """

    name = "history"
    concurrency = 64

    def __init__(self, kit: Kit) -> None:
        settings = kit.settings
        self._store = store_of(kit)
        limits = Limits(settings.max_history, settings.chat_window, settings.subagent_window)
        self.histories = Histories(self._store, limits)

    def order_key(self, message: Message | Envelope) -> str | None:
        """Whoever reads a history finds what was written before."""
        return getattr(message, "key", None)

    async def start(self) -> None:
        """Open the store."""
        await self._store.open()

    async def stop(self) -> None:
        """Let go of it."""
        await self._store.close()

    @on_command
    async def append(self, command: AppendHistory, handling: Handling) -> Appended:
        with _answering(handling):
            added = await self.histories.append(command.key, command.messages)
        return Appended(length=added.length)

    @on_command
    async def get(self, query: GetHistory, handling: Handling) -> ChatHistory:
        with _answering(handling):
            messages, length = await self.histories.end(query.key, query.context_window)
        return ChatHistory(key=query.key, messages=messages, length=length)

    @on_command
    async def show(self, query: ShowHistory, handling: Handling) -> StoredHistory:
        with _answering(handling):
            return StoredHistory(key=query.key, messages=await self.histories.whole(query.key))

    @on_command
    async def list_keys(self, query: ListHistories, handling: Handling) -> HistoryPage:
        with _answering(handling):
            if query.cursor is not None and not is_history_key(query.cursor):
                raise NotACursor(reason="is none at all")
            items = await self.histories.page(query.chat_id, query.cursor or "", query.limit)
        return HistoryPage(items=tuple(items), next_cursor=items[-1].key if len(items) == query.limit else None)

    @on_command
    async def clear_one(self, command: ClearHistory, handling: Handling) -> None:
        with _answering(handling):
            await self.histories.clear(command.key)

    @on_command
    async def clear(self, _command: ClearData, handling: Handling) -> Removed:
        return await self._forget(None, handling)

    @on_command
    async def delete_user(self, command: DeleteUser, handling: Handling) -> Removed:
        return await self._forget(command.user_id, handling)

    @every(seconds=3600)
    async def forget_old(self) -> None:
        await self._store.forget_old()

    async def _forget(self, chat_id: str | None, handling: Handling) -> Removed:
        handling.require_operator()
        with _answering(handling):
            return Removed.of(await self.histories.forget(chat_id))


def store_of(kit: Kit) -> HistoryStore:
    """In Redis where there is one to be used."""
    url = kit.settings.redis_url
    if url is not None:
        return RedisStore(url)
    return SqlStore(Database(kit.settings.database_of("history"), "history"), kit.clock)


@contextmanager
def _answering(handling: Handling) -> Iterator[None]:
    """Nobody else's business; every no is put into the bus's words."""
    with refusing("history", handling):
        if not is_operator(handling.requester):
            raise NotForAgents(is_denied=True)
        try:
            yield
        except HistoriesAway as away:
            raise TemporaryFailure(str(away)) from away
