"""Clauses of an English sentence, its people, and who is spoken to in it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agents.people import Mention
from agents.syntax.clauses import Doer, Sentence, Word
from agents.syntax.english_grammar import (
    ADDRESSES,
    ADVERBS,
    ANYBODY,
    BREAKING,
    COORDINATING,
    DATE_LEADS,
    DETERMINERS,
    FINITE,
    MOMENTS,
    NAME,
    NO_ORDER,
    OPENERS,
    POLITE,
    PRONOUNS,
    STATES,
    SUBORDINATING,
    TITLES,
    WHOSE,
)
from language.words import bases, is_base, is_past, is_third_person

_CONTRACTIONS = {
    "im": "i'm", "ive": "i've", "id": "i'd", "dont": "don't", "cant": "can't", "wont": "won't", "didnt": "didn't",
    "doesnt": "doesn't", "isnt": "isn't", "thats": "that's", "lets": "let's", "youre": "you're", "u": "you", "r": "are",
    "wouldve": "would've", "shouldve": "should've", "gotta": "gotta", "tryna": "trying to", "wanna": "want to",
    "gonna": "gonna", "needa": "need to", "cannot": "can't", "todo": "todo",
}  # fmt: skip


class MaskedWords:
    """Words as one text in small letters, with marks for names and contractions as they are written with care."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._starts: list[tuple[int, Word]] = []
        text = ""
        for at, word in enumerate(words):
            text += " " if text else ""
            self._starts.append((len(text), word))
            following = words[at + 1].lower if at + 1 < len(words) else ""
            text += _mark(word, following)
        self.text = text

    def word_at(self, place: int) -> Word | None:
        return next((word for start, word in reversed(self._starts) if start <= place), None)

    def between(self, begin: int, stop: int) -> list[Word]:
        return [word for start, word in self._starts if begin <= start < stop]


def _mark(word: Word, following: str) -> str:
    if word.mention:
        tail = "'s" if word.lower.endswith(("'s", "’s")) else ""
        return f"{NAME}{tail}"
    if word.lower == "ill" and is_base(following):
        return "i'll"
    return _CONTRACTIONS.get(word.lower, word.lower)


