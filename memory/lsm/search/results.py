"""Results of a search: turns, or excerpts of long ones, grouped by episode within the budget of words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from bus_schema.episodes import ColdContent, Content, Layer, RawTurn, WarmContent
from bus_schema.lsm_search import FoundEpisode, ScoreParts, SearchEpisodes
from language.words import stems
from memory.lsm.priority import LayerRules
from memory.lsm.rows import as_turn
from memory.lsm.search.ranking import EXCERPT_WORDS, LONGEST_WHOLE_WORDS, fit_budget
from memory.lsm.search.turn_search import TurnHit
from memory.packing.cold import standing

# Turns that choose the episodes of a summary.
_TURNS_FOR_SUMMARY = 40
# Of the budget of an overview; the rest is for packs.
_TURNS_SHARE = 2 / 3
# Priority decides between episodes of nearly the same score.
_PRIORITY_SHARE = 0.1
# An episode fits well that is so far up from the worst of those found to the best, or has so much of the best's score.
_FITS_SHARE, _FITS_SURELY = 0.4, 0.75
_WORD = re.compile(r"\S+")
_ENDS_SENTENCE = re.compile(r"[.!?…:][\"'»”*_)]*$")


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A hit with the row of its turn and episode, and the turn as the answer shows it, of so many words."""

    hit: TurnHit
    row: Any
    turn: RawTurn
    words: int
    pack: Content | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """The hits in one episode, with what its priority adds to the score of the best."""

    hits: Sequence[ShownTurn]
    priority: float

    @property
    def row(self) -> Any:
        """The episode's columns, which every hit's row has."""
        return self.hits[0].row

    @property
    def best(self) -> TurnHit:
        return max((each.hit for each in self.hits), key=lambda hit: hit.score)

    @property
    def score(self) -> float:
        return self.best.score + self.priority

    @property
    def score_parts(self) -> ScoreParts:
        words = dict.fromkeys(word for each in self.hits for word in each.hit.words)
        return ScoreParts(signals={**self.best.signals, "priority": self.priority}, words=tuple(words))


def found_episodes(
    loaded: Sequence[ShownTurn], query: SearchEpisodes, rules: LayerRules, at: datetime, *, with_packs: bool
) -> list[FoundEpisode]:
    """Episodes of the turns that were found, best first, within the budget."""
    if with_packs and query.depth == "auto":
        return _overview(loaded, query, rules, at)
    hits = loaded[:_TURNS_FOR_SUMMARY] if with_packs else _fitting(loaded, query.budget_words)
    return _grouped(hits, query, rules, at, is_summary=with_packs)


def oldest_first(episodes: Iterable[FoundEpisode]) -> list[FoundEpisode]:
    """The episodes as they followed each other; their turns do so anyway."""
    return sorted(episodes, key=lambda each: each.started_at)


def newest_first(episodes: Iterable[FoundEpisode]) -> list[FoundEpisode]:
    """The episodes by the time of their latest turn, the latest first, and so are the turns of each."""
    turned = [each.model_copy(update={"turns": each.turns[::-1]}) for each in episodes]
    return sorted(turned, key=lambda each: each.turns[0].time if each.turns else each.started_at, reverse=True)


def current_first(episodes: Sequence[FoundEpisode]) -> list[FoundEpisode]:
    """The episodes with those that fit well at the head, the latest of these first; turns follow each other as ever."""
    scores = [each.score for each in episodes] or [0.0]
    worst, best = min(scores), max(scores)
    # What all have in common, such as who said it, is in every score.
    least = min(worst + _FITS_SHARE * (best - worst), _FITS_SURELY * best)
    fitting = [each for each in episodes if each.score >= least]
    fitting.sort(key=lambda each: each.turns[-1].time if each.turns else each.started_at, reverse=True)
    return fitting + [each for each in episodes if each.score < least]


def _grouped(
    hits: Sequence[ShownTurn], query: SearchEpisodes, rules: LayerRules, at: datetime, *, is_summary: bool
) -> list[FoundEpisode]:
    """Episodes, best first, each with the turns that fit; in a summary with the text of its layer instead."""
    by_episode: dict[str, list[ShownTurn]] = {}
    for each in hits:
        by_episode.setdefault(each.row.episode_id, []).append(each)
    best = max((each.hit.score for each in hits), default=0.0)

    def priority(members: Sequence[ShownTurn]) -> float:
        relevance = max(each.hit.score for each in members) / best if best > 0 else 0.0
        return _PRIORITY_SHARE * rules.priority(members[0].row, at, relevance)

    groups = [_Group(members, priority(members)) for members in by_episode.values()]
    left = query.budget_words
    episodes = []
    for group in sorted(groups, key=lambda group: -group.score):
        text = _layer_text(group.hits[0], query) if is_summary else None
        members = [] if text is not None else _fitting(group.hits, left)
        words = sum(each.words for each in members) + len((text or "").split())
        if words <= left and (members or text is not None):
            left -= words
            episodes.append(_episode(group, members, text, is_explained=query.explain))
    return episodes


