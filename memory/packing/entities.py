"""Named entities of a dialogue: people, places, organizations, things, dates, amounts (spec 002 F3: all are kept)."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from bus_schema.episodes import Entity, RawTurn
from language.dates.intervals import date_spans
from language.names import NameFinder, is_person, is_place
from language.words import stem_key
from memory.packing.sentences import sentences_of

Kind = Literal["person", "place", "organization", "thing", "date", "amount"]
Span = tuple[int, int]

_FIGURE = r"\d+(?:[   ]\d{3})*(?:[.,:/×x-]\d+)*"
_SCALE = r"(?:тыс(?:яч\w*|\.)?|млн\.?|миллион\w*|млрд\.?|миллиард\w*|thousand|million|billion|hundred|k|K|M|bn)"
_MONEY = r"(?:руб(?:л\w+|\.)?|₽|доллар\w*|евро|тенге|dollars?|euros?|pounds?|rubles?|roubles?|bucks|USD|EUR|RUB|€|\$|£)"
_COUNT = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|"
    r"eighty|ninety|hundred|thousand|million|две|два|три|четыре|пять|шесть|семь|восемь|девять|десять|\w+надцать|"
    r"двадцать|тридцать|сорок|\w+десят|девяносто|сто|двести|триста|четыреста|\w+сот|тысяч\w*|миллион\w*|полтор[аы])"
)
_AMOUNTS = tuple(
    map(
        re.compile,
        (
            r"(?<![\w@])\+?\d[\d() -]{8,}\d(?!\w)",
            rf"(?<!\w)[$€£₽]\s?{_FIGURE}(?:\s?{_SCALE})?(?!\w)",
            rf"(?<![\w.,]){_FIGURE}(?:\s?{_SCALE})?\s?(?:%|процент\w*|percent|{_MONEY})(?!\w)",
            rf"(?<!\w){_COUNT}(?:[ -]{_COUNT})* (?:процент\w*|percent|{_MONEY})(?!\w)",
            # A figure with its unit.
            rf"(?<![\w.,$€£₽-]){_FIGURE}(?:\s?{_SCALE}(?!\w))?(?:[ -]?(?P<unit>[^\W\d_]{{1,24}}))?(?!\w)",
        ),
    )
)
_NO_UNITS = frozenset(
    re.findall(
        r"\w+",
        """
    a about an and are as at but by for from if in into is it of on or so than that the then there to was were when
    which who will with а без в во где для до же за и из или к как когда ко ли на не но о от по под при с со то у что
    это
        """,
    )
)
_ORGANIZATION = re.compile(
    r"\b(?:Inc|Corp|Ltd|LLC|GmbH|Co|Group|Bank|University|College|School|Institute|Foundation|Agency|Studio|Company|"
    r"ООО|ОАО|ЗАО|АО|ПАО|ИП|[Бб]анк\w*|[Уу]ниверситет\w*|[Ии]нститут\w*|[Шш]кол\w+|[Фф]онд\w*|[Кк]омпани\w+)\b"
)
_ORGANIZATION_BEFORE = re.compile(
    r"(?:company|firm|bank|agency|компани\w+|фирм\w+|банк\w*|агентств\w+|ООО|АО)\s*[«“\"]?$", re.IGNORECASE
)
_PLACE_BEFORE = re.compile(r"\b(?:to|from|near|visit(?:ed)?|город\w*|посёлок|улиц\w+|на улице)\s$|\b[Ii]n\s$")


@dataclass
class _Mentions:
    """All mentions of an entity: its forms and the ids of their turns."""

    kind: Kind
    key: tuple[str, ...]
    forms: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def is_within(self, other: "_Mentions") -> bool:
        """Whether the stems are a part of the other's."""
        if self is other or len(self.key) >= len(other.key) or (self.kind == "date") != (other.kind == "date"):
            return False
        return any(other.key[at : at + len(self.key)] == self.key for at in range(len(other.key)))


def entities_of(turns: Sequence[RawTurn]) -> tuple[Entity, ...]:
    """Entities in the order of their first mention; speaking is no mention."""
    sentences = sentences_of(turns)
    names = NameFinder(sentence.text for sentence in sentences)
    speakers = {stem_key(word) for turn in turns for word in (turn.speaker or "").split()}
    by_key: dict[tuple[str, ...], _Mentions] = {}
    for sentence in sentences:
        sentence_key = f" {stem_key(sentence.text)} "
        for (start, end), kind in _spans(sentence.text, names, speakers):
            name = sentence.text[start:end]
            key = tuple(stem_key(name).split())
            if key and f" {' '.join(key)} " in sentence_key:
                mentions = by_key.setdefault(key, _Mentions(kind, key))
                mentions.forms.append(name)
                mentions.ids.append(sentence.raw_log_id)
    return tuple(map(_entity, _merged(list(by_key.values()))))


def amounts_in(text: str) -> Iterator[Span]:
    spans: list[Span] = []
    for pattern in _AMOUNTS:
        for match in pattern.finditer(text):
            start, end = match.span()
            unit = match.groupdict().get("unit")
            if unit and unit.lower() in _NO_UNITS:
                end = start + len(text[start : match.start("unit")].rstrip(" -"))
            if not _overlaps((start, end), spans):
                spans.append((start, end))
                yield start, end


def _spans(text: str, names: NameFinder, speakers: Set[str]) -> Iterator[tuple[Span, Kind]]:
    """Spans of entities in a sentence; dates take precedence over names, names over amounts."""
    dates: Iterable[tuple[Span, Kind]] = ((span, "date") for span in date_spans(text))
    named = (((match.start, match.end), _kind(match.text, text[: match.start], speakers)) for match in names.find(text))
    amounts: Iterable[tuple[Span, Kind]] = ((span, "amount") for span in amounts_in(text))
    accepted: list[Span] = []
    for span, kind in (*dates, *named, *amounts):
        if not _overlaps(span, accepted):
            accepted.append(span)
            yield span, kind


def _overlaps(span: Span, spans: Iterable[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in spans)


def _kind(name: str, before: str, speakers: Set[str]) -> Kind:
    if _ORGANIZATION.search(name) or _ORGANIZATION_BEFORE.search(before):
        return "organization"
    if is_person(name, speakers):
        return "person"
    if is_place(name.split()[0]) or _PLACE_BEFORE.search(before):
        return "place"
    return "thing"


def _merged(mentions: Sequence[_Mentions]) -> Iterable[_Mentions]:
    """Entities without those that are part of another, which takes their turns: «Анна» of «Анна Петрова»."""
    for mention in sorted(mentions, key=lambda one: len(one.key)):
        container = next((other for other in mentions if mention.is_within(other)), None)
        if container:
            container.ids.extend(mention.ids)
    return [mention for mention in mentions if not any(mention.is_within(other) for other in mentions)]


def _entity(mentions: _Mentions) -> Entity:
    # The shortest form is most often the dictionary form.
    name = min(mentions.forms, key=lambda form: (len(form), mentions.forms.index(form)))
    return Entity(name=name, kind=mentions.kind, raw_log_ids=tuple(dict.fromkeys(mentions.ids)))
