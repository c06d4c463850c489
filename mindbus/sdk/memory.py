"""Memory of people as one writes it: conversations are added, and found again with the facts in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import cleandoc
from typing import Any, TypedDict

from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.episodes import RawTurn
from bus_schema.facts import FindFacts, LearnFacts, ListFacts
from bus_schema.ids import derived
from bus_schema.lsm import MAX_RECORDED, RecordExchange, SaidMessage
from bus_schema.lsm_search import SearchEpisodes
from bus_schema.processing import Fact, FactUpdate
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.worker import utc_now
from mindbus.errors import BusUnavailable, Rejected, ReplyError
from mindbus.logs import logger


class MalformedMessage(Rejected, code=Code.INVALID):
    """A message is a dict with `role`, `user` or `assistant`, and `content`; `time` and `id` are optional."""

    def __init__(self, about: str) -> None:
        super().__init__(message=f"{about}: {cleandoc(type(self).__doc__ or '')}")


class MemoryMessage(TypedDict, total=False):
    """Something that was said; without a time of its own, now."""

    role: str
    content: str
    time: datetime | str
    id: str


@dataclass(frozen=True)
class AddedMemory:
    """Outcome of `Memory.add`: how many messages are new, the episode of the last, what the facts have become.

    `unread` says why the facts could not be read, as where `context_manager` is away; to add the same again reads them.
    """

    new: int
    episode_id: str
    facts: tuple[FactUpdate, ...]
    unread: str = ""


@dataclass(frozen=True)
class FoundMemory:
    """Outcome of `Memory.search`: facts, the most relevant first, and what was said, in the words it was said in."""

    facts: tuple[Fact, ...]
    turns: tuple[RawTurn, ...]
    confidence: str


class Memory:
    """Memory of people: what they have said, and the facts in it.

    The fleet has the workers `storage`, `lsm` and `context_manager`.
    """

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def add(self, messages: str | Sequence[Mapping[str, Any] | SaidMessage], *, user: str) -> AddedMemory:
        """Remember a conversation: an episode, and the facts in it. A text alone is something that the user has said.

        Messages of the same ids, or of the same times and words, again change nothing. Where the facts cannot be read,
        what was said is kept all the same and a warning is logged. Raises MalformedMessage, ReplyError,
        BusUnavailable.
        """
        said = _said_in(messages, user)
        new, episode_id, unread = 0, "", ""
        facts: list[FactUpdate] = []
        for start in range(0, len(said), MAX_RECORDED):
            some = said[start : start + MAX_RECORDED]
            recorded = await self._bus.request(RecordExchange(chat_id=user, messages=some))
            new, episode_id = new + recorded.new, recorded.episode_id
            if unread:
                continue
            try:
                facts += (await self._bus.request(LearnFacts(user_id=user, messages=some))).items
            except (BusUnavailable, ReplyError) as error:
                unread = str(error)
                logger().warning("facts of a conversation not read", user_id=user, reason=unread)
        return AddedMemory(new, episode_id, tuple(facts), unread)

    async def search(
        self, query: str, *, user: str, limit: int = 5, words: int = 600, newest_first: bool = False
    ) -> FoundMemory:
        """Facts and passages that bear on a question: at most `limit` facts, passages of `words` words together.

        The passages are best first, or the latest first, which is better for what may have changed. A question that
        asks for an order, or for what holds now, has them as `FoundEpisodes` says.
        Raises ReplyError, BusUnavailable.
        """
        known = await self._bus.request(FindFacts(user_id=user, about=query, limit=limit))
        search = SearchEpisodes(
            query=query, chat_id=user, budget_words=words, depth="raw", touch=False, newest_first=newest_first
        )
        found = await self._bus.request(search)
        turns = tuple(turn for episode in found.episodes for turn in episode.turns)
        return FoundMemory(known.items, turns, found.confidence)

    async def history(self, *, user: str, limit: int = 50) -> tuple[Fact, ...]:
        """Facts that the user has stated, the newest first, with those that later ones have superseded.

        Raises ReplyError, BusUnavailable.
        """
        page = await self._bus.request(ListFacts(user_id=user, superseded=True, limit=limit))
        return page.items


def _said_in(messages: str | Sequence[Mapping[str, Any] | SaidMessage], user: str) -> tuple[SaidMessage, ...]:
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    if not given:
        raise MalformedMessage("there is none")
    now = utc_now()
    return tuple(_message_of(each, number, user, now) for number, each in enumerate(given))


def _message_of(given: Mapping[str, Any] | SaidMessage, number: int, user: str, now: datetime) -> SaidMessage:
    if isinstance(given, SaidMessage):
        return given
    if not isinstance(given, Mapping):
        raise MalformedMessage(f"message {number + 1} is of the type {type(given).__name__}")
    unknown = given.keys() - MemoryMessage.__annotations__.keys()
    if unknown:
        raise MalformedMessage(f"message {number + 1} has {', '.join(sorted(map(str, unknown)))}")
    fields = {"role": given.get("role"), "content": given.get("content"), "time": given.get("time", now)}
    try:
        said = SaidMessage.model_validate(fields | {"message_id": given.get("id") or None})
    except ValidationError as invalid:
        raise MalformedMessage(f"message {number + 1}: {explain(invalid)}") from invalid
    if said.message_id is not None:
        return said
    # Without an id, what is said at a time is the same message; those without a time are told apart by their places.
    place = "" if "time" in given else str(number)
    message_id = f"msg_{derived(user, said.role, said.time.astimezone(UTC).isoformat(), place, said.content)}"
    return said.model_copy(update={"message_id": message_id})
