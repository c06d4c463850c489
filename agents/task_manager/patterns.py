"""Patterns that announce a task, and matching of them in a sentence."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from agents.people import Mention

# Names are masked, so that a pattern can say "a name here" and places stay what they are.
_FIRST, _REST = "\ue000", "\ue001"
NAME = f"{_FIRST}{_REST}*"


class ImpliedOwner(Enum):
    """Whose task it is, where nobody is named."""

    SPEAKER = "speaker"
    NOBODY = "nobody"


@dataclass(frozen=True)
class TaskPattern:
    """A pattern with how to read it.

    What follows the match is the work, unless the group `work` holds it; the group `verb` belongs to the work. A cue
    that `asks` may stand in a question; one that is `weak` is a task only with a date.
    """

    pattern: re.Pattern[str]
    doer: ImpliedOwner = ImpliedOwner.NOBODY
    asks: bool = False
    weak: bool = False


@dataclass(frozen=True)
class PatternMatch:
    """A cue found in a sentence."""

    pattern: TaskPattern
    match: re.Match[str]

    @property
    def start(self) -> int:
        return self.match.start()

    def group(self, name: str) -> str:
        return (self.match.groupdict().get(name) or "").strip()

    def named(self, mentions: Iterable[Mention]) -> Mention | None:
        """The doer whom the cue names."""
        if "who" not in self.match.re.groupindex:
            return None
        return next((each for each in mentions if each.start == self.match.start("who")), None)


def task_pattern(
    pattern: str, doer: ImpliedOwner = ImpliedOwner.NOBODY, *, asks: bool = False, weak: bool = False
) -> TaskPattern:
    return TaskPattern(re.compile(pattern.replace("<name>", f"(?P<who>{NAME})"), re.IGNORECASE), doer, asks, weak)


def mask_names(text: str, mentions: Iterable[Mention]) -> str:
    for each in mentions:
        text = f"{text[: each.start]}{_FIRST}{_REST * (each.end - each.start - 1)}{text[each.end :]}"
    return text


def find_patterns(text: str, cues: Sequence[TaskPattern]) -> list[PatternMatch]:
    """The cues in a masked text, in order; where two overlap, the one that is listed first."""
    found: list[PatternMatch] = []
    for each in cues:
        for match in each.pattern.finditer(text):
            if not any(match.start() < other.match.end() and other.start < match.end() for other in found):
                found.append(PatternMatch(each, match))
    return sorted(found, key=lambda hit: hit.start)
