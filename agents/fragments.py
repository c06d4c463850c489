"""Dialogue fragments as agents process them: sentences of messages, evidence for claims, results."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from agents.keywords import weighted_overlap
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.messages import Event, Link
from bus_schema.notification import NotificationGenerated
from language.sentences import sentences
from language.statements import numbers_in
from language.words import Language, language_of, terms, words

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)]|\[[ xX]?\])\s+")
_HEADING = re.compile(
    r"\b(?:todo|to-do|to do|action items?|tasks?|next steps|задачи|план|дела|сделать|поручения)\b", re.IGNORECASE
)
# In chat a sentence begins with a small letter as well.
_CHAT_END = re.compile(r"(?<=[^\W\d_][?!])\s+(?=[^\W\d])|(?<=[^\W\d_]{5}\.)\s+(?=[^\W\d_]{2})")
_ENOUGH = 0.6
_EVENLY: Mapping[str, float] = {}


@dataclass(frozen=True)
class MessageSentence:
    """A sentence; `is_item` in a list of things to do."""

    text: str
    language: Language
    is_item: bool = False

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("!)» \"'").endswith("?")


def message_sentences(text: str, language: Language | None = None) -> Iterator[MessageSentence]:
    language = language or language_of(text)
    is_under_heading = False
    for line in text.replace("’", "'").splitlines():
        bullet = _BULLET.match(line)
        said = line[bullet.end() :] if bullet else line
        for sentence in sentences(said):
            for part in _CHAT_END.split(sentence):
                yield MessageSentence(part, language, is_item=bool(bullet) and is_under_heading)
        if line.strip() and not bullet:
            is_under_heading = line.rstrip().endswith(":") and bool(_HEADING.search(line))


def quotes_message(quote: str, messages: Iterable[DialogueMessage]) -> bool:
    """Check that a message contains these words literally; a quote without words, such as 😡, must occur as it is."""
    wanted = _bare(quote)
    return any(
        f" {wanted} " in f" {_bare(each.content or '')} "
        if wanted
        else bool(quote.strip()) and quote in (each.content or "")
        for each in messages
    )


def quoted_message(quote: str, messages: Iterable[DialogueMessage], message_id: str) -> DialogueMessage | None:
    """The message that says these very words; marks and spaces may differ."""
    wanted = _bare(quote)
    named = next((each for each in messages if each.message_id == message_id), None)
    return named if named and wanted and quotes_message(quote, [named]) else None


def is_supported(claim: str, by: str) -> bool:
    """Check that a text contains 60 % of a claim's terms and all of its numbers."""
    if not numbers_in(claim) <= numbers_in(by):
        return False
    return weighted_overlap(terms(claim), terms(by), _EVENLY) >= _ENOUGH


def _bare(text: str) -> str:
    return " ".join(words(text.lower().replace("ё", "е")))


ItemT = TypeVar("ItemT", bound=BaseModel)


class ProcessingResult(BaseModel, Generic[ItemT]):
    """Result of an agent's work on one fragment."""

    model_config = ConfigDict(frozen=True)
    items: tuple[ItemT, ...] = ()
    notifications: tuple[NotificationGenerated, ...] = ()
    links: tuple[Link, ...] = ()

    def events(self, found: Callable[..., Event], agent: str, fragment: DialogueFragment) -> list[Event]:
        """The event that carries the items, if there are any, then the notifications."""
        about = {"agent": agent, "fragment_id": fragment.fragment_id, "user_id": fragment.user_id}
        items = [found(**about, items=self.items, links=self.links)] if self.items else []
        return [*items, *self.notifications]


def links_to(kind: str, ids: Iterable[str]) -> tuple[Link, ...]:
    """Pointers to things of one kind, each once."""
    return tuple(Link.model_validate({"kind": kind, "id": each}) for each in dict.fromkeys(ids))
