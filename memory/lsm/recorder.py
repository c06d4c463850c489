"""Recording of messages: append to the log, assign to episodes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from bus_schema.dialogue import DialogueMessage, MessageKind
from bus_schema.episodes import raw_log_id_of
from bus_schema.ids import derived
from bus_schema.lsm import SaidMessage
from bus_schema.lsm_events import EpisodeAnchored, EpisodeOpened, EpisodeRecorded
from memory.errors import MessageDiffers
from memory.lsm.episode_updates import EpisodeLimits, anchor_reason, extend, make_anchor, new_episode
from memory.lsm.log_changes import LogListeners
from memory.lsm.priority import LayerRules
from memory.lsm.rows import delete_empty_chat, lock_chat, text_digest
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.logs import logger
from mindbus.sql.database import Database

# Times from storage are clamped to this range, in which dates can be calculated with.
_EARLIEST, _LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)

# More of them are written off the event loop.
_FEW = 20

RecordingEvent = EpisodeOpened | EpisodeRecorded | EpisodeAnchored


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message to be recorded; `is_heard` where storage has it too."""

    message_id: str | None
    role: str
    content: str
    time: datetime
    speaker: str | None = None
    kind: MessageKind = MessageKind.NATIVE
    is_heard: bool = False

    @classmethod
    def from_command(cls, message: SaidMessage) -> "Utterance":
        return cls(message.message_id, message.role, message.content, message.time, message.speaker)

    @classmethod
    def from_storage(cls, message: DialogueMessage) -> "Utterance":
        """A stored message with its text."""
        content, time = message.content or "", min(max(message.time, _EARLIEST), _LATEST)
        return cls(message.message_id, message.role, content, time, None, message.kind, is_heard=True)

    def id_in(self, chat_id: str) -> str:
        """Id in the log, derived from the message id or else from role, time and content."""
        if self.message_id:
            return raw_log_id_of(chat_id, self.message_id)
        return f"raw_{derived(chat_id, self.role, self.time.isoformat(), self.content)}"

    def matches(self, row: TurnRow) -> bool:
        """Whether the log has it with the same role, content and visibility."""
        is_hidden, is_same = row.kind == MessageKind.HIDDEN, row.content == self.content
        if row.archived is not None:
            is_same = row.archived == text_digest(self.content)
        return is_same and (row.role, is_hidden) == (self.role, self.kind is MessageKind.HIDDEN)


@dataclass(slots=True)
class RecordingResult:
    """Ids of the messages in their order, number of new ones, episode of the last one, events to publish."""

    raw_log_ids: tuple[str, ...]
    new: int = 0
    episode_id: str | None = None
    events: list[RecordingEvent] = field(default_factory=list)