def _overview(
    loaded: Sequence[ShownTurn], query: SearchEpisodes, rules: LayerRules, at: datetime
) -> list[FoundEpisode]:
    """Episodes with the turns that fit their share of the budget, and with the packs for which there is room.

    A pack may lack what was decided; the turns have it. More turns have what the packs leave of the budget.
    """
    hits = _fitting(loaded, max(1, int(_TURNS_SHARE * query.budget_words)))
    left = query.budget_words - sum(each.words for each in hits)
    warm = [each for each in loaded[:_TURNS_FOR_SUMMARY] if each.row.layer == Layer.WARM]
    packs = _grouped(warm, query.model_copy(update={"budget_words": left}), rules, at, is_summary=True)
    chosen, left = {each.hit.raw_log_id for each in hits}, left - sum(map(words_of, packs))
    hits += _fitting([each for each in loaded if each.hit.raw_log_id not in chosen], left)
    episodes = {each.episode_id: each for each in _grouped(hits, query, rules, at, is_summary=False)}
    for pack in packs:
        known = episodes.get(pack.episode_id)
        episodes[pack.episode_id] = pack if known is None else known.model_copy(update={"text": pack.text})
    return list(episodes.values())


def shown_turn(hit: TurnHit, row: Any, weights: Mapping[str, float], pack: Content | None = None) -> ShownTurn:
    """The turn, or an excerpt of a long one, with the pack of its episode where that is shown as well."""
    turn = as_turn(row)
    if row.word_count <= LONGEST_WHOLE_WORDS:
        return ShownTurn(hit, row, turn, row.word_count, pack)
    shown = turn.model_copy(update={"content": excerpt(row.content, weights), "is_excerpt": True})
    return ShownTurn(hit, row, shown, EXCERPT_WORDS, pack)


def _fitting(hits: Sequence[ShownTurn], budget_words: int) -> list[ShownTurn]:
    words = np.array([each.words for each in hits], dtype=np.uint32)
    return [hits[position] for position in fit_budget(range(len(hits)), words, budget_words)]


def _episode(group: _Group, members: Sequence[ShownTurn], text: str | None, *, is_explained: bool) -> FoundEpisode:
    row = group.row
    turns = sorted(members, key=lambda each: (each.row.time, each.row.position))
    return FoundEpisode(
        episode_id=row.episode_id,
        layer=Layer(row.layer),
        headline=row.headline,
        started_at=row.started_at,
        turns=tuple(each.turn for each in turns),
        text=text,
        score=group.score,
        explain=group.score_parts if is_explained else None,
    )


def _layer_text(shown: ShownTurn, query: SearchEpisodes) -> str | None:
    """Text of a pack that is enough for a summary: a headline tells the subject of an episode, not its result."""
    layer = shown.row.layer
    is_enough = layer == Layer.WARM or (layer == Layer.COLD and query.depth == "summary")
    return "\n".join(_lines(shown.pack)) or None if is_enough and shown.pack else None


def _lines(content: Content) -> Iterator[str]:
    if isinstance(content, WarmContent):
        content = standing(content)
        if content.summary:
            yield content.summary
        yield from (f"- {point}" for point in content.key_points)
        known = {content.summary, *content.key_points}
        yield from (f"- {each.text}" for each in content.decisions if each.text not in known)
    elif isinstance(content, ColdContent):
        yield content.headline


def words_of(episode: FoundEpisode) -> int:
    return sum(len(turn.content.split()) for turn in episode.turns) + len((episode.text or "").split())


def excerpt(text: str, weights: Mapping[str, float]) -> str:
    """The run of `EXCERPT_WORDS` words with the heaviest stems of the question, from the beginning of a sentence.

    `weights` are the stems' inverse document frequencies. Ellipses mark what is left out; they are no words.
    """
    words = list(_WORD.finditer(text))
    if len(words) <= EXCERPT_WORDS:
        return text
    latest = len(words) - EXCERPT_WORDS
    starts = [at for at in range(latest) if not at or _begins_sentence(text, words[at - 1], words[at])]
    found = [(at, stem) for at, word in enumerate(words) for stem in set(stems(word[0])) if stem in weights]
    # Of equal passages the last one begins with the question's words, so that what follows them is shown, too.
    start = max([*starts, latest], key=lambda at: (_weight(found, at, weights), at)) if found else 0
    begin, end = words[start].start(), words[start + EXCERPT_WORDS - 1].end()
    return ("…" if start else "") + text[begin:end] + ("…" if start < latest else "")


def _begins_sentence(text: str, before: re.Match[str], word: re.Match[str]) -> bool:
    return _ENDS_SENTENCE.search(before[0]) is not None or "\n" in text[before.end() : word.start()]


def _weight(found: list[tuple[int, str]], start: int, weights: Mapping[str, float]) -> float:
    """Weight of the different stems among the words of the passage from `start` on."""
    return sum(weights[stem] for stem in {stem for at, stem in found if start <= at < start + EXCERPT_WORDS})
