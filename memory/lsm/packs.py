"""Packs that somebody proposes, taken only if they hold."""

import asyncio
from datetime import datetime

from sqlalchemy import select

from bus_schema.episodes import ColdContent, EpisodeHead, Layer, WarmContent
from bus_schema.lsm_events import EpisodePacked
from bus_schema.lsm_packing import ApplyPack
from memory.lsm.layer_history import note_change
from memory.lsm.reading import turns_of
from memory.lsm.refusals import AnchorsStay, EpisodeHasChanged, NoSuchEpisode, NotTheNextLayer, PackDoesNotHold
from memory.lsm.rows import as_head, as_turn
from memory.lsm.rules import Rules
from memory.lsm.tables import EpisodeRow
from memory.packing.reading import as_turns
from memory.packing.verifying import verify
from memory.packing.words import words_of
from mindbus.sql.database import Database

_ABOVE = {Layer.WARM: Layer.HOT, Layer.COLD: Layer.WARM}
_TOO_MANY = 20


class Packs:
    """The one place where an episode goes down; in the transaction of the message at hand."""

    def __init__(self, database: Database, rules: Rules) -> None:
        self.database, self.rules = database, rules

    async def apply(self, command: ApplyPack, at: datetime) -> tuple[EpisodeHead, EpisodePacked | None]:
        """Nothing to tell where it was packed so already.

        Raises NoSuchEpisode, EpisodeHasChanged, NotTheNextLayer, AnchorsStay, PackDoesNotHold.
        """
        # The text is looked at before anything is locked: nobody else need wait for it.
        await self._require_holds(command.episode_id, command.content)
        query = select(EpisodeRow).where(EpisodeRow.id == command.episode_id).with_for_update()
        row = await self.database.session.scalar(query.execution_options(populate_existing=True))
        if row is None:
            raise NoSuchEpisode(episode_id=command.episode_id)
        if (row.layer, row.packed_version) == (command.to, command.expected_version):
            return as_head(row, self.rules, at), None
        self._require_next(row, command)
        before = Layer(row.layer)
        _keep(row, command)
        note_change(row, at)
        row.priority = self.rules.priority(row, at)
        packed = EpisodePacked(
            episode_id=row.id,
            chat_id=row.chat_id,
            layer_before=before,
            layer=command.to,
            version=row.version,
            report=command.report,
        )
        return as_head(row, self.rules, at), packed

    async def _require_holds(self, episode_id: str, content: WarmContent | ColdContent) -> None:
        async with self.database.reading() as session:
            seen = await session.get(EpisodeRow, episode_id)
            if seen is None:
                raise NoSuchEpisode(episode_id=episode_id)
            turns = [as_turn(row) for row in await turns_of(session, episode_id)]
            if isinstance(content, ColdContent) and seen.content_warm:
                # It is made of the warm content, whose words were held against those that were said.
                turns += as_turns(WarmContent.model_validate(seen.content_warm))
        found = await asyncio.to_thread(verify, content, turns)
        if not found.holds:
            raise PackDoesNotHold(
                episode_id=episode_id,
                missing_entities=[each.name for each in found.missing_entities[:_TOO_MANY]],
                missing_decisions=[each.text for each in found.missing_decisions[:_TOO_MANY]],
                invented=found.invented[:_TOO_MANY],
            )

    @staticmethod
    def _require_next(row: EpisodeRow, command: ApplyPack) -> None:
        if row.version != command.expected_version:
            raise EpisodeHasChanged(episode_id=row.id, version=row.version, expected=command.expected_version)
        if row.layer != _ABOVE[command.to]:
            raise NotTheNextLayer(episode_id=row.id, layer=row.layer, to=command.to.value)
        if command.to is Layer.COLD and row.is_anchor:
            raise AnchorsStay(episode_id=row.id)


def _keep(row: EpisodeRow, command: ApplyPack) -> None:
    content = command.content
    stored = content.model_dump(mode="json", exclude={"embedding"})
    is_warm = isinstance(content, WarmContent)
    row.content_hot, row.content_warm, row.content_cold = None, stored if is_warm else None, None if is_warm else stored
    if isinstance(content, ColdContent):
        row.headline, row.tags = content.headline, list(content.tags)
    if content.embedding is not None:
        row.model, row.embedding = content.embedding.model, content.embedding.raw
    row.layer, row.layer_accesses = command.to.value, 0
    row.layer_word_count = words_of(content)
    row.report = command.report.model_dump(mode="json")
    row.packed_version = command.expected_version
    row.version += 1
