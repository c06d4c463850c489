"""Where histories are kept: each is a text that changes only for whoever knows it as it is."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

# How long it is known that a message was there which is there no more: longer than anything repeats it.
KNOWN_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Change:
    """Under `key`, what has the digest `known` becomes `text`, nothing where it is empty.

    `added` are the ids of the messages that are new in it, `dropped` of those that are in it no more.
    """

    key: str
    known: str
    text: bytes
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether it was done; if not, something else is kept there now, or `gone` have been there before."""

    is_done: bool
    gone: frozenset[str] = frozenset()


DONE = Outcome(is_done=True)
CHANGED = Outcome(is_done=False)


class HistoryStore(Protocol):
    """Keeps texts through any crash. All of it raises HistoriesAway, or DatabaseAway."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, key: str, known: str | None) -> bytes | None:
        """What is kept, empty where nothing is; None where it still has the digest `known`."""

    async def replace(self, change: Change) -> Outcome:
        """All of it or nothing, whoever else writes."""

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        """In their order, of one chat or of all."""

    async def forget_old(self) -> None:
        """Ids that nobody repeats any more."""
