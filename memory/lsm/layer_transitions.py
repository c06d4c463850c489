"""Transitions of episodes between layers: down by a verified pack, up by an anchor or by use."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import object_session

from bus_schema.episodes import ColdContent, EpisodeHead, HotContent, Layer, Note, RawTurn, WarmContent
from bus_schema.lsm import SetAnchor
from bus_schema.lsm_events import EpisodeAnchored, EpisodePacked, EpisodeReactivated, EpisodeTouched
from bus_schema.packer import ApplyPack
from memory.errors import AnchorsStay, EpisodeHasChanged, NoSuchEpisode, NotTheNextLayer, PackRejected
from memory.lsm.archived_texts import ArchivedTexts, set_texts
from memory.lsm.episode_updates import make_anchor
from memory.lsm.log_changes import LogListeners
from memory.lsm.priority import LayerRules
from memory.lsm.rows import add_notes, as_head, as_hot, as_turn, lock_chat_of, stored_words, turns_of
from memory.lsm.tables import EpisodeRow, LayerChangeRow, TurnRow
from memory.packing.budget import content_words
from memory.packing.notes import notes_of
from memory.packing.sentences import turns_of_warm
from memory.packing.verification import SourceText, VerificationResult, unfounded_notes, verify
from mindbus.sql.database import Database

_ABOVE = {Layer.WARM: Layer.HOT, Layer.COLD: Layer.WARM}
_MAX_REPORTED = 20


class Packs:
    """Applies packs in the current transaction; nothing else takes an episode down."""

    def __init__(self, database: Database, listeners: LogListeners, rules: LayerRules) -> None:
        self.database, self.listeners, self.rules = database, listeners, rules

    async def apply(self, command: ApplyPack, at: datetime) -> tuple[EpisodeHead, EpisodePacked | None]:
        """Take an episode down one layer; no event where this pack was applied before.

        Raises NoSuchEpisode, EpisodeHasChanged, NotTheNextLayer, AnchorsStay, PackRejected.
        """
        # Verification is slow, so it comes before the lock.
        turns, notes = await self._verify(command)
        row = await _lock_episode(self.database, command.episode_id)
        if (row.layer, row.packed_version) == (command.to, command.expected_version):
            return as_head(row, self.rules, at), None
        self._require_next(row, command)
        before = Layer(row.layer)
        _store(row, command)
        _log_layer(row, at)
        if await add_notes(self.database.session, turns, notes):
            self.listeners.notify_recorded(row.chat_id)
        row.priority = self.rules.priority(row, at)
        event = EpisodePacked(
            episode_id=row.id,
            chat_id=row.chat_id,
            layer_before=before,
            layer=command.to,
            version=row.version,
            report=command.report,
        )
        return as_head(row, self.rules, at), event

    async def _verify(self, command: ApplyPack) -> tuple[Sequence[TurnRow], tuple[Note, ...]]:
        """Turns of the episode with the notes of a warm pack, those by rules first."""
        episode_id, content = command.episode_id, command.content
        async with self.database.reading() as session:
            row = await session.get(EpisodeRow, episode_id)
            if row is None:
                raise NoSuchEpisode(episode_id=episode_id)
            rows = await turns_of(session, episode_id)
            turns = [as_turn(turn) for turn in rows]
            if isinstance(content, ColdContent) and row.content_warm:
                # Cold packs are made of the warm one, whose own words were verified.
                turns += turns_of_warm(WarmContent.model_validate(row.content_warm))
        findings, notes, unfounded = await asyncio.to_thread(_checked, command, turns)
        # Of another version it may well not hold.
        if (unfounded or not findings.holds) and row.version == command.expected_version:
            raise PackRejected(
                episode_id=episode_id,
                missing_entities=[entity.name for entity in findings.missing_entities[:_MAX_REPORTED]],
                missing_decisions=[decision.text for decision in findings.missing_decisions[:_MAX_REPORTED]],
                invented=(*findings.invented, *(note.text for note in unfounded))[:_MAX_REPORTED],
            )
        return rows, notes

    @staticmethod
    def _require_next(row: EpisodeRow, command: ApplyPack) -> None:
        if row.version != command.expected_version:
            raise EpisodeHasChanged(episode_id=row.id, version=row.version, expected=command.expected_version)
        if row.layer != _ABOVE[command.to]:
            raise NotTheNextLayer(episode_id=row.id, layer=row.layer, to=command.to.value)
        if command.to is Layer.COLD and row.is_anchor:
            raise AnchorsStay(episode_id=row.id)


class Reactivation:
    """Accesses of episodes, which may take them up to hot, in the current transaction."""

    def __init__(self, database: Database, rules: LayerRules, texts: ArchivedTexts) -> None:
        self.database, self.rules, self.texts = database, rules, texts

    async def unpack(self, episode_id: str, at: datetime) -> tuple[HotContent, EpisodeReactivated | None]:
        """Raw turns of an episode, which is hot from now on; an event where it was not.

        Raises NoSuchEpisode, RawTurnsGone, StorageAway.
        """
        archived = await self.texts.of_episode(episode_id)
        async with self.database.reading() as session:
            turns = await turns_of(session, episode_id)
        set_texts(turns, archived)
        content = await asyncio.to_thread(as_hot, turns)
        row = await _lock_episode(self.database, episode_id)
        await self.texts.restore(episode_id, archived, at)
        self._access(row, at)
        return content, self._reactivate(row, at)

    async def set_anchor(
        self, command: SetAnchor, at: datetime
    ) -> tuple[EpisodeHead, list[EpisodeAnchored | EpisodeReactivated]]:
        """Set or remove an anchor by hand, for good; a cold anchor becomes hot.

        Raises NoSuchEpisode, RawTurnsGone, StorageAway.
        """
        archived = await self.texts.of_episode(command.episode_id) if command.is_anchor else {}
        row = await _lock_episode(self.database, command.episode_id)
        events: list[EpisodeAnchored | EpisodeReactivated] = []
        row.version += 1
        if command.is_anchor:
            events.append(make_anchor(row, command.reason, "hand", self.rules))
            if row.layer == Layer.COLD.value:
                # Its age would take it down to warm at once.
                row.last_accessed = max(row.last_accessed, at)
                await self.texts.restore(row.id, archived, at)
                events += filter(None, [self._reactivate(row, at)])
        else:
            row.is_anchor, row.anchor_reason, row.anchored_by = False, None, "hand"
            events.append(EpisodeAnchored(episode_id=row.id, chat_id=row.chat_id, is_anchor=False))
        row.priority = self.rules.priority(row, at)
        return as_head(row, self.rules, at), events

    async def touch(
        self, episode_ids: Iterable[str], at: datetime, search_id: str
    ) -> list[EpisodeTouched | EpisodeReactivated]:
        """Count an access by a search; episodes that are gone are passed over.

        A warm episode with enough accesses becomes hot; a cold one stays cold until it is unpacked.
        """
        events: list[EpisodeTouched | EpisodeReactivated] = []
        query = select(EpisodeRow).where(EpisodeRow.id.in_(set(episode_ids))).order_by(EpisodeRow.id)
        for row in await self.database.session.scalars(query.with_for_update()):
            layer = Layer(row.layer)
            self._access(row, at)
            events.append(EpisodeTouched(episode_id=row.id, chat_id=row.chat_id, search_id=search_id, layer=layer))
            if layer is Layer.WARM and row.layer_accesses >= self.rules.hot_after_accesses:
                events += filter(None, [self._reactivate(row, at)])
        return events

    def _access(self, row: EpisodeRow, at: datetime) -> None:
        # `at` may be in the past, for an import or a search as of a moment.
        row.last_accessed = max(row.last_accessed, at)
        row.access_count += 1
        row.layer_accesses += 1
        row.version += 1
        row.priority = self.rules.priority(row, at)

    @staticmethod
    def _reactivate(row: EpisodeRow, at: datetime) -> EpisodeReactivated | None:
        before = Layer(row.layer)
        if before is Layer.HOT:
            return None
        row.layer, row.layer_accesses, row.layer_word_count = Layer.HOT.value, 0, None
        row.content_warm = row.content_cold = row.packed_version = None
        _log_layer(row, at)
        return EpisodeReactivated(episode_id=row.id, chat_id=row.chat_id, layer_before=before, version=row.version)


async def _lock_episode(database: Database, episode_id: str) -> EpisodeRow:
    # The chat first, as an erasure does; so whoever reads notes by position misses none that is committed later.
    await lock_chat_of(database.session, episode_id)
    query = select(EpisodeRow).where(EpisodeRow.id == episode_id).with_for_update()
    row = await database.session.scalar(query.execution_options(populate_existing=True))
    if row is None:
        raise NoSuchEpisode(episode_id=episode_id)
    return row


def _checked(
    command: ApplyPack, turns: Sequence[RawTurn]
) -> tuple[VerificationResult, tuple[Note, ...], tuple[Note, ...]]:
    """Findings of the verification, notes by rules and of the model, those of the model that nothing supports."""
    notes = (*notes_of(turns), *command.notes) if command.to is Layer.WARM else ()
    unfounded = unfounded_notes(command.notes, SourceText(turns)) if command.notes else ()
    return verify(command.content, turns), notes, unfounded


def _store(row: EpisodeRow, command: ApplyPack) -> None:
    content = command.content
    stored = content.model_dump(mode="json", exclude={"embedding"})
    is_warm = isinstance(content, WarmContent)
    row.content_hot, row.content_warm, row.content_cold = None, stored if is_warm else None, None if is_warm else stored
    if isinstance(content, ColdContent):
        row.headline, row.tags = content.headline, list(content.tags)
    if content.embedding is not None:
        row.model, row.embedding = content.embedding.model, content.embedding.raw
    row.layer, row.layer_accesses = command.to.value, 0
    row.layer_word_count = content_words(content)
    row.report = command.report.model_dump(mode="json")
    row.packed_version = command.expected_version
    row.version += 1


def _log_layer(row: EpisodeRow, at: datetime) -> None:
    session = object_session(row)
    assert session is not None, "an episode changes its layer in a transaction"
    session.add(LayerChangeRow(episode_id=row.id, at=at, layer=row.layer, word_count=stored_words(row)))
