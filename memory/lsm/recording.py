"""What was said goes into the log for good, into an episode at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import insert, select

from bus_schema.dialogue import MessageKind
from bus_schema.lsm_events import EpisodeAnchored, EpisodeOpened, EpisodeRecorded
from memory.lsm.anchors import anchor_reason
from memory.lsm.chats import drop_if_empty, locked
from memory.lsm.following import Followers
from memory.lsm.forgettings import Forgettings
from memory.lsm.growing import extend, make_anchor, opened_by
from memory.lsm.placing import Bounds
from memory.lsm.refusals import SaidOtherwise
from memory.lsm.rules import Rules
from memory.lsm.said import Said
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.logs import logger
from mindbus.sql.database import Database

RecordingEvent = EpisodeOpened | EpisodeRecorded | EpisodeAnchored


@dataclass(slots=True)
class Outcome:
    """The ids of what was to be kept, in its order; how many are new; the last one's episode; what is to be told."""

    raw_log_ids: tuple[str, ...]
    new: int = 0
    episode_id: str | None = None
    events: list[RecordingEvent] = field(default_factory=list)


class Recording:
    """Every method is a part of the transaction of the message at hand; no model is waited for."""

    def __init__(
        self, database: Database, followers: Followers, rules: Rules, bounds: Bounds, clock: Callable[[], datetime]
    ) -> None:
        self.database, self.followers, self.clock = database, followers, clock
        self.rules, self.bounds = rules, bounds
        self.forgettings = Forgettings()

    async def record(self, chat_id: str, said: Sequence[Said]) -> Outcome:
        """All of it or nothing; what is there already changes nothing. Raises SaidOtherwise."""
        chat = await locked(self.database.session, chat_id)
        known = await self._known(chat_id, said)
        for each in said:
            if (row := known.get(each.id_in(chat_id))) is not None and not each.is_in(row):
                raise SaidOtherwise(message_id=row.message_id, raw_log_id=row.id, chat_id=chat_id)
        return await self._record(chat, said, known)

    async def take_over(self, chat_id: str, said: Sequence[Said], note: int) -> Outcome:
        """What was read elsewhere, unless the chat was forgotten since the note; where words differ, the log's stay."""
        chat = await locked(self.database.session, chat_id)
        if self.forgettings.note(chat_id) != note:
            await drop_if_empty(self.database.session, chat_id)
            return Outcome(())
        known = await self._known(chat_id, said)
        for each in said:
            if (row := known.get(each.id_in(chat_id))) is not None and not each.is_in(row):
                logger().warning("said otherwise elsewhere", raw_log_id=row.id, chat_id=chat_id)
        return await self._record(chat, said, known)

    async def _record(self, chat: ChatRow, said: Sequence[Said], known: dict[str, TurnRow]) -> Outcome:
        chat_id = chat.chat_id
        ids = [each.id_in(chat_id) for each in said]
        chat.heard += self._hear(known, said, ids)
        turns = self._added(chat, {key: each for key, each in zip(ids, said, strict=True) if key not in known})
        outcome = Outcome(tuple(ids), len(turns))
        placed: dict[str, str] = {}
        if turns:
            await self._insert(TurnRow, [_columns(turn) for turn in turns])
            placed = await self._place(chat_id, [turn for turn in turns if turn.kind != MessageKind.HIDDEN], outcome)
            self.followers.recorded(chat_id)
        last = next(reversed(ids), None)
        outcome.episode_id = placed[last] if last in placed else await self._episode_of(last)
        return outcome

    async def _episode_of(self, raw_log_id: str | None) -> str | None:
        of_turn = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id == raw_log_id)
        return await self.database.session.scalar(of_turn)

    async def _known(self, chat_id: str, said: Sequence[Said]) -> dict[str, TurnRow]:
        query = select(TurnRow).where(TurnRow.id.in_([each.id_in(chat_id) for each in said]))
        return {row.id: row for row in await self.database.session.scalars(query)}

    @staticmethod
    def _hear(known: dict[str, TurnRow], said: Sequence[Said], ids: Sequence[str]) -> int:
        """Of what was told before, how much is now heard from storage, too."""
        newly = {key for key, each in zip(ids, said, strict=True) if each.is_heard and key in known}
        rows = [known[key] for key in newly if not known[key].is_heard]
        for row in rows:
            row.is_heard = True
        return len(rows)

    def _added(self, chat: ChatRow, new: dict[str, Said]) -> list[TurnRow]:
        now = self.clock()
        ordered = sorted(new.items(), key=lambda item: item[1].time)
        turns = [
            TurnRow(
                id=key,
                chat_id=chat.chat_id,
                position=chat.turns + offset,
                message_id=said.message_id,
                role=said.role,
                kind=said.kind.value,
                speaker=said.speaker,
                content=said.content,
                time=said.time,
                word_count=len(said.content.split()),
                is_heard=said.is_heard,
                recorded_at=now,
            )
            for offset, (key, said) in enumerate(ordered)
        ]
        chat.turns += len(turns)
        chat.heard += sum(turn.is_heard for turn in turns)
        return turns

    async def _place(self, chat_id: str, turns: Sequence[TurnRow], outcome: Outcome) -> dict[str, str]:
        """The episode of each turn."""
        if not turns:
            return {}
        near = await self._near(chat_id, turns[0].time, turns[-1].time)
        placed: dict[str, str] = {}
        for turn in turns:
            row = self.bounds.place(turn, near)
            if row is None:
                row = opened_by(turn, self.bounds.before(turn, near), self.rules)
                near.append(row)
                self.database.session.add(row)
                outcome.events.append(_news_of(row))
            else:
                extend(row, turn)
            placed[turn.id] = row.id
            outcome.events += self._anchored(row, turn)
        await self.database.session.flush()
        members: list[dict[str, object]] = [
            {"raw_log_id": turn, "episode_id": episode} for turn, episode in placed.items()
        ]
        await self._insert(EpisodeOfTurnRow, members)
        outcome.events += self._recorded(placed, near)
        return placed

    async def _near(self, chat_id: str, first: datetime, last: datetime) -> list[EpisodeRow]:
        within = (EpisodeRow.ended_at >= first - self.bounds.gap, EpisodeRow.started_at <= last + self.bounds.gap)
        query = select(EpisodeRow).where(EpisodeRow.chat_id == chat_id, *within).order_by(EpisodeRow.id)
        return list(await self.database.session.scalars(query.with_for_update()))

    def _anchored(self, row: EpisodeRow, turn: TurnRow) -> Iterable[EpisodeAnchored]:
        reason = None
        if turn.role == "user" and not row.is_anchor and row.anchored_by is None:
            reason = anchor_reason(turn.content)
        if reason is not None:
            yield make_anchor(row, reason, "words", self.rules)

    def _recorded(self, placed: dict[str, str], near: Iterable[EpisodeRow]) -> Iterable[EpisodeRecorded]:
        for row in near:
            if ids := tuple(turn for turn, episode in placed.items() if episode == row.id):
                yield EpisodeRecorded(episode_id=row.id, chat_id=row.chat_id, raw_log_ids=ids, version=row.version)

    async def _insert(self, table: type[TurnRow | EpisodeOfTurnRow], rows: list[dict[str, object]]) -> None:
        await self.database.session.execute(insert(table), rows)


def _news_of(row: EpisodeRow) -> EpisodeOpened:
    return EpisodeOpened(episode_id=row.id, chat_id=row.chat_id, continues_from=row.continues_from)


def _columns(row: TurnRow) -> dict[str, object]:
    names = TurnRow.__mapper__.column_attrs.keys()  # no mapping
    return {name: getattr(row, name) for name in names}
