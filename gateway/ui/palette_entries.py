"""Entries of the command palette: screens, actions, and what is found of each kind of thing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import quote, urlencode

from pydantic import TypeAdapter, ValidationError

from bus_schema.artifacts import TraceId
from bus_schema.conversations import Dialogue
from bus_schema.dialogue import MessageKind
from bus_schema.kem_query import KemQuery
from bus_schema.lsm import ListEpisodes
from bus_schema.lsm_search import SearchEpisodes
from bus_schema.process import ListProcesses
from bus_schema.storage import SearchArtifacts
from gateway.api.dialogues import history
from gateway.api.fleet import list_dead_letters
from gateway.backend import Backend
from gateway.ui.i18n import Localizer
from gateway.ui.sections import EXPECTED_ERRORS
from mindbus.bus.deadletters import DeadLetter
from mindbus.logs import logger

SCREENS: Final = {
    "timeline": "T",
    "chat": "C",
    "tasks": "A",
    "runs": "R",
    "fleet": "F",
    "memory": "M",
    "episodes": "E",
    "sim": "S",
}
_LISTED = 200
_RUNS = 100
_TALKS = 10
_MESSAGES = 50
_LETTERS = 50
_UNITS = 4
_PER_GROUP = 5
_SEARCHED_CHATS = 6
_EPISODE_WORDS = 60
_ARTIFACTS_OF = timedelta(days=7)
_LINE = 120
# The kinds of things, in the order in which they are shown.
_ORDER: Final = tuple(
    f"palette.{kind}"
    for kind in ("people", "runs", "letters", "units", "messages", "episodes", "artifacts", "workers", "go", "do")
)
# Kinds of things by the prefix of their ids; an id is opened whether or not it is listed.
_BY_ID: Final = {
    "run_": ("palette.runs", "runs", "/runs/{}"),
    "art_": ("palette.artifacts", "file", "/artifacts/{}"),
    "ep_": ("palette.episodes", "episodes", "/episodes?episode={}"),
    "kem_": ("palette.units", "memory", "/memory?kem={}"),
    "conv_": ("palette.go", "filter", "/timeline?trace={}"),
}


@dataclass(frozen=True)
class PaletteEntry:
    """A line of the palette; `words` are found besides the title and the note."""

    group: str
    icon_name: str
    title: str
    target: str
    note: str = ""
    words: str = ""

    @property
    def looked_in(self) -> str:
        return f"{self.title} {self.note} {self.words}".casefold()


def fixed_entries(i18n: Localizer) -> list[PaletteEntry]:
    """Screens and actions, which are always there."""
    screens = [
        PaletteEntry("palette.go", name, i18n(f"nav.{name}"), f"/{name}", f"G {key}") for name, key in SCREENS.items()
    ]
    actions = (
        ("plus", "palette.new_dialogue", "/chat?new=1"),
        ("play", "palette.start_sim", "/sim"),
        ("runs", "palette.start_run", "/runs?new=1"),
        ("task", "palette.new_task", "/tasks?new=1"),
        ("alert", "palette.dead", "/fleet#dead"),
        ("anchor", "palette.anchors", "/episodes?anchors=1"),
        ("replay", "palette.changes", "/memory?view=changes"),
    )
    return screens + [PaletteEntry("palette.do", icon, i18n(key), target) for icon, key, target in actions]


_TRACE = TypeAdapter[str](TraceId)


def searches_for(i18n: Localizer, typed: str) -> list[PaletteEntry]:
    """Searches for any words: in memory, as somebody; as a trace, if they can be one."""
    targets = [("memory", "palette.in_memory", "/memory?q="), ("chat", "palette.talk_to", "/chat?with=")]
    with suppress(ValidationError):
        _TRACE.validate_python(typed)
        targets.append(("filter", "palette.by_trace", "/timeline?trace="))
    return [
        PaletteEntry("palette.search", icon, i18n(key, name=typed), target + quote(typed))
        for icon, key, target in targets
    ]


def best_of(entries: Iterable[PaletteEntry], typed: str) -> list[PaletteEntry]:
    """Entries with all the words, by group, at most five of each; titles that begin with them come first."""
    words, of_group = typed.casefold().split(), dict[str, list[PaletteEntry]]()
    for entry in entries:
        if all(word in entry.looked_in for word in words):
            of_group.setdefault(entry.group, []).append(entry)
    limit = _PER_GROUP if words else len(SCREENS)
    order = sorted(of_group, key=_ORDER.index) if words else list(of_group)
    return [
        entry
        for found in (of_group[group] for group in order)
        for entry in sorted(found, key=lambda entry: not entry.title.casefold().startswith(typed.casefold()))[:limit]
    ]


def by_id(typed: str) -> list[PaletteEntry]:
    """The thing whose whole id this is."""
    kind = next((kind for prefix, kind in _BY_ID.items() if typed.startswith(prefix) and " " not in typed), None)
    return [PaletteEntry(kind[0], kind[1], typed, kind[2].format(quote(typed)))] if kind else []


class EntrySources:
    """Reads the things of each kind side by side; a kind that cannot be read is left out."""

    def __init__(self, i18n: Localizer, backend: Backend) -> None:
        self._i18n, self._backend = i18n, backend
        self._chats: list[str] = []
        self._read: Sequence[Callable[[], Awaitable[Iterable[PaletteEntry]]]] = (
            self._people,
            self._runs,
            self._artifacts,
            self._episodes,
            self._letters,
        )

    async def listed(self, take: Callable[[Iterable[PaletteEntry]], None]) -> None:
        """Give the entries of each kind as soon as they have been read."""

        async def give(read: Callable[[], Awaitable[Iterable[PaletteEntry]]]) -> None:
            try:
                take(await read())
            except EXPECTED_ERRORS as error:
                logger().info("palette incomplete", reason=str(error))

        if self._backend.account.is_operator:
            take(PaletteEntry("palette.workers", "fleet", name, f"/fleet?worker={name}") for name in self._services())
        await asyncio.gather(*(give(read) for read in self._read))

    async def remembered(self, typed: str) -> list[PaletteEntry]:
        """Units of shared memory with one of the words, and episodes of the latest chats that are about them."""
        chats = self._chats[:_SEARCHED_CHATS]
        found = await asyncio.gather(
            self._units(typed), *(self._about(chat, typed) for chat in chats), return_exceptions=True
        )
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, EXPECTED_ERRORS):
                raise one
        return [entry for entries in found if not isinstance(entries, BaseException) for entry in entries]

    async def _about(self, chat_id: str, typed: str) -> list[PaletteEntry]:
        query = SearchEpisodes(query=typed, chat_id=chat_id, budget_words=_EPISODE_WORDS, touch=False)
        found = await self._backend.query(query)
        if found.confidence != "found" or not found.episodes:
            return []
        best = max(found.episodes, key=lambda each: each.score)
        return [self._episode(best.episode_id, best.headline, chat_id)]

    async def _units(self, typed: str) -> list[PaletteEntry]:
        page = await self._backend.memory().search(KemQuery(text_query=typed), limit=_UNITS, explain=True)
        return [
            PaletteEntry("palette.units", "memory", _line(item.kem.content or item.kem.id), f"/memory?{query}")
            for item in page.items
            if item.explain and item.explain.words
            for query in [urlencode({"q": typed, "kem": item.kem.id})]
        ]

    def _services(self) -> list[str]:
        return sorted({worker.service for worker in self._backend.feed.workers})

    async def _people(self) -> list[PaletteEntry]:
        names = self._backend.names
        dialogues = (await self._backend.dialogues(_LISTED)).items
        known = names.known() if self._backend.account.is_operator else []
        users = dict.fromkeys([*(dialogue.user_id for dialogue in dialogues), *known])
        people = [self._person(user) for user in users]
        spoken = await asyncio.gather(*(self._messages(dialogue) for dialogue in dialogues[:_TALKS]))
        return people + [message for messages in spoken for message in messages]

    def _person(self, user_id: str) -> PaletteEntry:
        name = self._backend.names.of(user_id)
        note = user_id if name != user_id else ""
        return PaletteEntry("palette.people", "user", name, f"/chat?{urlencode({'with': user_id})}", note)

    async def _messages(self, dialogue: Dialogue) -> Iterator[PaletteEntry]:
        user = dialogue.user_id
        page = await history(user, self._backend, limit=_MESSAGES)
        return (
            PaletteEntry(
                "palette.messages",
                "chat",
                _line(message.content),
                f"/chat?{urlencode({'with': user, 'message': message.message_id})}",
                self._backend.names.of(user),
                message.content,
            )
            for message in page.items
            if message.content and message.kind is not MessageKind.HIDDEN
        )

    async def _runs(self) -> list[PaletteEntry]:
        runs = (await self._backend.bus.request(ListProcesses(limit=_RUNS))).items
        return [
            PaletteEntry("palette.runs", "runs", run.card_name, f"/runs/{quote(run.run_id)}", run.run_id)
            for run in runs
        ]

    async def _artifacts(self) -> list[PaletteEntry]:
        since = self._backend.clock() - _ARTIFACTS_OF
        page = await self._backend.bus.request(SearchArtifacts(created_after=since, limit=_LISTED))
        return [
            PaletteEntry(
                "palette.artifacts",
                "file",
                manifest.artifact_type,
                f"/artifacts/{quote(manifest.id)}?{urlencode({'trace': manifest.trace_id})}",
                manifest.id,
                manifest.created_by,
            )
            for manifest in reversed(page.items)
        ]

    async def _episodes(self) -> list[PaletteEntry]:
        episodes = (await self._backend.query(ListEpisodes(limit=_LISTED))).items
        self._chats = list(dict.fromkeys(head.chat_id for head in episodes))
        return [self._episode(head.id, head.headline, head.chat_id, " ".join(head.tags)) for head in episodes]

    def _episode(self, episode_id: str, headline: str, chat_id: str, words: str = "") -> PaletteEntry:
        target = f"/episodes?{urlencode({'episode': episode_id})}"
        words = f"{episode_id} {headline} {words}"
        return PaletteEntry(
            "palette.episodes", "episodes", _line(headline), target, self._backend.names.of(chat_id), words
        )

    async def _letters(self) -> list[PaletteEntry]:
        # Among them are other people's messages.
        if not self._backend.account.is_operator:
            return []
        depths = await self._backend.dead_letter_counts()
        letters = [
            letter
            for service in (service for service, depth in depths.items() if depth)
            for letter in await list_dead_letters(self._backend, service, _LETTERS)
        ]
        return list(map(_letter, letters))


def _letter(letter: DeadLetter) -> PaletteEntry:
    words = f"{letter.message_id} {letter.reason} {letter.requester} {letter.trace_id}"
    target = f"/fleet?{urlencode({'letter': letter.message_id})}#dead"
    return PaletteEntry("palette.letters", "alert", letter.type, target, letter.code, words)


def _line(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"
