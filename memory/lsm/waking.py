"""Episodes on their way up: unpacked, used, or marked as never to be lost."""

import asyncio
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select

from bus_schema.episodes import EpisodeHead, HotContent, Layer
from bus_schema.lsm import SetAnchor
from bus_schema.lsm_events import EpisodeAnchored, EpisodeReactivated, EpisodeTouched
from memory.lsm.growing import make_anchor
from memory.lsm.layer_history import note_change
from memory.lsm.reading import turns_of
from memory.lsm.refusals import NoSuchEpisode
from memory.lsm.rows import as_head, as_hot
from memory.lsm.rules import Rules
from memory.lsm.tables import EpisodeRow
from mindbus.sql.database import Database


class Waking:
    """Every method is a part of the transaction of the message at hand."""

    def __init__(self, database: Database, rules: Rules) -> None:
        self.database, self.rules = database, rules

    async def unpack(self, episode_id: str, at: datetime) -> tuple[HotContent, EpisodeReactivated | None]:
        """The whole text; something to tell where it was packed. Raises NoSuchEpisode."""
        async with self.database.reading() as session:
            turns = await turns_of(session, episode_id)
        content = await asyncio.to_thread(as_hot, turns)
        row = await self._locked(episode_id)
        self._access(row, at)
        return content, self._heat(row, at)

    async def set_anchor(
        self, command: SetAnchor, at: datetime
    ) -> tuple[EpisodeHead, list[EpisodeAnchored | EpisodeReactivated]]:
        """By hand, which no words that are said later undo; a cold one is hot again. Raises NoSuchEpisode."""
        row = await self._locked(command.episode_id)
        told: list[EpisodeAnchored | EpisodeReactivated] = []
        row.version += 1
        if command.is_anchor:
            told.append(make_anchor(row, command.reason, "hand", self.rules))
            if row.layer == Layer.COLD.value:
                # Its age would send it down to warm at once.
                row.last_accessed = max(row.last_accessed, at)
                told += filter(None, [self._heat(row, at)])
        else:
            row.is_anchor, row.anchor_reason, row.anchored_by = False, None, "hand"
            told.append(EpisodeAnchored(episode_id=row.id, chat_id=row.chat_id, is_anchor=False))
        row.priority = self.rules.priority(row, at)
        return as_head(row, self.rules, at), told

    async def touch(
        self, episode_ids: Iterable[str], at: datetime, search_id: str
    ) -> list[EpisodeTouched | EpisodeReactivated]:
        """An access each: what a search has found counts as used.

        A warm episode that was used so often is hot again; a cold one stays cold until it is unpacked. Those that are
        gone meanwhile are passed over.
        """
        events: list[EpisodeTouched | EpisodeReactivated] = []
        query = select(EpisodeRow).where(EpisodeRow.id.in_(set(episode_ids))).order_by(EpisodeRow.id)
        for row in await self.database.session.scalars(query.with_for_update()):
            layer = Layer(row.layer)
            self._access(row, at)
            events.append(EpisodeTouched(episode_id=row.id, chat_id=row.chat_id, search_id=search_id, layer=layer))
            if layer is Layer.WARM and row.layer_accesses >= self.rules.hot_after_accesses:
                events += filter(None, [self._heat(row, at)])
        return events

    async def _locked(self, episode_id: str) -> EpisodeRow:
        query = select(EpisodeRow).where(EpisodeRow.id == episode_id).with_for_update()
        row = await self.database.session.scalar(query.execution_options(populate_existing=True))
        if row is None:
            raise NoSuchEpisode(episode_id=episode_id)
        return row

    def _access(self, row: EpisodeRow, at: datetime) -> None:
        # An import, or a search as of a moment long ago, makes nothing older than it is.
        row.last_accessed = max(row.last_accessed, at)
        row.access_count += 1
        row.layer_accesses += 1
        row.version += 1
        row.priority = self.rules.priority(row, at)

    @staticmethod
    def _heat(row: EpisodeRow, at: datetime) -> EpisodeReactivated | None:
        before = Layer(row.layer)
        if before is Layer.HOT:
            return None
        row.layer, row.layer_accesses, row.layer_word_count = Layer.HOT.value, 0, None
        row.content_warm = row.content_cold = row.packed_version = None
        note_change(row, at)
        return EpisodeReactivated(episode_id=row.id, chat_id=row.chat_id, layer_before=before, version=row.version)
