"""Something that was said, as it comes to the log."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bus_schema.dialogue import DialogueMessage, MessageKind
from bus_schema.ids import derived
from bus_schema.lsm import SaidMessage
from memory.lsm.tables import TurnRow

# Whatever clock storage was told of, days can be counted from there.
_EARLIEST, _LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Said:
    """Something to be kept; `is_heard` where storage has it as well."""

    message_id: str | None
    role: str
    content: str
    time: datetime
    speaker: str | None = None
    kind: MessageKind = MessageKind.NATIVE
    is_heard: bool = False

    @classmethod
    def told(cls, message: SaidMessage) -> "Said":
        """As somebody tells it."""
        return cls(message.message_id, message.role, message.content, message.time, message.speaker)

    @classmethod
    def heard(cls, message: DialogueMessage) -> "Said":
        """As storage has it, its words read."""
        words, time = message.content or "", min(max(message.time, _EARLIEST), _LATEST)
        return cls(message.message_id, message.role, words, time, None, message.kind, is_heard=True)

    def id_in(self, chat_id: str) -> str:
        """The same for the same message; without an id of its own, it is the same if all of it is."""
        parts = (self.message_id,) if self.message_id else (self.role, self.time.isoformat(), self.content)
        return f"raw_{derived(chat_id, *parts)}"

    def is_in(self, row: TurnRow) -> bool:
        """Whether the log has it so, by whichever way it came there."""
        is_hidden = row.kind == MessageKind.HIDDEN
        return (row.role, row.content, is_hidden) == (self.role, self.content, self.kind is MessageKind.HIDDEN)
