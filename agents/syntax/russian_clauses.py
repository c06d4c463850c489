"""Clauses of a Russian sentence, who is spoken to in it, and who does what they tell of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

from agents.people import Mention, name_in
from agents.syntax.clauses import Doer, ImpliedOwner, Sentence, Word
from agents.syntax.russian_words import (
    BETWEEN,
    COORDINATING,
    DATE_LEADS,
    DATIVE,
    FILLERS,
    GROUPS,
    NEED,
    POLITE,
    RESTING,
    SUBORDINATING,
    first_named,
    has_case,
    is_nominative,
    is_person,
    is_preposition,
    is_thing,
    may_be_person,
    may_be_subject,
    mention_in,
    verb_of,
    with_names,
)
from language.russian import WordForm, word_forms
from language.words import has_cyrillic


@dataclass
class RussianClause:
    """Words between two joints; `joint` is what stands before the first."""

    words: list[Word]
    joint: str
    is_subordinate: bool = False

    @property
    def start(self) -> int:
        return self.words[0].start

    @property
    def end(self) -> int:
        return self.words[-1].end

    @cached_property
    def free(self) -> list[Word]:
        """Words that are neither dates, with what leads to them, nor quoted speech."""
        nexts = [*self.words[1:], None]
        return [
            word
            for word, after in zip(self.words, nexts, strict=True)
            if not (word.is_date or word.is_quoted or (after and after.is_date and word.lower in DATE_LEADS))
        ]

    def lowers(self) -> set[str]:
        return {word.lower for word in self.free}


class ClauseReader:
    """Splits a sentence; an address, a subject or a licence to ask holds for what follows."""

    def __init__(self, sentence: Sentence, addressee: Doer | None, named: Mention | None = None) -> None:
        self._sentence, self._text = replace(sentence, words=with_names(sentence.words)), sentence.text
        self.addressee: Doer | None = addressee
        self.named = named
        self._has_address = False
        self._subject: Mention | None = None
        self._licence: Doer | None = None
        self._wants = False
        self._kin: Word | None = None

    def _split(self) -> Iterator[RussianClause]:
        pending: RussianClause | None = None
        segments = self._segments()
        for segment, following in zip_longest(segments, segments[1:]):
            is_heading = following is not None and bool(_DASH.search(following.joint))
            after_dash = bool(_DASH.search(segment.joint)) and pending is not None
            if after_dash and pending and not any(verb_of(word) for word in pending.free):
                pending = RussianClause([*pending.words, *segment.words], pending.joint, pending.is_subordinate)
            elif len(segments) > 1 and not is_heading and self._is_address(segment):
                self._take_address(segment)
            elif pending is None:
                pending = segment
            elif self._ends_before(pending, segment) or _is_gapped(pending, segment):
                yield pending
                pending = segment
            else:
                pending = RussianClause([*pending.words, *segment.words], pending.joint, pending.is_subordinate)
        if pending is not None:
            yield pending

    def _ends_before(self, pending: RussianClause, segment: RussianClause) -> bool:
        if self._stands_alone(segment) and self._stands_alone(pending):
            return True
        if segment.is_subordinate:
            return self._stands_alone(pending)
        return pending.is_subordinate and segment.joint != "и" and self._stands_alone(segment)

    def _segments(self) -> list[RussianClause]:
        segments: list[RussianClause] = []
        last_end = 0
        for word in self._sentence.words:
            gap = self._text[last_end : word.start]
            is_joint = bool(BETWEEN.search(gap)) if segments else False
            is_conjunction = word.lower in COORDINATING and not word.is_quoted and not word.is_date
            opens = word.lower in SUBORDINATING and (is_joint or not segments or word.lower in ("если", "чтобы"))
            if not segments or is_joint or is_conjunction or (opens and segments[-1].words):
                joint = "и" if is_conjunction and not is_joint else gap.strip(" ,") or word.lower
                is_preposed = opens and not (word.lower == "что" and self._sentence.is_question)
                segments.append(RussianClause([word], joint, is_preposed))
            else:
                segments[-1].words.append(word)
            last_end = word.end
        return segments

    def _stands_alone(self, clause: RussianClause) -> bool:
        if any(verb_of(word) for word in clause.free) or clause.lowers() & NEED:
            return True
        if any(
            form.has("PRED") or form.has("ADJS") or form.has("PRTS")
            for w in clause.free
            for form in word_forms(w.lower)[:1]
        ):
            return True
        if [word.lower for word in clause.words] == ["я"]:
            return True
        return self._nominal_doer(clause) is not None or self._named_subject(clause) is not None

    def _is_address(self, clause: RussianClause) -> bool:
        rest = [word for word in clause.free if word.lower not in POLITE and word.lower not in FILLERS]
        if not clause.free or any(word.is_date for word in clause.words):
            return False
        if not rest:
            return False
        if len(rest) == 1 and rest[0].lower in GROUPS:
            return True
        if len(rest) > 2 or any(word.lower in GROUPS for word in rest):
            return all(word.lower in GROUPS or word.mention for word in rest)
        orders = any((form := verb_of(each)) and form.has("impr") for each in self._sentence.words)
        return all(self._called(word) or (orders and is_person(word)) for word in rest)

    def _called(self, word: Word) -> Mention | None:
        """The person whom a word that stands alone calls."""
        if word.mention:
            is_short = any(form.has("Name", "gent", "plur") for form in word_forms(word.text.lower()))  # «Серёж»
            return word.mention if not has_cyrillic(word.text) or is_nominative(word) or is_short else None
        forms = word_forms(word.text.lower()) if has_cyrillic(word.text) else ()
        named = sum(
            form.score
            for form in forms
            if form.has("Name") and (form.has("nomn") or form.has("voct") or form.has("gent", "plur"))
        )
        is_capital = word.text[:1].isupper() and word.start > 0
        is_noun = not forms or any(form.has("NOUN", "nomn") or form.has("ADJF", "nomn") for form in forms)
        if named >= 0.3 or (is_capital and is_noun):
            name = name_in(word.lower) if named else word.text
            return Mention(word.start, word.end, name)
        return None

    def _take_address(self, clause: RussianClause) -> None:
        self._has_address = True
        called = [word for word in clause.free if word.lower not in POLITE and word.lower not in FILLERS]
        person = next((self._called(word) for word in called if word.lower not in GROUPS), None)
        if person:
            self.addressee = person
        elif not isinstance(self.addressee, Mention):
            self.addressee = ImpliedOwner.NOBODY

    def _find_address(self, clause: RussianClause) -> None:
        """An address without a comma: «Рустам забери…», «Оль по макетам…»."""
        first = next(iter(clause.free), None)
        if first is None or clause.start != first.start:
            return
        following = clause.free[1] if len(clause.free) > 1 else None
        if first.lower in GROUPS and following and (form := verb_of(following)) and form.has("impr"):
            self._has_address, self._kin = True, first
        asks = any((form := verb_of(word)) and (form.has("impr") or form.has("2per")) for word in clause.free[1:4])
        is_vocative = has_cyrillic(first.text) and any(form.has("Name", "voct") for form in word_forms(first.lower))
        if following and (self._called(first) if (first.mention or is_vocative) else None) and (asks or is_vocative):
            called = self._called(first)
            if called:
                self.addressee, self._has_address = called, True

    def _verbs(self, clause: RussianClause) -> list[tuple[int, WordForm]]:
        return [(at, form) for at, word in enumerate(clause.free) if (form := verb_of(word))]

    def _infinitives(self, clause: RussianClause, after: int = -1) -> list[tuple[int, WordForm]]:
        return [(at, form) for at, form in self._verbs(clause) if at > after and form.has("INFN")]

    def _negated(self, clause: RussianClause, at: int) -> bool:
        return any(word.lower in ("не", "ни", "нельзя") for word in clause.free[max(0, at - 1) : at])

    def _asked(self) -> Doer:
        return self.addressee or ImpliedOwner.NOBODY

    def _called_words(self, clause: RussianClause) -> list[Word]:
        called = [word for word in clause.free[:2] if word.lower in ("ты", "вы") or word is self._kin]
        if isinstance(self.addressee, Mention):
            called += [word for word in clause.free if word.start == self.addressee.start]
        return called

    def _subject_of(self, clause: RussianClause) -> Doer | None:
        if "я" in clause.lowers():
            return ImpliedOwner.SPEAKER
        if "мы" in clause.lowers():
            return ImpliedOwner.NOBODY
        named = self._named_subject(clause)
        if named or not clause.lowers() & {"он", "она"}:
            return named
        return first_named(clause.free) or self.named

    def _named_subject(self, clause: RussianClause) -> Mention | None:
        """A name in the nominative; a Latin one where a verb or a dash follows or it opens the clause."""
        for at, word in enumerate(clause.free):
            before = clause.free[at - 1].lower if at else ""
            if word.mention is None and not may_be_person(word, at):
                continue
            if has_cyrillic(word.text):
                if word.mention and is_nominative(word) and not is_preposition(before):
                    return word.mention
            elif not is_preposition(before):
                return word.mention or Mention(word.start, word.end, word.text)
        return None

    def _other_subject(self, clause: RussianClause) -> bool:
        """A pronoun or a noun that does what the clause tells of."""
        if clause.lowers() & {"он", "она", "оно", "они", "я", "мы", "ты", "вы", "кто", "это"}:
            return clause.joint != "и" or bool(clause.lowers() & {"я", "мы", "ты", "вы"})
        return False

    def _has_subject(self, clause: RussianClause) -> bool:
        """Check for a noun or a pronoun in the nominative."""
        return any(is_nominative(word) if word.mention else may_be_subject(word) for word in clause.free)

    def _subject_words(self, clause: RussianClause) -> list[Word]:
        start = named.start if (named := self._named_subject(clause)) else -1
        return [w for w in clause.free if w.lower in ("я", "мы", "он", "она") or w.start == start]

    def _datives(self, clause: RussianClause) -> list[Word]:
        return [word for word in clause.free if word.lower in DATIVE]

    def _dative_doer(self, clause: RussianClause) -> Doer | None:
        pronoun = next((word for word in clause.free if word.lower in DATIVE), None)
        if pronoun:
            return self._asked() if pronoun.lower in ("тебе", "вам") else DATIVE[pronoun.lower]
        first = next(iter(clause.free), None)
        if (
            first
            and first.mention
            and has_cyrillic(first.text)
            and has_case(first, "datv")
            and not is_nominative(first)
        ):
            return mention_in(first, ("datv",))
        return None

    def _nominal_doer(self, clause: RussianClause) -> tuple[Doer, list[Word]] | None:
        verbs = [(at, form) for at, form in self._verbs(clause) if not form.has("INFN")]
        if any(form.lemma not in RESTING for _, form in verbs):
            return None
        for at, (lead, word) in enumerate(zip(clause.free, clause.free[1:], strict=False)):
            case = {"на": ("loct",), "за": ("ablt",), "с": ("gent",), "со": ("gent",)}.get(lead.lower)
            if case is None:
                continue
            doer: Doer | None = None
            pair = f"{lead.lower} {word.lower}"
            if pair in ("на мне", "за мной", "с меня"):
                doer = ImpliedOwner.SPEAKER
            elif pair in ("на тебе", "за тобой", "с тебя", "на вас", "с вас"):
                doer = self._asked()
            elif word.mention and (not has_cyrillic(word.text) or has_case(word, *case)):
                is_last = at + 2 >= len(clause.free)
                if lead.lower not in ("с", "со") or at == 0:
                    doer = mention_in(word, case) if at == 0 or is_last or verbs else None
            if doer is not None:
                rest = [clause.free[i] for i, form in verbs]
                return doer, [lead, word, *rest]
        return None


_DASH = re.compile(r"[—–]|\s-\s")


def _is_gapped(pending: RussianClause, segment: RussianClause) -> bool:
    """«В понедельник отчёт сдать, в среду презентацию»: another day, another thing, the same verb."""
    return (
        any(word.is_date for word in pending.words)
        and segment.words[0].is_date | (len(segment.words) > 1 and segment.words[1].is_date)
        and any(verb_of(word) for word in pending.free)
        and any(is_thing(word) for word in segment.free)
    )
