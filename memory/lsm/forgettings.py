"""Who was forgotten while somebody was on the way with what they had said."""

from collections import Counter


class Forgettings:
    """One instance writes, so it knows of all of them.

    Whoever is to record what was read elsewhere takes a note before reading; in the transaction that records it, under
    the lock on the chat, the note must still be true.
    """

    def __init__(self) -> None:
        self._of_chats: Counter[str] = Counter()
        self._of_all = 0

    def note(self, chat_id: str) -> int:
        """Differs from an earlier one if the chat was forgotten in between."""
        return self._of_chats[chat_id] + self._of_all

    def add(self, chat_id: str | None) -> None:
        """This chat is forgotten; without one, all are."""
        if chat_id is None:
            self._of_all += 1
        else:
            self._of_chats[chat_id] += 1
