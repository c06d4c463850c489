"""Decisions that a later one seems to change: the same rare words, said with a change or with other figures."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property

from bus_schema.episodes import Decision
from language.dates.expressions import dates_in
from language.words import terms
from memory.packing.decision_cues import cues_of
from memory.packing.sentences import split_sentences

# What was put off is decided anew by whatever comes of it later.
_PUTS_OFF = re.compile(
    r"(?<!\w)(?:later|next year|postpon\w+|wait\w*|until|till|for now|for the time being|not (?:yet|now)|"
    r"на потом|потом|позже|отклад\w+|отлож\w+|до (?:весны|лета|осени|зимы|нового года)|пока|жд[её]м|подожд\w+|"
    r"не трога\w+)(?!\w)",
    re.IGNORECASE,
)
# Nothing says when a decision was made: dates are compared as if all were of one day.
_SAID_AT = datetime(2026, 1, 1, tzinfo=UTC)
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
# The rarity of shared words, 1 for a word of these two decisions alone, must make so much with what points to a change.
_LEAST, _CHANGE, _OTHER_FIGURE, _OTHER_DATE, _POSTPONED = 2.0, 1.0, 0.7, 0.8, 1.4


@dataclass(frozen=True)
class _Read:
    decision: Decision

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(term for term in terms(self.decision.text) if not term.isdigit())

    @cached_property
    def figures(self) -> frozenset[str]:
        return frozenset(_FIGURE.findall(self.decision.text))

    @cached_property
    def dates(self) -> frozenset[date]:
        return frozenset(each.at.date() for each in dates_in(self.decision.text, _SAID_AT))

    @cached_property
    def puts_off(self) -> bool:
        return bool(_PUTS_OFF.search(self.decision.text))

    @cached_property
    def changes(self) -> bool:
        return any("changes" in cues_of(sentence) for sentence in split_sentences(self.decision.text))


def superseded(decisions: Sequence[Decision], later: Sequence[Decision]) -> tuple[Decision, ...]:
    """The decisions, in the order in which they were made, each with the turns of the last one that seems to change it.

    `later` are those that were made after them all. It is a guess by rules, so a decision is never left out for it.
    """
    read = [*map(_Read, decisions), *map(_Read, later)]
    counts = Counter(word for each in read for word in each.words)
    return tuple(
        _marked(each, read[place + 1 :], counts, len(read)) for place, each in enumerate(read[: len(decisions)])
    )


def _marked(one: _Read, later: Sequence[_Read], counts: Counter[str], total: int) -> Decision:
    last = next((each for each in reversed(later) if _changes(one, each, counts, total)), None)
    if last is None:
        return one.decision
    return one.decision.model_copy(update={"superseded_by": last.decision.raw_log_ids})


def _changes(one: _Read, later: _Read, counts: Counter[str], total: int) -> bool:
    shared = one.words & later.words
    if not shared:
        return False
    # fsum: a plain sum over a set depends on its order, which differs between processes.
    rarity = math.fsum(math.log(total / counts[word]) for word in shared) / math.log(max(total, 3))
    has_other_figure = bool(one.figures) and bool(later.figures - one.figures)
    has_other_date = bool(one.dates) and bool(later.dates) and not one.dates & later.dates
    is_taken_up = one.puts_off and not later.puts_off
    reasons = _CHANGE * later.changes + _OTHER_FIGURE * has_other_figure + _OTHER_DATE * has_other_date
    return rarity + reasons + _POSTPONED * is_taken_up >= _LEAST
