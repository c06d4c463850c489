"""Whom and what a dialogue names: people, places, things, dates, figures (spec 002 F3: all of them are kept)."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from bus_schema.episodes import Entity, RawTurn
from language.dates.mentions import date_spans
from language.given_names import is_place
from language.names import NameFinder, is_person
from language.words import stem_key
from memory.packing.amounts import amounts_in
from memory.packing.reading import sentences_of

Kind = Literal["person", "place", "organization", "thing", "date", "amount"]
_ORGANIZATION = re.compile(
    r"\b(?:Inc|Corp|Ltd|LLC|GmbH|Co|Group|Bank|University|College|School|Institute|Foundation|Agency|Studio|Company|"
    r"ООО|ОАО|ЗАО|АО|ПАО|ИП|[Бб]анк\w*|[Уу]ниверситет\w*|[Ии]нститут\w*|[Шш]кол\w+|[Фф]онд\w*|[Кк]омпани\w+)\b"
)
_CALLED = re.compile(
    r"(?:company|firm|bank|agency|компани\w+|фирм\w+|банк\w*|агентств\w+|ООО|АО)\s*[«“\"]?$", re.IGNORECASE
)
_WHERE = re.compile(r"\b(?:to|from|near|visit(?:ed)?|город\w*|посёлок|улиц\w+|на улице)\s$|\b[Ii]n\s$")


@dataclass
class _Found:
    kind: Kind
    key: tuple[str, ...]
    forms: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def is_within(self, other: "_Found") -> bool:
        """Whether the other says it too, in more words."""
        if self is other or len(self.key) >= len(other.key) or (self.kind == "date") != (other.kind == "date"):
            return False
        return any(other.key[at : at + len(self.key)] == self.key for at in range(len(other.key)))


def entities_of(turns: Sequence[RawTurn]) -> tuple[Entity, ...]:
    """Everything that these turns name, in the order in which it is first named; whoever speaks is not named by it."""
    sentences = sentences_of(turns)
    names = NameFinder(each.text for each in sentences)
    speakers = {stem_key(word) for turn in turns for word in (turn.speaker or "").split()}
    found: dict[tuple[str, ...], _Found] = {}
    for sentence in sentences:
        said = f" {stem_key(sentence.text)} "
        for start, end, kind in spans_in(sentence.text, names, speakers):
            name = sentence.text[start:end]
            key = tuple(stem_key(name).split())
            if key and f" {' '.join(key)} " in said:
                entity = found.setdefault(key, _Found(kind, key))
                entity.forms.append(name)
                entity.ids.append(sentence.raw_log_id)
    return tuple(_entity(each) for each in _without_parts(list(found.values())))


def spans_in(text: str, names: NameFinder, speakers: Set[str]) -> Iterator[tuple[int, int, Kind]]:
    """Where things are named in a sentence, with what sort of things they are."""
    taken: list[tuple[int, int]] = []
    for start, end, kind in (*_dated(text), *_called(text, names, speakers), *_counted(text)):
        if not any(start < other_end and other < end for other, other_end in taken):
            taken.append((start, end))
            yield start, end, kind


def _dated(text: str) -> Iterator[tuple[int, int, Kind]]:
    return ((start, end, "date") for start, end in date_spans(text))


def _counted(text: str) -> Iterator[tuple[int, int, Kind]]:
    return ((start, end, "amount") for start, end in amounts_in(text))


def _called(text: str, names: NameFinder, speakers: Set[str]) -> Iterator[tuple[int, int, Kind]]:
    for called in names.find(text):
        yield called.start, called.end, _kind(called.text, text[: called.start], speakers)


def _kind(name: str, before: str, speakers: Set[str]) -> Kind:
    if _ORGANIZATION.search(name) or _CALLED.search(before):
        return "organization"
    if is_person(name, speakers):
        return "person"
    if is_place(name.split()[0]) or _WHERE.search(before):
        return "place"
    return "thing"


def _without_parts(found: Sequence[_Found]) -> Iterable[_Found]:
    """«Анна» is kept as part of «Анна Петрова», with all the turns that name her."""
    for each in sorted(found, key=lambda one: len(one.key)):
        whole = next((other for other in found if each.is_within(other)), None)
        if whole:
            whole.ids.extend(each.ids)
    return [each for each in found if not any(each.is_within(other) for other in found)]


def _entity(found: _Found) -> Entity:
    # The shortest form of a name is the one that a dictionary would have, more often than not.
    name = min(found.forms, key=lambda form: (len(form), found.forms.index(form)))
    return Entity(name=name, kind=found.kind, raw_log_ids=tuple(dict.fromkeys(found.ids)))