class EnglishClauses:
    """Splits a sentence into clauses; names and addresses hold for what follows."""

    def __init__(self, sentence: Sentence, addressee: Doer | None, named: Mention | None = None) -> None:
        self._sentence, self._text = sentence, sentence.text
        self.addressee, self.named = addressee, named
        self.words = self._with_names()
        self._doer: Doer | None = None
        self._called: Mention | None = None

    def _with_names(self) -> list[Word]:
        """Words, where those that are written and stand as names count as people, each person as one word."""
        words = list(self._sentence.words)
        for at, word in enumerate(words):
            if word.lower in ADDRESSES and word.mention and not word.mention.user_id:
                words[at] = replace(word, mention=None)
            if word.mention or word.is_date or word.is_quoted or not self._may_be_name(words, at):
                continue
            bare = re.sub(r"['’]s?$", "", word.text)
            words[at] = replace(word, mention=Mention(word.start, word.start + len(bare), bare))
        people: list[Word] = []
        for word in words:
            while people and self._text[people[-1].end : word.start] in (" ", ". "):
                joined = _one_person(people[-1], word)
                if joined is None:
                    break
                people.pop()
                word = joined
            people.append(word)
        return people

    def _may_be_name(self, words: Sequence[Word], at: int) -> bool:
        word = words[at]
        bare = re.sub(r"['’]s?$", "", word.text)
        if self._text[max(0, word.start - 1) : word.start] == "@":
            return True
        if (
            not re.fullmatch(r"[A-Z][a-z]+(?:-[A-Z][a-z]+)?", bare)
            or word.lower in PRONOUNS | FINITE | DETERMINERS | OPENERS | ADDRESSES | TITLES | WHOSE | ADVERBS
        ):
            return False
        if (
            word.lower in COORDINATING | SUBORDINATING | NO_ORDER | ANYBODY
            or "n't" in word.lower
            or (is_past(bare.lower()) and bare.lower() in bases())
        ):
            return False
        opens = not self._text[: word.start].strip(" \"'“‘(-–—") or self._text[: word.start].rstrip()[-1:] in ".!?:"
        return not opens or (not is_base(bare.lower()) and self._acts_as_person(words, at))

    def _acts_as_person(self, words: Sequence[Word], at: int) -> bool:
        """Check what follows a capitalised word at the beginning: only people are spoken to or are to do things."""
        word = words[at]
        following = self._text[word.end : word.end + 1]
        after = words[at + 1] if at + 1 < len(words) else None
        if following == "," or word.lower.endswith("'s") or after is None:
            return following == "," or word.lower.endswith("'s")
        if after.lower == "and":
            return any(each.mention or each.lower in ("me", "i") for each in words[at + 2 : at + 3])
        if after.lower in ADDRESSES:
            return True
        if (
            after.lower in ("is", "has", "was", "isn't", "hasn't")
            or is_third_person(after.lower)
            or after.lower.removesuffix("s") in STATES - {"work"}
        ):
            return True
        if _NOUN.search(word.lower):
            return False  # "Timesheets will…", "Maintenance to be paid"
        return (
            after.lower
            in (
                "can",
                "could",
                "please",
                "pls",
                "kindly",
                "don't",
                "you",
                "you're",
                "u",
                "ur",
                "will",
                "to",
                "must",
                "said",
            )
            or is_past(after.lower)
            or (is_base(after.lower) and after.lower not in STATES)
        )

    def _split(self) -> Iterator[tuple[list[Word], str]]:
        part: list[Word] = []
        joint, last_end = "", 0
        words = self.words
        for at, word in enumerate(words):
            gap = self._text[last_end : word.start]
            is_stop = bool(re.search(r"[,;:()!?…—–]|\s-\s|\.\s", gap))
            joins = word.lower in COORDINATING and not word.is_quoted and self._begins_clause(words, at + 1)
            names_moment = [each.lower for each in words[at : at + 2]] in MOMENTS and self._begins_clause(words, at + 2)
            subordinates = self._subordinates(words, at)
            is_stop = is_stop and not self._is_only_date(words, at)
            joins = joins and not all(each.mention or each.lower == "me" for each in part)
            if part and (is_stop or joins or names_moment or subordinates):
                yield part, joint
                part, joint = [], gap.strip() or word.lower
            if not part and word.lower in COORDINATING:
                joint = word.lower
                last_end = word.end
                continue
            part.append(word)
            last_end = word.end
        if part:
            yield part, joint

    def _is_only_date(self, words: Sequence[Word], at: int) -> bool:
        """Check for a date set off by a comma: "…, before 5", "…, starting Friday"."""
        rest: list[Word] = []
        for word in words[at:]:
            if rest and re.search(r"[,;:()!?…—–]", self._text[rest[-1].end : word.start]):
                break
            rest.append(word)
        others = {word.lower for word in rest if not word.is_date}
        return self._text[rest[-1].end :][:1] != ":" and len(others) < len(rest) and others <= _DATE_WORDS

    def _subordinates(self, words: Sequence[Word], at: int) -> bool:
        """Check whether a conjunction begins a clause; in "it would be good if you came" it asks."""
        asking = ("be", "mind", "love", "appreciate", "ask", "text", "ring", "with")
        polite = at > 1 and words[at].lower == "if" and words[at - 2].lower in asking
        return (
            words[at].lower in BREAKING
            and not words[at].is_quoted
            and not polite
            and self._begins_clause(words, at + 1)
        )

    def _begins_clause(self, words: Sequence[Word], at: int) -> bool:
        """Check whether a clause begins at a word: a subject, or a verb whose subject is the one before."""
        rest = [word for word in words[at : at + 3] if word.lower not in ADVERBS]
        if not rest:
            return False
        first, following = rest[0], rest[1].lower if len(rest) > 1 else ""
        is_subject = first.lower in PRONOUNS | ANYBODY or re.match(r"(?:i|we|you|he|she|they|it)'", first.lower)
        names = bool(first.mention) and (
            following in FINITE | {"to", "can", "please", "pls", "needs", "you"} or first.lower.endswith("'s")
        )
        is_verb = (is_base(first.lower) and not first.is_date) or first.lower in (
            "can",
            "could",
            "please",
            "pls",
            "will",
            "gotta",
        )
        return (
            bool(is_subject)
            or names
            or is_verb
            or (first.lower in ("the", "my", "our") and bool({each.lower for each in words[at : at + 6]} & FINITE))
        )

    def _without_address(self, words: list[Word], parts: Sequence[tuple[list[Word], str]]) -> list[Word]:
        """The clause without openers and without the name of whoever is spoken to, who is remembered."""
        while words and not words[0].mention and (words[0].lower in OPENERS or self._is_address(words)):
            if words[0].lower in ANYBODY or (words[0].lower in ADDRESSES and words[0].lower.endswith("s")):
                self.addressee = None
            words = words[1:]
        free = [word for word in words if not word.is_date]
        is_called = free and free[0].mention and all(word.lower in ADDRESSES for word in free[1:])
        if is_called and not free[0].lower.endswith("'s") and len(parts) > 1:
            self.addressee = self._called = free[0].mention
            return [word for word in words if word.is_date]
        if len(words) > 2 and words[0].mention and self._is_address(words):
            self.addressee = words[0].mention
            return self._without_address(words[1:], parts)
        last = words[-1] if words else None
        if last and last.lower in ADDRESSES and len(words) > 2 and words[-2].is_date:
            words = words[:-1]
        elif last and last.mention and len(words) > 2:
            before = words[-2]
            gap = self._text[before.end : last.start]
            if before.is_date or "," in gap:
                self.addressee = last.mention
                words = words[:-1]
        return words

    def _is_address(self, words: Sequence[Word]) -> bool:
        """Check whether a clause begins with whom it speaks to, by what follows: "Mitchell you're driving"."""
        first = words[0]
        second, third = [*(each.lower for each in words[1:3]), "", ""][:2]
        if first.lower.endswith("'s") or (not first.mention and first.lower not in ADDRESSES):
            return False
        if len(words) == 1 or self._text[first.end : first.end + 1] in (",", ":"):
            return True
        is_asked = second in ("can", "could", "would", "will", "don't", "do") and third in ("you", "u", "not", "forget")
        is_one = first.mention or not first.lower.endswith("s")
        is_order = is_base(second) and second not in STATES and bool(is_one or second in ("bring", "send"))
        return is_asked or is_order or second in _SPOKEN_TO or (not first.mention and second in DETERMINERS - {"to"})


_DATE_WORDS = DATE_LEADS | POLITE | {"the", "latest", "max"}
_SPOKEN_TO = frozenset(
    ("you", "u", "you're", "youre", "ur", "your", "you'll", "you've", "pls", "please", "plz", "kindly", "let")
)
# Endings of things, which people's names do not have.
_NOUN = re.compile(r"(?:tion|ment|ness|ings?|ity|ship|age|[^aeiou's]s)$")


def _one_person(first: Word, second: Word) -> Word | None:
    """Two words that name one person: "Sam Okoro", "Uncle Femi", "our Craig"."""
    if not second.mention or first.is_date or first.lower.endswith("'s"):
        return None
    name, user_id = second.mention.name, second.mention.user_id
    if first.mention and first.mention.user_id != user_id:
        name, user_id = (name, user_id) if user_id else (first.mention.name, first.mention.user_id)
    elif first.mention or first.lower in TITLES:
        name = name if user_id else f"{first.mention.name if first.mention else first.text.capitalize()} {name}"
    elif first.lower not in WHOSE:
        return None
    return replace(second, start=first.start, mention=Mention(first.start, second.mention.end, name, user_id))
