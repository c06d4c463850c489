"""Changes of the log, as those who derive something from it learn of them."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from mindbus.sql.database import Database


class LogListener:
    """Called after the commit of a change, so that it may read the tables; it must not block."""

    def on_recorded(self, chat_id: str) -> None:
        """Turns of this chat were added or moved to other episodes."""

    def on_erased(self, chat_id: str | None) -> None:
        """This chat was erased; without an id, all were."""


class LogListeners:
    """All listeners of the log, and the number of erasures of each chat: complete, since one instance writes.

    To record what was read elsewhere, note the number of erasures before reading; in the transaction that records it,
    under the lock on the chat, it must be the same.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._listeners: list[LogListener] = []
        self._erasures: Counter[str | None] = Counter()

    def add(self, listener: LogListener) -> None:
        self._listeners.append(listener)

    def erasures(self, chat_id: str) -> int:
        """Number of erasures that concerned this chat."""
        return self._erasures[chat_id] + self._erasures[None]

    def count_erasure(self, chat_id: str | None) -> None:
        """Count an erasure of this chat, or of all, before it begins."""
        self._erasures[chat_id] += 1

    def notify_recorded(self, chat_id: str) -> None:
        """Notify all once the current transaction is committed."""
        self._after_commit(lambda listener: listener.on_recorded(chat_id))

    def notify_erased(self, chat_id: str | None) -> None:
        """Notify all once the current transaction is committed."""
        self._after_commit(lambda listener: listener.on_erased(chat_id))

    def _after_commit(self, notify: Callable[[LogListener], None]) -> None:
        for listener in self._listeners:
            self.database.after_commit(partial(notify, listener))
