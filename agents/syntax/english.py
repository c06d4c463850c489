"""Acts that English clauses speak of: requests, promises, duties, plans, by word order and closed word classes."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agents.people import Mention
from agents.syntax.clauses import (
    HABIT,
    Act,
    ClauseSpan,
    Doer,
    ImpliedOwner,
    Sentence,
    Word,
    dates_within,
    without_spans,
    without_vague,
)
from agents.syntax.english_clauses import EnglishClauses, MaskedWords
from agents.syntax.english_grammar import (
    ADVERBS,
    AFTERTHOUGHT,
    ANYBODY,
    COORDINATING,
    DATE_LEADS,
    DETERMINERS,
    EVENTS,
    FINITE,
    FRAMES,
    HAVE_READY,
    NAME,
    NO_ORDER,
    NO_THINGS,
    OBJECTS,
    OPENERS,
    POINTING,
    POLITE,
    POLITELY,
    PRONOUNS,
    STATES,
    SUBORDINATING,
    UNREAL,
    Frame,
    is_finite,
    leads_to_date,
    may_order,
)
from language.dates.expressions import SpokenDate
from language.words import base_of, is_base, is_past, is_third_person


def find_clauses(sentence: Sentence, addressee: Doer | None = None, named: Mention | None = None) -> list[ClauseSpan]:
    """Clauses of a sentence with their acts, in order; requests without a doer are the addressee's.

    `named` is whom "she" means.
    """
    return _Reader(sentence, addressee, named).clauses()


def names_act(sentence: Sentence) -> bool:
    """Whether a sentence begins with a verb and tells nothing: "book the dentist"."""
    return bool(sentence.words) and is_base(sentence.words[0].lower)


def find_addressee(sentence: Sentence) -> Mention | None:
    """The person who is spoken to by name."""
    reader = _Reader(sentence, None)
    reader.clauses()
    return reader.addressee if isinstance(reader.addressee, Mention) else None


def find_subject(sentence: Sentence, start: int) -> Mention | None:
    """The person with whose name a clause begins at this place."""
    return next((word.mention for word in _Reader(sentence, None).words if word.start >= start), None)


def last_named(sentence: Sentence) -> Mention | None:
    """The person of whom a sentence speaks last."""
    return next((word.mention for word in reversed(_Reader(sentence, None).words) if word.mention), None)


class _Reader(EnglishClauses):
    """One pass over the clauses of a sentence."""

    def clauses(self) -> list[ClauseSpan]:
        parts = list(self._split())
        spans: list[ClauseSpan] = []
        hedged = False
        heading: tuple[SpokenDate, ...] = ()
        for words, joint in parts:
            words = self._without_address(words, parts)
            if not words:
                continue
            start, end = words[0].start, words[-1].end
            act = None if hedged and joint != "." else self._act(words, joint)
            self.named = next((word.mention for word in reversed(words) if word.mention), self.named)
            if words[0].is_date and not heading and not spans:
                # "Saturday: Ann's on drinks, I'm on music".
                heading = dates_within(self._sentence.dates, start, start + 1)
            elif act and not act.dates:
                act = replace(act, dates=heading)
            first = words[0].lower
            if first in ("if", "suppose", "imagine", "unless"):
                hedged = self._hypothetical(words)
            spans.append(ClauseSpan(start, end, act))
        spans = without_vague(spans, self._sentence)
        to = self.addressee
        if isinstance(to, Mention):
            spans = [
                replace(s, act=replace(s.act, doer=to))
                if s.act and s.act.doer is ImpliedOwner.NOBODY and s.act.is_request
                else s
                for s in spans
            ]
        return spans

    def _hypothetical(self, words: Sequence[Word]) -> bool:
        return any(
            is_past(w.lower) or w.lower in ("could", "had", "were", "was", "ever", "have", "get", "find", "can")
            for w in words
        )

    # Acts

    def _act(self, words: Sequence[Word], joint: str) -> Act | None:
        if words[0].lower in SUBORDINATING:
            return None
        free = [
            word
            for at, word in enumerate(words)
            if not (word.is_date or word.is_quoted or word.lower in POLITE or leads_to_date(words, at))
        ]
        if not free:
            return None
        masked = MaskedWords(free)
        if UNREAL.search(masked.text) and not POLITELY.match(masked.text):
            return None
        dates = dates_within(self._sentence.dates, words[0].start, words[-1].end)
        for frame in (AFTERTHOUGHT, *FRAMES):
            match = frame.pattern.match(masked.text)
            if match and (frame.asks or not self._sentence.is_question):
                act = self._act_in(frame, masked, match, words)
                if act:
                    self._doer = act.doer
                    return replace(act, dates=dates, needs_date=frame.weak)
        tells = is_past(free[-1].lower) or is_third_person(free[-1].lower)
        is_speech = tells and any(word.is_quoted for word in words)
        if not self._sentence.is_question and not is_speech and self._is_order(free, words):
            act = self._made(words, self._asked(joint), free[0], [])
            return replace(act, dates=dates, is_request=True)
        return None

    def _act_in(self, frame: Frame, masked: MaskedWords, match: re.Match[str], words: Sequence[Word]) -> Act | None:
        """The act that a clause in this word order speaks of, if its words may."""
        doer = self._doer_of(frame, masked, match)
        if doer is None:
            return None
        groups = match.groupdict()
        if frame is AFTERTHOUGHT:
            return Act(words[0].start, words[-1].end, doer, "", has_object=False, is_nominal=True)
        act = (self._verbal if groups.get("verb") else self._nominal)(frame, masked, match, words, doer)
        is_request = (frame.asks or doer is ImpliedOwner.NOBODY) and (groups.get("who") or "") not in ANYBODY
        return replace(act, is_request=is_request) if act else None

    def _verbal(
        self, frame: Frame, masked: MaskedWords, match: re.Match[str], words: Sequence[Word], doer: Doer
    ) -> Act | None:
        verb, said = masked.word_at(match.start("verb")), match["verb"]
        exempt = {"seeing": "see", "have": "have" if HAVE_READY.search(masked.text) else ""}.get(said, "")
        is_state = {said, base_of(said)} & STATES - {exempt}
        is_other = is_state or said in ADVERBS | DETERMINERS | PRONOUNS
        if verb is None or verb.mention or is_other or (frame.weak and not self._may_plan(match)):
            return None
        dropped = [word for word in words if word.start < verb.start and not word.is_date]
        if match.groupdict().get("object"):
            kept = masked.between(match.start("object"), match.end("object"))
            is_subject = kept[0].mention or kept[0].lower in PRONOUNS or is_base(kept[0].lower)
            if match.start("object") == 0 and is_subject:
                return None
            dropped = [word for word in dropped if word not in kept]
        return self._made(words, doer, verb, dropped)

    def _nominal(
        self, _: Frame, masked: MaskedWords, match: re.Match[str], words: Sequence[Word], doer: Doer
    ) -> Act | None:
        groups = match.groupdict()
        begin, stop = match.span("work") if "work" in groups else (match.end(), len(masked.text))
        kept = list(masked.between(begin, stop))
        if groups.get("tail"):
            kept += masked.between(*match.span("tail"))
        if not kept or kept[0].lower in POINTING:
            return None
        work = self._phrase(kept)
        if groups.get("tail") and kept[-1].lower.endswith("ing"):
            work = f"{base_of(kept[-1].lower)} {self._phrase(kept[:-1])}"
        has_object = any(self._is_thing(word.lower) for word in kept)
        return Act(words[0].start, words[-1].end, doer, work, has_object=has_object, is_nominal=True) if work else None

    def _may_plan(self, match: re.Match[str]) -> bool:
        """Check a verb that tells of a plan by its date: no "everything", no habit, no state."""
        verb, who = match["verb"], match.groupdict().get("who") or ""
        if verb.endswith("ing") and not is_base(verb):
            return base_of(verb) != verb
        if who in ("you", "u"):
            return is_base(verb) and verb not in NO_ORDER
        if who == "i":
            # Beside what others do: "Ann cooks, I wash up".
            return is_base(verb) and verb not in NO_ORDER and self._doer not in (None, ImpliedOwner.SPEAKER)
        return is_third_person(verb) and base_of(verb) not in EVENTS and not HABIT.search(self._text)

    def _phrase(self, kept: Sequence[Word]) -> str:
        if not kept:
            return ""
        start, end = kept[0].start, kept[-1].end
        others = [word for word in self.words if start <= word.start < end and word not in kept]
        return without_spans(self._text, start, end, self._dropped(self.words, others))

    def _doer_of(self, frame: Frame, masked: "MaskedWords", match: re.Match[str]) -> Doer | None:
        groups = match.groupdict()
        if groups.get("called"):
            called = masked.word_at(match.start("called"))
            return called.mention if called else None
        who = groups.get("for") or groups.get("who")
        if who and who.startswith(NAME) and not who.endswith(" me"):
            word = masked.word_at(match.start("for" if groups.get("for") else "who"))
            return word.mention if word else None
        return self._implied(who, bool(groups.get("for"))) if who else self._unnamed(frame, match)

    def _implied(self, who: str, is_for: bool) -> Doer:
        """The person of a pronoun."""
        if {"i", "me", "mine", "my"} & set(who.split()) or (who == "us" and is_for):
            return ImpliedOwner.SPEAKER
        if who in ("he", "she", "him", "her"):
            return self.named or ImpliedOwner.NOBODY
        return self.addressee or ImpliedOwner.NOBODY if who in ("you", "u", "yours") else ImpliedOwner.NOBODY

    def _unnamed(self, frame: Frame, match: re.Match[str]) -> Doer:
        if re.match(r"(?:will|must|should|needs|has|is) ", match[0]) and isinstance(self._called, Mention):
            return self._called  # "Anna, our lawyer, will…"
        is_own = frame.default is ImpliedOwner.SPEAKER and "forget" not in match[0]
        return ImpliedOwner.SPEAKER if is_own else (self.addressee or frame.default)

    def _asked(self, joint: str) -> Doer:
        """The addressee of an order, or whoever does the thing before it: "I'll draft it and send it"."""
        if joint in ("and", "then") and self._doer is not None:
            return self._doer
        if "note to self" in self._text.lower():
            return ImpliedOwner.SPEAKER
        return self.addressee or ImpliedOwner.NOBODY

    def _is_order(self, free: Sequence[Word], words: Sequence[Word]) -> bool:
        """Check for a verb in its base form at the beginning, with its object behind it and no subject."""
        first, following = free[0].lower, free[1] if len(free) > 1 else None
        is_habit = HABIT.match(self._text) and not is_base(first)
        if free[0].mention or is_habit or not may_order(first) or any(is_finite(word) for word in free[1:]):
            return False
        if following is None:
            return is_base(first) and len(words) > 1
        after = free[2].lower if len(free) > 2 else ""
        is_told = first.endswith("s") and not is_base(first)  # "needs them today"
        if is_told or is_past(following.lower) or (first == "let" and following.lower in ("me", "us")):
            return False
        if is_third_person(following.lower) and after in DETERMINERS:
            return False  # "rent goes up in May"
        return is_base(first) or following.lower in OBJECTS

    # Words of the act

    def _dropped(self, words: Sequence[Word], dropped: Sequence[Word]) -> list[tuple[int, int]]:
        spans = [(word.start, word.end) for word in dropped]
        for at, word in enumerate(words):
            if word.is_date or word.lower in ("please", "pls", "plz"):
                spans.append((word.start, word.end))
                lead = words[at - 1] if at else None
                if word.is_date and lead and lead.lower in DATE_LEADS:
                    spans.append((lead.start, lead.end))
        return spans

    def _made(self, words: Sequence[Word], doer: Doer, verb: Word, dropped: Sequence[Word]) -> Act:
        spans = self._dropped(words, [*dropped, verb])
        base = base_of(verb.lower)
        rest = without_spans(self._text, words[0].start, words[-1].end, spans)
        left = [w for w in words if w.start > verb.start or (w not in dropped and w is not verb)]
        has_object = any(self._is_thing(w.lower) or bool(w.mention) for w in left if not w.is_date)
        return Act(words[0].start, words[-1].end, doer, f"{base} {rest}".strip(), has_object=has_object)

    def _is_thing(self, word: str) -> bool:
        return word.lower() not in PRONOUNS | DETERMINERS | ADVERBS | OPENERS | FINITE | COORDINATING | NO_THINGS
