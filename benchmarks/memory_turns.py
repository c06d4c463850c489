"""Turns of talks with the questions that others asked about them, and the vectors of both, made once for everybody."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.locomo_baselines import messages_of
from benchmarks.locomo_data import Conversation, Question, conversations
from benchmarks.recall import chats_of
from bus_schema.embeddings import Embedding
from bus_schema.ids import derived
from bus_schema.lsm import SaidMessage
from retrieval.embedding.embedder import Embedder, EmbeddingSpace

SYNTHETIC = "synthetic: nobody asked these questions, so that recall says little"
_BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)
_NAMES = ("Anna", "Boris", "Chloe", "Denis", "Emma", "Felix", "Galina", "Hugo")
# What is told of each, and how it is asked for later.
_FACTS = (
    ("{} keeps the spare key under the {} pot", "Where is the spare key of {}?", ("blue", "clay", "round", "cracked")),
    ("{} went to {} for the holidays", "Which place did {} visit on vacation?", ("Oslo", "Tartu", "Porto", "Kazan")),
    ("{} is allergic to {}", "What food must {} avoid?", ("walnuts", "oysters", "sesame", "celery")),
    ("{} plays the {} in a band", "Which instrument does {} play?", ("bassoon", "ukulele", "drums", "cello")),
    ("{} drives a {} van to work", "What colour is the car of {}?", ("green", "white", "orange", "silver")),
)


@dataclass(frozen=True)
class Turn:
    """A message as everybody stores it: its text begins with whoever spoke, where that is known."""

    turn_id: str
    chat_id: str
    text: str


def talks_of(path: Path, most: int | None) -> tuple[str, list[Conversation]]:
    """What the talks are, LoCoMo or chats by their file, at most so many of them; made up where there is no file."""
    if not path.is_file():
        return SYNTHETIC, [_made_up(number) for number in range(most or 2)]
    if path.suffix != ".gz" and "sample_id" in json.loads(path.read_bytes())[0]:
        return f"LoCoMo, {path.name}", conversations(path)[:most]
    return f"chats, {path.name}", chats_of(path, ())[0][:most]


def turns_of(talk: Conversation) -> Iterator[Turn]:
    for message in messages_of(talk):
        text = f"{message.speaker}: {message.content}" if message.speaker else message.content
        yield Turn(str(message.message_id), talk.chat_id, text)


def _made_up(number: int) -> Conversation:
    chat_id, said, questions = f"made-up-{number}", list[SaidMessage](), list[Question]()
    for place, name in enumerate(_NAMES):
        for about, (told, asked, values) in enumerate(_FACTS):
            message_id = f"msg_{derived(chat_id, name, str(about))}"
            content = told.format(name, values[(place + about + number) % len(values)])
            time = _BEGIN + len(said) * timedelta(minutes=1)
            said.append(SaidMessage(message_id=message_id, role="user", content=content, time=time))
            questions.append(Question(asked.format(name), "single-hop", "", frozenset([message_id])))
    return Conversation(chat_id, (tuple(said),), tuple(questions))


class NotEmbeddedYet(Exception):
    """A text has no vector yet, so that making it would be on somebody's clock."""


class KnownVectors:
    """The product's embedder, which makes each vector once; once it is `sealed` it makes no more."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self.is_sealed = embedder, False
        self._vectors: dict[tuple[bool, str], Embedding] = {}

    @property
    def space(self) -> EmbeddingSpace:
        return self._embedder.space

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        if missing := [text for text in dict.fromkeys(texts) if (False, text) not in self._vectors]:
            self._require_unsealed(missing[0])
            made = await self._embedder.passages(missing)
            self._vectors |= {(False, text): vector for text, vector in zip(missing, made, strict=True)}
        return [self._vectors[False, text] for text in texts]

    async def query(self, text: str) -> Embedding:
        if (True, text) not in self._vectors:
            self._require_unsealed(text)
            self._vectors[True, text] = await self._embedder.query(text)
        return self._vectors[True, text]

    def known(self, text: str, *, is_query: bool) -> list[float]:
        """The vector of a text that was embedded before. Raises NotEmbeddedYet."""
        if (found := self._vectors.get((is_query, text))) is None:
            raise NotEmbeddedYet(f"{NotEmbeddedYet.__doc__} ({text})")
        return list(found.floats)

    async def close(self) -> None:
        """Whoever has opened the embedder closes it."""

    def _require_unsealed(self, text: str) -> None:
        if self.is_sealed:
            raise NotEmbeddedYet(f"{NotEmbeddedYet.__doc__} ({text})")
