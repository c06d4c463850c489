"""Acts that Russian clauses speak of: requests, promises, duties, plans, by the morphology of their words."""

from dataclasses import replace

from agents.people import Mention
from agents.syntax.clauses import Act, ClauseSpan, Doer, ImpliedOwner, Sentence, dates_within, without_vague
from agents.syntax.russian_clauses import RussianClause
from agents.syntax.russian_duties import DutyReader
from agents.syntax.russian_words import (
    ASKING,
    DATE_LEADS,
    DATIVE,
    HEDGES,
    NEED,
    WISHING,
    mention_in,
    verb_of,
    with_names,
)
from language.dates.expressions import SpokenDate


def find_clauses(sentence: Sentence, addressee: Doer | None = None, named: Mention | None = None) -> list[ClauseSpan]:
    """Clauses of a sentence with their acts, in order; requests without a doer are the addressee's.

    `named` is whom «она» means.
    """
    return _Reader(sentence, addressee, named).clauses()


def names_act(sentence: Sentence) -> bool:
    """Whether a sentence has an infinitive and no finite verb: «записаться к врачу»."""
    verbs = [form for word in sentence.words if (form := verb_of(word))]
    return bool(verbs) and all(form.has("INFN") for form in verbs)


def find_subject(sentence: Sentence, start: int) -> Mention | None:
    """The person with whose name a clause begins at this place."""
    words = [word for word in with_names(sentence.words) if word.start >= start and not word.is_date]
    if len(words) > 1 and words[1].mention and words[0].lower in ("у", "за", "на", "от", "с"):
        return mention_in(words[1], ("gent", "ablt", "loct"))
    return words[0].mention if words else None


def last_named(sentence: Sentence) -> Mention | None:
    """The person of whom a sentence speaks last."""
    return next((word.mention for word in reversed(with_names(sentence.words)) if word.mention), None)


def find_addressee(sentence: Sentence) -> Mention | None:
    """The person who is spoken to by name."""
    found = _Reader(sentence, None)
    found.clauses()
    return found.addressee if isinstance(found.addressee, Mention) else None


def _opening(clause: RussianClause) -> tuple[int, int]:
    """Span of the word that a clause opens with, and of the preposition before it."""
    at = 1 if clause.words[0].lower in DATE_LEADS and len(clause.words) > 1 else 0
    return clause.words[0].start, clause.words[at].end


class _Reader(DutyReader):
    """One pass over the clauses of a sentence."""

    def clauses(self) -> list[ClauseSpan]:
        spans: list[ClauseSpan] = []
        clauses = list(self._split())
        for clause in clauses:
            self._find_address(clause)
        is_decided = any(
            form.lemma in ("решить", "постановить") and form.has("past")
            for each in clauses
            for _, form in self._verbs(each)
        )
        is_conditional = any(self._is_condition(clause) for clause in clauses)
        last: Act | None = None
        heading: tuple[SpokenDate, ...] = ()
        told: Mention | None = None
        for clause in clauses:
            act = self._act_of(clause, last)
            is_wish = clause.words[0].lower in ("чтобы", "чтоб", "пусть", "пускай")
            if act and told and is_wish and act.doer is ImpliedOwner.NOBODY and spans:
                # «Передай Гузель, чтобы принесла справку»: whoever is told is to do it.
                act, spans[-1] = replace(act, doer=told), replace(spans[-1], act=None, is_subordinate=True)
            told = self._told(clause)
            self.named = next((w.mention for w in reversed(clause.words) if w.mention), self.named)
            if act and not act.dates:
                act = replace(act, dates=heading)
            elif not spans:
                # «В субботу Ася печёт, Игорь накрывает».
                heading = dates_within(self._sentence.dates, *_opening(clause))
            if act and is_decided and act.doer is ImpliedOwner.NOBODY and not act.dates:
                act = None  # «Решили, назовём его Бим»
            if act and is_conditional and act.doer is ImpliedOwner.SPEAKER and not act.dates:
                act = None
            last = act
            is_aside = clause.is_subordinate and clause.words[0].lower != "кто"
            spans.append(ClauseSpan(clause.start, clause.end, act, is_aside))
        return self._with_addressee(without_vague(spans, self._sentence))

    def _act_of(self, clause: RussianClause, last: Act | None) -> Act | None:
        """The act of a clause; a subordinate one has one only after a wish: «нужно, чтобы Рома съездил»."""
        is_wished = clause.words[0].lower in ("чтобы", "чтоб") and self._wants
        self._wants = bool(clause.lowers() & NEED) or any(form.lemma in WISHING for _, form in self._verbs(clause))
        if not clause.free or (clause.is_subordinate and not is_wished):
            return None
        return self._act(clause) or (None if clause.is_subordinate else self._gapped(clause, last))

    def _gapped(self, clause: RussianClause, last: Act | None) -> Act | None:
        """«В понедельник отчёт сдать, в среду презентацию»: another day and thing for the same person."""
        dates = dates_within(self._sentence.dates, clause.start, clause.end)
        opens_with_date = clause.free[0].start > clause.words[0].start
        if last is None or not last.dates or not dates or not opens_with_date or self._verbs(clause):
            return None
        act = replace(self._nominal(clause, last.doer, []), dates=dates, is_nominal=False)
        return act if act.has_object else None

    def _told(self, clause: RussianClause) -> Mention | None:
        """The person whom somebody is to tell: «скажи Лене, …»."""
        tells = any(form.lemma in ASKING and not form.has("past") for _, form in self._verbs(clause))
        named = next((word for word in clause.free if word.mention), None)
        return mention_in(named, ("datv", "accs")) if tells and named else None

    def _with_addressee(self, spans: list[ClauseSpan]) -> list[ClauseSpan]:
        """An address at the end holds for what was said before it: «…надо внести, Жень»."""
        to = self.addressee
        if not isinstance(to, Mention):
            return spans
        return [
            replace(span, act=replace(span.act, doer=to)) if span.act and span.act.doer is ImpliedOwner.NOBODY else span
            for span in spans
        ]

    def _act(self, clause: RussianClause) -> Act | None:
        lowers = clause.lowers()
        if lowers & HEDGES and not lowers & NEED:
            return None
        if lowers & {"бы", "б"} and not lowers & (NEED | set(DATIVE)) and not self._is_wish(clause):
            return None
        dates = dates_within(self._sentence.dates, clause.start, clause.end)
        for way in (
            self._reminder, self._commission, self._asked_for, self._wished, self._let, self._enrolled, self._request,
            self._duty, self._wanted_thing, self._promise, self._told_plan,
            self._assignment, self._expected, self._taken, self._infinitive, self._named_place,
        ):  # fmt: skip
            act = way(clause)
            if act:
                return replace(act, dates=dates)
        return None

    def _is_condition(self, clause: RussianClause) -> bool:
        """«Если успею»: whether it comes to it is not known."""
        return (
            clause.is_subordinate
            and clause.words[0].lower == "если"
            and any(
                (form := verb_of(word)) and (form.has("1per") or form.lemma in ("получиться", "повезти", "быть"))
                for word in clause.free
            )
        )
