"""Requests in Russian clauses: imperatives, reminders, commissions, wishes, questions whether one will."""

from collections.abc import Iterator, Sequence

from agents.people import Mention
from agents.syntax.clauses import Act, Doer, ImpliedOwner, Word, without_spans
from agents.syntax.russian_clauses import ClauseReader, RussianClause
from agents.syntax.russian_words import (
    ANYBODY,
    ASKING,
    DATE_LEADS,
    DEMANDING,
    FILLERS,
    HAPPENING,
    LOOKING,
    POLITE,
    TALK,
    is_nominative,
    is_noun_in,
    is_thing,
    mention_in,
    verb_of,
)
from language.russian import WordForm
from language.words import has_cyrillic


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
        named = [w for w in clause.free if isinstance(doer, Mention) and w.start == doer.start]
        spans = list(self._spans(clause, [*dropped, *negation, *named, verb]))
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


# With these a question asks to know, not to do.
_ASKED_FOR = frozenset(("как", "зачем", "почему", "когда", "что", "кто", "где", "сколько"))


class RequestReader(ActReader):
    """Finds what somebody is asked for."""

    def _reminder(self, clause: RussianClause) -> Act | None:
        """«Напомни мне завтра позвонить маме», «не забыть бы купить хлеб»."""
        for at, form in self._verbs(clause):
            is_reminder = form.lemma in ("напомнить", "напоминать") and form.has("impr")
            forgets = form.lemma in ("забыть", "забывать", "забыться") and self._negated(clause, at)
            if not (is_reminder or (forgets and (form.has("impr") or form.has("INFN")))):
                continue
            after = clause.free[at + 1] if at + 1 < len(clause.free) else None
            doer: Doer = ImpliedOwner.SPEAKER
            if is_reminder and after and after.mention:
                doer = mention_in(after, ("datv",))
            elif forgets and (isinstance(self.addressee, Mention) or form.has("plur")):
                doer = self._asked()
            self._licence = doer
            lead = [clause.free[i] for i in range(max(0, at - 1), at + 1)]
            infinitives = [each for each in self._infinitives(clause) if each[0] != at]
            if infinitives:
                return self._made(clause, doer, infinitives[-1][0], [*lead, *self._datives(clause)])
            return self._nominal(clause, doer, [*lead, *self._datives(clause), *self._prepositions(clause, at)])
        return None

    def _commission(self, clause: RussianClause) -> Act | None:
        """«Попроси Марию прислать акты», «поручаю Глебу проверить»."""
        for at, form in self._verbs(clause):
            named = next((word for word in clause.free[at + 1 :] if word.mention), None)
            infinitives = self._infinitives(clause, at)
            if form.lemma in ASKING and named and not self._negated(clause, at):
                doer = mention_in(named, ("datv", "accs", "gent"))
                if infinitives:
                    return self._made(clause, doer, infinitives[-1][0], [clause.free[at], named])
                if form.lemma.startswith("поруч"):
                    return self._nominal(clause, doer, [clause.free[at], named])
        return None

    def _asked_for(self, clause: RussianClause) -> Act | None:
        """«Начальство требует сдать табели», «бабушка просит заехать»."""
        for at, form in self._verbs(clause):
            infinitives = self._infinitives(clause, at)
            if form.lemma in DEMANDING and (form.has("3per") or form.has("past")) and infinitives:
                # «Мама просила забрать посылку» means the speaker, «начальство требует» whomever it is of.
                me = clause.lowers() & {"меня", "мне"} or (
                    form.has("sing") and form.lemma in ("просить", "попросить", "велеть")
                )
                if self._negated(clause, at) or self._sentence.is_question or infinitives[0][1].lemma == "передать":
                    continue
                return self._made(
                    clause,
                    ImpliedOwner.SPEAKER if me else ImpliedOwner.NOBODY,
                    infinitives[0][0],
                    clause.free[: at + 1],
                )
        return None

    def _wished(self, clause: RussianClause) -> Act | None:
        """«…, чтобы Рома съездил»: the past after a wish."""
        if clause.words[0].lower not in ("чтобы", "чтоб"):
            return None
        for at, form in self._verbs(clause):
            if form.has("past", "perf") and not self._negated(clause, at):
                doer = self._named_subject(clause) or (
                    self._asked() if clause.lowers() & {"ты", "вы"} else ImpliedOwner.NOBODY
                )
                return self._made(
                    clause, doer, at, [clause.free[0], *self._subject_words(clause), *self._called_words(clause)]
                )
        return None

    def _let(self, clause: RussianClause) -> Act | None:
        """«Пусть Сергей созвонится», «давайте запустим»."""
        for at, word in enumerate(clause.free):
            verbs = [(i, form) for i, form in self._verbs(clause) if i > at and not self._negated(clause, i)]
            if word.lower in ("пусть", "пускай"):
                named = next((each for each in clause.free if each.mention and is_nominative(each)), None)
                third = [(i, f) for i, f in verbs if f.has("3per")]
                if third:
                    before = next((w for w in clause.free[:at] if w.mention and has_cyrillic(w.text)), None)
                    doer = named.mention if named and named.mention else ImpliedOwner.NOBODY
                    if before and (named is None or named is before):
                        doer = mention_in(before, ("datv", "accs"))
                    self._subject = doer if isinstance(doer, Mention) else None
                    lead = clause.free[: at + 1] if before else [word]
                    return self._made(clause, doer, third[-1][0], [*lead, *([named] if named else [])])
            if word.lower in ("давай", "давайте"):
                ours = [(i, f) for i, f in verbs if f.has("1per", "plur") or f.has("INFN")]
                if ours and ours[0][1].lemma not in TALK:
                    return self._made(clause, ImpliedOwner.NOBODY, ours[0][0], [word])
        return None

    def _request(self, clause: RussianClause) -> Act | None:
        """An imperative, or a question whether somebody will do it."""
        verbs = self._verbs(clause)
        at = next((at for at, form in verbs if self._orders(clause, at, form)), None)
        if at is None and (self._sentence.is_question or self._has_address) and not clause.lowers() & _ASKED_FOR:
            at = next((at for at, form in verbs if self._invites(clause, at, form)), None)
        if at is not None:
            return self._made(clause, self._asked(), at, self._called_words(clause))
        return self._ability(clause)

    def _orders(self, clause: RussianClause, at: int, form: WordForm) -> bool:
        """Check for an imperative that has something done; «смотри, …» only keeps up the talk."""
        if not (form.has("impr", "excl")) or self._negated(clause, at) or form.lemma in ("быть", "мочь"):
            return False
        looks = form.lemma in LOOKING and any(is_noun_in(word, "accs") for word in clause.free[at + 1 :])
        if (form.lemma in TALK and not looks) or (form.lemma in ASKING and self._infinitives(clause, at)):
            return False
        is_double = form.lemma == "брать" and any(i > at and other.has("impr") for i, other in self._verbs(clause))
        return not is_double and clause.free[at].lower not in ("давай", "давайте", "пусть")

    def _invites(self, clause: RussianClause, at: int, form: WordForm) -> bool:
        """Check for «глянешь?», «не подбросишь?»."""
        is_polite = self._sentence.is_question or not self._negated(clause, at)
        return form.has("2per", "futr") and form.lemma not in (TALK - LOOKING) | HAPPENING and is_polite

    def _ability(self, clause: RussianClause) -> Act | None:
        """«Можешь посмотреть?», «не могли бы вы прислать»."""
        infinitives = self._infinitives(clause)
        for at, form in self._verbs(clause):
            lowers = clause.lowers()
            asks = form.has("2per") and (self._sentence.is_question or self._has_address)
            politely = form.has("past") and "бы" in lowers and "не" in lowers
            if form.lemma in ("мочь", "смочь") and infinitives and (asks or politely):
                lead = [clause.free[i] for i in range(max(0, at - 1), at + 1)]
                you = [word for word in clause.free if word.lower in ("ты", "вы", "ли")]
                return self._made(clause, self._asked(), infinitives[0][0], [*lead, *you, *self._called_words(clause)])
        return None

    def _is_wish(self, clause: RussianClause) -> bool:
        """«Записаться бы к врачу», «не могли бы вы…»: said of what is to be done, not of what would be."""
        finite = [form for _, form in self._verbs(clause) if not form.has("INFN")]
        asks = any(form.lemma in ("мочь", "смочь") and form.has("past") for form in finite) and "не" in clause.lowers()
        return bool(self._infinitives(clause)) and (not finite or asks)