class Recorder:
    """Writes in the current transaction; waits for no model."""

    def __init__(
        self,
        database: Database,
        listeners: LogListeners,
        rules: LayerRules,
        limits: EpisodeLimits,
        clock: Callable[[], datetime],
    ) -> None:
        self.database, self.listeners, self.clock = database, listeners, clock
        self.rules, self.limits = rules, limits

    async def record(self, chat_id: str, utterances: Sequence[Utterance]) -> RecordingResult:
        """Record all or nothing; known ones change nothing. Raises MessageDiffers."""

        def write(session: Session) -> RecordingResult:
            chat = lock_chat(session, chat_id)
            existing = _existing_turns(session, chat_id, utterances)
            for row in _differing(chat_id, utterances, existing):
                raise MessageDiffers(message_id=row.message_id, raw_log_id=row.id, chat_id=chat_id)
            return self._record(session, chat, utterances, existing)

        return await self._write(write, utterances)

    async def take_over(self, chat_id: str, utterances: Sequence[Utterance], erasures: int) -> RecordingResult:
        """Record what was read elsewhere, unless the chat has been erased since that count of erasures.

        Where texts differ, the log's stay.
        """

        def write(session: Session) -> RecordingResult:
            chat = lock_chat(session, chat_id)
            if self.listeners.erasures(chat_id) != erasures:
                delete_empty_chat(session, chat_id)
                return RecordingResult(())
            existing = _existing_turns(session, chat_id, utterances)
            for row in _differing(chat_id, utterances, existing):
                logger().warning("message differs from the log", raw_log_id=row.id, chat_id=chat_id)
            return self._record(session, chat, utterances, existing)

        return await self._write(write, utterances)

    async def _write(
        self, write: Callable[[Session], RecordingResult], utterances: Sequence[Utterance]
    ) -> RecordingResult:
        """The result of the work in the current transaction; where it is long, off the event loop."""
        is_short = len(utterances) <= _FEW
        return await (self.database.run_rows(write) if is_short else self.database.session.run_sync(write))

    def _record(
        self, session: Session, chat: ChatRow, utterances: Sequence[Utterance], existing: dict[str, TurnRow]
    ) -> RecordingResult:
        chat_id = chat.chat_id
        ids = [utterance.id_in(chat_id) for utterance in utterances]
        by_id = list(zip(ids, utterances, strict=True))
        heard_ids = {key for key, utterance in by_id if utterance.is_heard and key in existing}
        chat.heard += self._mark_stored(existing[key] for key in heard_ids)
        turns = self._add_turns(chat, {key: utterance for key, utterance in by_id if key not in existing})
        result = RecordingResult(tuple(ids), len(turns))
        placed: dict[str, str] = {}
        if turns:
            session.execute(insert(TurnRow), [_columns(turn) for turn in turns])
            placed = self._place(session, [turn for turn in turns if turn.kind != MessageKind.HIDDEN], result)
            self.listeners.notify_recorded(chat_id)
        last = next(reversed(ids), None)
        of_turn = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id == last)
        result.episode_id = placed[last] if last in placed else session.scalar(of_turn)
        return result

    @staticmethod
    def _mark_stored(rows: Iterable[TurnRow]) -> int:
        """Number of rows that were not known to be in storage before."""
        new = [row for row in rows if not row.is_heard]
        for row in new:
            row.is_heard = True
        return len(new)

    def _add_turns(self, chat: ChatRow, new: dict[str, Utterance]) -> list[TurnRow]:
        now = self.clock()
        ordered = sorted(new.items(), key=lambda item: item[1].time)
        turns = [
            TurnRow(
                id=key,
                chat_id=chat.chat_id,
                position=chat.turns + offset,
                message_id=utterance.message_id,
                role=utterance.role,
                kind=utterance.kind.value,
                speaker=utterance.speaker,
                content=utterance.content,
                time=utterance.time,
                word_count=len(utterance.content.split()),
                is_heard=utterance.is_heard,
                recorded_at=now,
            )
            for offset, (key, utterance) in enumerate(ordered)
        ]
        chat.turns += len(turns)
        chat.heard += sum(turn.is_heard for turn in turns)
        return turns

    def _place(self, session: Session, turns: Sequence[TurnRow], result: RecordingResult) -> dict[str, str]:
        """Assign turns to episodes; episode ids by turn ids."""
        if not turns:
            return {}
        neighbours = self._near(session, turns)
        placed: dict[str, str] = {}
        for turn in turns:
            row = self.limits.choose(turn, neighbours)
            if row is None:
                row = new_episode(turn, self.limits.predecessor(turn, neighbours), self.rules)
                neighbours.append(row)
                session.add(row)
                result.events.append(
                    EpisodeOpened(episode_id=row.id, chat_id=row.chat_id, continues_from=row.continues_from)
                )
            else:
                extend(row, turn)
            placed[turn.id] = row.id
            result.events += self._anchor(row, turn)
        session.flush()
        memberships = [{"raw_log_id": turn, "episode_id": episode} for turn, episode in placed.items()]
        session.execute(insert(EpisodeOfTurnRow), memberships)
        for row in neighbours:
            if ids := tuple(turn for turn, episode in placed.items() if episode == row.id):
                about = {"episode_id": row.id, "chat_id": row.chat_id, "version": row.version}
                result.events.append(EpisodeRecorded.model_validate(about | {"raw_log_ids": ids}))
        return placed

    def _near(self, session: Session, turns: Sequence[TurnRow]) -> list[EpisodeRow]:
        first, last = turns[0].time - self.limits.gap, turns[-1].time + self.limits.gap
        within = (EpisodeRow.ended_at >= first, EpisodeRow.started_at <= last)
        query = select(EpisodeRow).where(EpisodeRow.chat_id == turns[0].chat_id, *within).order_by(EpisodeRow.id)
        return list(session.scalars(query.with_for_update()))

    def _anchor(self, row: EpisodeRow, turn: TurnRow) -> Iterable[EpisodeAnchored]:
        is_possible = turn.role == "user" and not row.is_anchor and row.anchored_by is None
        if is_possible and (reason := anchor_reason(turn.content)) is not None:
            yield make_anchor(row, reason, "words", self.rules)


def _existing_turns(session: Session, chat_id: str, utterances: Sequence[Utterance]) -> dict[str, TurnRow]:
    query = select(TurnRow).where(TurnRow.id.in_([utterance.id_in(chat_id) for utterance in utterances]))
    return {row.id: row for row in session.scalars(query)}


def _differing(chat_id: str, utterances: Iterable[Utterance], existing: dict[str, TurnRow]) -> Iterator[TurnRow]:
    """Rows of utterances that the log has otherwise."""
    for utterance in utterances:
        if (row := existing.get(utterance.id_in(chat_id))) is not None and not utterance.matches(row):
            yield row


def _columns(row: TurnRow) -> dict[str, object]:
    names = TurnRow.__mapper__.column_attrs.keys()  # no mapping
    return {name: getattr(row, name) for name in names}
