"""Whoever keeps something at hand that is made from the log hears of its changes."""

from collections.abc import Callable
from typing import Protocol

from sqlalchemy import event

from mindbus.sql.database import Database


class Follower(Protocol):
    """Such as the index of the search. It is told after the commit, so it reads what is true; it must not block."""

    def recorded(self, chat_id: str) -> None:
        """Turns of this chat were added, or belong to other episodes than before."""
        ...

    def forgotten(self, chat_id: str | None) -> None:
        """Nothing of this chat is left; without one, nothing of any."""
        ...


class Followers:
    """All of them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._all: list[Follower] = []

    def add(self, follower: Follower) -> None:
        """Have it hear of every change from now on."""
        self._all.append(follower)

    def recorded(self, chat_id: str) -> None:
        """Once the transaction at hand is committed."""
        self._after_commit(lambda follower: follower.recorded(chat_id))

    def forgotten(self, chat_id: str | None) -> None:
        """The same."""
        self._after_commit(lambda follower: follower.forgotten(chat_id))

    def _after_commit(self, tell: Callable[[Follower], None]) -> None:
        def committed(_session: object) -> None:
            for follower in self._all:
                tell(follower)

        event.listen(self.database.session.sync_session, "after_commit", committed, once=True)
