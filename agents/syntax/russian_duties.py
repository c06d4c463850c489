"""Duties, promises and plans in Russian clauses."""

import re
from dataclasses import replace
from itertools import pairwise

from agents.people import Mention
from agents.syntax.clauses import Act, Doer, ImpliedOwner, Word
from agents.syntax.russian_clauses import RussianClause
from agents.syntax.russian_requests import RequestReader
from agents.syntax.russian_words import (
    GOING,
    HAPPENING,
    INTENDING,
    NEED,
    READY,
    STATES,
    TALK,
    VOWING,
    is_noun_in,
    mention_in,
    reading_as,
)
from language.russian import WordForm, word_forms

# First persons that other rules read.
_OTHERWISE = frozenset(("ждать", "брать", "взять", "напоминать"))


class DutyReader(RequestReader):
    """Finds what somebody takes on or has to do."""

    def _duty(self, clause: RussianClause) -> Act | None:
        """«Мне надо…», «Катя должна…», «нужно…» with an infinitive."""
        for at, word in enumerate(clause.free):
            infinitives = self._infinitives(clause)
            if word.lower in NEED and infinitives and not self._negated(clause, at):
                if (word.lower == "стоит" and not self._datives(clause)) or "было" in clause.lowers():
                    continue
                if (
                    any(each.lower in ("ли", "же") for each in clause.free[at + 1 : at + 2])
                    or self._sentence.is_question
                ):
                    continue
                lead = [word, *self._datives(clause)]
                self._licence = doer = self._dative_doer(clause) or ImpliedOwner.NOBODY
                return self._made(clause, doer, infinitives[0][0], lead)
            owes = reading_as(word, "ADJS", "должный", "обязанный")
            if owes and infinitives and not self._negated(clause, at) and not self._sentence.is_question:
                target = infinitives[0]
                if "был" in word.lower or any(w.lower.startswith("был") and w.lower != "быть" for w in clause.free):
                    continue
                subject = self._subject_of(clause)
                if target[1].lemma == "быть":
                    return self._nominal(clause, ImpliedOwner.NOBODY, clause.free[at:], needs_date=False)
                if subject is None:
                    continue
                self._licence = subject
                return self._made(clause, subject, target[0], [word, *self._subject_words(clause)])
        return None

    def _wanted_thing(self, clause: RussianClause) -> Act | None:
        """«Макет нужен к пятнице»."""
        for at, word in enumerate(clause.free):
            if reading_as(word, "ADJS", "нужный") and not self._negated(clause, at) and not self._infinitives(clause):
                if word.lower == "нужно" and not any(
                    f.has("NOUN") for w in clause.free for f in word_forms(w.lower)[:1]
                ):
                    continue
                if self._sentence.is_question:
                    continue
                source = self._source(clause)
                doer = mention_in(source[1], ("gent",)) if source else self._asked()
                return replace(self._nominal(clause, doer, [word, *source, *self._datives(clause)]), needs_date=True)
            if word.lower in ("дедлайн", "срок") and at <= 1 and not self._verbs(clause):
                lead = clause.free[: at + 1] + self._prepositions(clause, at)
                return self._nominal(clause, ImpliedOwner.NOBODY, lead, needs_date=True)
            ready = next((f for f in word_forms(word.lower)[:2] if f.has("ADJS") or f.has("PRTS")), None)
            will = [w for w in clause.free[:at] if w.lower in ("будет", "будут")]
            if ready and will and (ready.lemma in READY):
                return self._nominal(clause, ImpliedOwner.NOBODY, [word, *will], needs_date=True)
        return None

    def _promise(self, clause: RussianClause) -> Act | None:
        """A promise of the speaker, or one of a named person."""
        if self._sentence.is_question:
            return None
        for at, form in self._verbs(clause):
            if form.has("1per") and form.lemma not in _OTHERWISE and not self._negated(clause, at):
                act = self._first_person(clause, at, form)
                if act:
                    return act
        subject = self._subject_of(clause)
        vow = self._vow(clause, subject)
        if vow:
            return vow
        if isinstance(subject, Mention):
            return self._promise_of(clause, subject)
        return self._promise_of(clause, self._subject) if self._subject and not self._other_subject(clause) else None

    def _first_person(self, clause: RussianClause, at: int, form: WordForm) -> Act | None:
        """A verb in the first person of the future; of a process, with a date."""
        doer: Doer = ImpliedOwner.SPEAKER if form.has("sing") else ImpliedOwner.NOBODY
        infinitives = self._infinitives(clause, at)
        lead = self._subject_words(clause)
        if form.lemma in INTENDING - {"хотеть"} and infinitives:
            if infinitives[0][1].lemma in STATES | TALK:
                return None
            self._licence = doer
            return self._made(clause, doer, infinitives[0][0], [clause.free[at], *lead])
        if form.has("futr"):
            if form.lemma in HAPPENING:
                return None
            self._licence = doer
            return self._made(clause, doer, at, lead)
        if form.lemma in GOING and infinitives:
            return replace(self._made(clause, doer, infinitives[0][0], [clause.free[at], *lead]), needs_date=True)
        acts = (form.has("sing") or form.has("tran")) and form.lemma not in STATES | INTENDING and not infinitives
        return replace(self._made(clause, doer, at, lead), needs_date=True) if acts else None

    def _vow(self, clause: RussianClause, subject: Doer | None) -> Act | None:
        """«Ты обещала скинуть фотки», «обещал сестре помочь»."""
        for at, form in self._verbs(clause):
            infinitives = self._infinitives(clause, at)
            if form.lemma in VOWING and form.has("past") and infinitives and not self._negated(clause, at):
                if clause.lowers() & {"ты", "вы"}:
                    return self._made(clause, self._asked(), infinitives[0][0], clause.free[: at + 1])
                if form.has("sing") and (subject is ImpliedOwner.SPEAKER or not self._has_subject(clause)):
                    return self._made(clause, ImpliedOwner.SPEAKER, infinitives[0][0], [clause.free[at]])
        return None

    def _promise_of(self, clause: RussianClause, person: Mention | None) -> Act | None:
        if person is None:
            return None
        for at, form in self._verbs(clause):
            if self._negated(clause, at):
                continue
            infinitives = self._infinitives(clause, at)
            if form.lemma in INTENDING and infinitives and (form.has("3per") or form.has("past")):
                if form.has("past") and form.lemma in ("хотеть", "быть", "мочь", "успеть", "смочь", "суметь"):
                    continue
                self._subject = person
                return self._made(clause, person, infinitives[0][0], [clause.free[at], *self._subject_words(clause)])
            if form.has("3per", "futr") and form.lemma not in HAPPENING:
                self._subject = person
                return self._made(clause, person, at, self._subject_words(clause))
            if form.has("3per", "pres") and form.lemma not in STATES:
                return replace(self._made(clause, person, at, self._subject_words(clause)), needs_date=True)
        return None

    def _assignment(self, clause: RussianClause) -> Act | None:
        """«За мной отчёт», «на Тигране миграция», «договор на тебе», «с меня пицца»."""
        found = self._nominal_doer(clause)
        if self._sentence.is_question:
            return None
        at = next(
            (
                i
                for i, w in enumerate(clause.free)
                if reading_as(w, "NOUN", "ответственный") or reading_as(w, "ADJF", "ответственный")
            ),
            None,
        )
        if at is not None and "за" in clause.lowers():
            named = self._named_subject(clause)
            return self._nominal(clause, named, clause.free[: at + 2]) if named else None
        if found is None:
            return None
        doer, used = found
        return self._nominal(clause, doer, used)

    def _expected(self, clause: RussianClause) -> Act | None:
        """«Расписание жду от Анны к пятнице»."""
        for at, form in self._verbs(clause):
            if form.lemma in ("ждать", "ожидать") and form.has("1per") and not self._negated(clause, at):
                if source := self._source(clause):
                    return self._nominal(clause, mention_in(source[1], ("gent",)), [clause.free[at], *source])
                doer = self.addressee if isinstance(self.addressee, Mention) else ImpliedOwner.NOBODY
                if self._has_address or {"тебя", "вас"} & clause.lowers():
                    return self._nominal(clause, doer, [clause.free[at]], needs_date=True)
        return None

    def _source(self, clause: RussianClause) -> list[Word]:
        """«От Анны»: the words for the person from whom something is to come."""
        return next(([lead, w] for lead, w in pairwise(clause.free) if w.mention and lead.lower == "от"), [])

    def _enrolled(self, clause: RussianClause) -> Act | None:
        """«Запишите меня на дежурство»."""
        for at, form in self._verbs(clause):
            if form.lemma in ("записать", "вписать", "поставить") and form.has("impr") and "меня" in clause.lowers():
                lead = [clause.free[at], *(w for w in clause.free if w.lower == "меня")]
                return self._nominal(clause, ImpliedOwner.SPEAKER, [*lead, *self._prepositions(clause, at + 1)])
        return None

    def _told_plan(self, clause: RussianClause) -> Act | None:
        """«Ты завтра везёшь детей»: the present or the future of whoever is spoken to, with a date."""
        if self._sentence.is_question or not clause.lowers() & {"ты", "вы"}:
            return None
        for at, form in self._verbs(clause):
            is_state = form.lemma in STATES | TALK | HAPPENING | INTENDING
            if form.has("2per") and not is_state and not self._negated(clause, at):
                return replace(self._made(clause, self._asked(), at, self._called_words(clause)), needs_date=True)
        return None

    def _taken(self, clause: RussianClause) -> Act | None:
        """«Беру на себя торт», «возьму отчёт»."""
        for at, form in self._verbs(clause):
            onto = [w for w in clause.free if w.lower in ("себя", "работу")]
            is_past = form.has("past", "sing") and bool(onto)
            if form.lemma in ("брать", "взять") and (form.has("1per", "sing") or form.has("3per", "sing") or is_past):
                lead = [clause.free[at]]
                for word in onto:
                    lead += [clause.free[clause.free.index(word) - 1], word]
                subject: Doer | None = ImpliedOwner.SPEAKER if form.has("1per") else self._subject_of(clause)
                if subject and not self._negated(clause, at) and not self._sentence.is_question:
                    if onto:
                        return self._nominal(clause, subject, [*lead, *self._subject_words(clause)])
                    return replace(
                        self._made(clause, subject, at, self._subject_words(clause)), needs_date=form.has("pres")
                    )
        return None

    def _infinitive(self, clause: RussianClause) -> Act | None:
        """An infinitive without a finite verb: with a dative, a name, an address or a date it is to be done."""
        infinitives = self._infinitives(clause)
        if not infinitives or self._sentence.is_question or self._is_governed(clause, infinitives[0][0]):
            return None
        at = infinitives[-1][0] if infinitives[0][1].lemma == "забыть" else infinitives[0][0]
        dative, named = self._dative_doer(clause), self._named_subject(clause)
        if dative is not None:
            return self._made(clause, dative, at, self._datives(clause))
        if named:
            return self._made(clause, named, at, self._subject_words(clause))
        if clause.joint == "и" and self._licence:
            return self._made(clause, self._licence, at, [])
        return self._bare_infinitive(clause, at)

    def _bare_infinitive(self, clause: RussianClause, at: int) -> Act | None:
        if self._has_address:
            return self._made(clause, self._asked(), at, self._called_words(clause))
        firsts = [word_forms(word.lower)[0] for word in clause.free[:at]]
        if any(form.has("NOUN", "nomn") and not form.has("accs") for form in firsts):
            return None
        return replace(self._made(clause, self._licence or ImpliedOwner.SPEAKER, at, []), needs_date=True)

    def _is_governed(self, clause: RussianClause, at: int) -> bool:
        """Check for a finite verb or another predicate, which an infinitive then belongs to."""
        finite = any(not form.has("INFN") for _, form in self._verbs(clause))
        predicates = ("PRED", "ADJS", "PRTS", "COMP")
        firsts = [word_forms(word.lower)[0] for word in clause.free if word.lower not in NEED]
        return finite or self._negated(clause, at) or any(form.has(kind) for form in firsts for kind in predicates)

    def _named_place(self, clause: RussianClause) -> Act | None:
        """«Эльдар на разгрузку к 9»: a name, where to, until when, and no verb."""
        subject: Doer | None = self._named_subject(clause)
        first = next(iter(clause.free), None)
        is_dative = subject is None and first is not None and first.lower == "мне"
        if self._verbs(clause) or self._sentence.is_question:
            return None
        if is_dative or (first and first.lower == "я"):
            subject = ImpliedOwner.SPEAKER
        if subject is None:
            return None
        if any(
            form.has("ADJS") or form.has("PRED") or form.has("PRTS")
            for w in clause.free
            for form in word_forms(w.lower)[:1]
        ):
            return None
        end = subject.end if isinstance(subject, Mention) else first.end if first else 0
        after = self._text[end : end + 3]
        is_heading = bool(re.match(r"\s*[:—–]|\s-\s", after))
        accusative = any(
            word.lower in ("на", "в", "за", "к") and (is_noun_in(following, "accs") or is_noun_in(following, "datv"))
            for word, following in pairwise(clause.free)
        )
        if is_heading or accusative:
            in_parallel = is_heading and len(re.findall(r"[—–]|\s-\s", self._text)) > 1
            lead = [*self._datives(clause), *self._subject_words(clause)]
            return replace(self._nominal(clause, subject, lead), needs_date=not in_parallel)
        return None
