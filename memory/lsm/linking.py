"""From which earlier episode one goes on, which others it is related to (spec 002 §4.3)."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from memory.lsm.matters import Likeness, Matter
from memory.lsm.tables import EpisodeRow
from memory.lsm.texts import text_of

_GOES_ON, _IS_RELATED = 0.3, 0.2
_EARLIER, _MOST_RELATED = 20, 3
_MOST_KEPT = 500


class Linking:
    """What the latest episodes are about is kept at hand."""

    def __init__(self) -> None:
        self._matters: OrderedDict[tuple[str, int, str | None], Matter] = OrderedDict()

    def forget(self) -> None:
        """All of it."""
        self._matters.clear()

    async def matters_before(self, session: AsyncSession, row: EpisodeRow) -> dict[str, Matter]:
        """What the latest of those are about that began before an episode, by their ids."""
        of_chat = (EpisodeRow.chat_id == row.chat_id, EpisodeRow.started_at < row.started_at)
        query = select(EpisodeRow).where(*of_chat).order_by(EpisodeRow.ended_at.desc()).limit(_EARLIER)
        return {each.id: await self._matter(session, each) for each in (await session.scalars(query)).all()}

    async def _matter(self, session: AsyncSession, row: EpisodeRow) -> Matter:
        key = (row.id, row.turns, row.model)
        if key not in self._matters:
            text = await text_of(session, row.id)
            self._matters[key] = await asyncio.to_thread(text.matter)
            if len(self._matters) > _MOST_KEPT:
                self._matters.popitem(last=False)
        self._matters.move_to_end(key)
        return self._matters[key]


def links(matter: Matter, earlier: Mapping[str, Matter]) -> tuple[str | None, list[str]]:
    """The id of the one it goes on from, those of the others it is related to: the most alike."""
    likeness = Likeness([matter, *earlier.values()])
    alike = sorted(((likeness.of(matter, other), other_id) for other_id, other in earlier.items()), reverse=True)
    near = [(score, other_id) for score, other_id in alike if score >= _IS_RELATED][: _MOST_RELATED + 1]
    if near and near[0][0] >= _GOES_ON:
        return near[0][1], [other_id for _, other_id in near[1:]]
    return None, [other_id for _, other_id in near[:_MOST_RELATED]]
