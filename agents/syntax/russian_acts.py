"""Words of an act in a Russian clause: the infinitive of its verb, what it is done to, without dates and doer."""

from collections.abc import Iterator, Sequence

from agents.people import Mention
from agents.syntax.clauses import Act, Doer, Word, without_spans
from agents.syntax.russian_clauses import ClauseReader, RussianClause
from agents.syntax.russian_words import ANYBODY, DATE_LEADS, FILLERS, POLITE, is_thing, verb_of


class ActReader(ClauseReader):
    """Makes acts of clauses."""

    def _spans(self, clause: RussianClause, dropped: Sequence[Word]) -> Iterator[tuple[int, int]]:
        for at, word in enumerate(clause.words):
            is_dropped = any(word.start == each.start for each in dropped)
            if word.is_date or is_dropped or word.lower in POLITE or word.lower in ANYBODY:
                yield word.start, word.end
                before = clause.words[at - 1] if at else None
                if word.is_date and before and not before.is_date and before.lower in DATE_LEADS:
                    yield before.start, before.end
        for word in clause.free[:3]:
            if word.lower not in FILLERS:
                break
            yield word.start, word.end
        for word in reversed(clause.free):
            if word.lower not in FILLERS:
                break
            yield word.start, word.end
        yield from ((w.start, w.end) for w in clause.free if w.lower == "бы")

    def _made(self, clause: RussianClause, doer: Doer, at: int, dropped: Sequence[Word]) -> Act:
        verb = clause.free[at]
        form = verb_of(verb)
        lemma = form.lemma if form else verb.lower
        negation = [clause.free[at - 1]] if at and clause.free[at - 1].lower == "не" else []
        spans = list(self._spans(clause, [*dropped, *negation, verb]))
        before = without_spans(self._text, clause.start, verb.start, spans)
        after = without_spans(self._text, verb.end, clause.end, spans)
        head = before if before[1:2].isupper() else before[:1].lower() + before[1:]
        is_name = any(w.mention and w.start == clause.start for w in clause.words)
        work = " ".join(part for part in (lemma, before if is_name else head, after) if part)
        left = [w for w in clause.free if not any(s <= w.start and w.end <= e for s, e in spans)]
        return Act(clause.start, clause.end, doer, work, has_object=any(is_thing(word) for word in left))

    def _nominal(self, clause: RussianClause, doer: Doer, dropped: Sequence[Word], *, needs_date: bool = False) -> Act:
        spans = list(self._spans(clause, dropped))
        if isinstance(doer, Mention):
            spans.append((doer.start, doer.end))
        work = without_spans(self._text, clause.start, clause.end, spans)
        left = [w for w in clause.free if not any(s <= w.start and w.end <= e for s, e in spans)]
        has_object = any(is_thing(word) for word in left)
        return Act(clause.start, clause.end, doer, work, needs_date=needs_date, has_object=has_object, is_nominal=True)

    def _prepositions(self, clause: RussianClause, at: int) -> list[Word]:
        following = clause.free[at + 1 : at + 3]
        return [word for word in following if word.lower in ("про", "о", "об", "по", "для", "на")][:1]
