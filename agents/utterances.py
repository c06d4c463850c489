"""A message, cut into what can be read by itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.text import Language, language_of, sentences

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)]|\[[ xX]?\])\s+")
_HEADING = re.compile(
    r"\b(?:todo|to-do|to do|action items?|tasks?|next steps|задачи|план|дела|сделать|поручения)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Utterance:
    """A sentence; `is_item` in a list of things to do."""

    text: str
    language: Language
    is_item: bool = False

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("!)» \"'").endswith("?")


def utterances(text: str) -> Iterator[Utterance]:
    language = language_of(text)
    is_under_heading = False
    for line in text.replace("’", "'").splitlines():
        bullet = _BULLET.match(line)
        said = line[bullet.end() :] if bullet else line
        for sentence in sentences(said):
            yield Utterance(sentence, language, is_item=bool(bullet) and is_under_heading)
        if line.strip() and not bullet:
            is_under_heading = line.rstrip().endswith(":") and bool(_HEADING.search(line))
