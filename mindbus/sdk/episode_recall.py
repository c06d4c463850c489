"""What was said in a chat long ago, for whoever is about to speak in it."""

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bus_schema.lsm_search import MAX_QUERY_CHARS, FoundEpisodes, GetHotEpisodes, SearchEpisodes
from bus_schema.messages import Query
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.sdk.aside import aside
from mindbus.sdk.breaker import Breaker
from mindbus.sdk.memory_failures import MemoryAway, NoAnswer

_LEFT_ALONE_S = 15.0
# Of what is found by a question, then of what is at the fingertips.
_FOUND_WORDS, _HOT_WORDS = 250, 150


@dataclass(frozen=True)
class SaidBefore:
    """A turn of long ago with its day and its speaker, or what its episode comes to."""

    id: str
    text: str


class EpisodeRecall:
    """A help, not a need: where long-term memory is away, slow or was never started, nothing comes to mind.

    Nor is it asked again for a while, so that not everybody waits for it in vain.
    """

    def __init__(self, bus: Client, within_s: float, breaker: Breaker | None = None) -> None:
        self._bus, self._within_s = bus, within_s
        self._breaker = breaker or Breaker(opens_after=1, opens_for_s=_LEFT_ALONE_S)

    async def about(self, question: str, chat_id: str, before: datetime) -> tuple[SaidBefore, ...]:
        """What bears on the question, the best first, then what was said last; `within_s` of 0: nothing."""
        wanted = question.strip()[:MAX_QUERY_CHARS]
        if not wanted or not self._within_s:
            return ()
        search = SearchEpisodes(query=wanted, chat_id=chat_id, budget_words=_FOUND_WORDS, until=before)
        hot = GetHotEpisodes(chat_id=chat_id, budget_words=_HOT_WORDS, before=before)
        try:
            with self._breaker.watching():
                answers = await asyncio.gather(*(self._asked(query, chat_id) for query in (search, hot)))
        except MemoryAway as away:
            logger().warning("nothing comes to mind", reason=str(away))
            return ()
        # What has just been asked may have been taken down already.
        found = {each.id: each for each in _told(answers) if not each.text.endswith(f"\n{wanted}")}
        return tuple(found.values())

    async def _asked(self, query: Query[FoundEpisodes], chat_id: str) -> FoundEpisodes:
        bus = self._bus.acting_as(f"user.{chat_id}")
        try:
            return await aside(secrets.token_hex(8), lambda: bus.request(query, timeout_s=self._within_s))
        except (BusUnavailable, ReplyError) as silence:
            raise NoAnswer(str(silence)) from silence


def _told(answers: Iterable[FoundEpisodes]) -> Iterator[SaidBefore]:
    for answer in answers:
        for episode in answer.episodes if answer.confidence != "nothing" else ():
            if episode.text is not None:
                yield SaidBefore(episode.episode_id, f"{episode.started_at:%Y-%m-%d}\n{episode.text}")
            for turn in episode.turns:
                yield SaidBefore(turn.raw_log_id, f"{turn.time:%Y-%m-%d}, {turn.speaker or turn.role}\n{turn.content}")
