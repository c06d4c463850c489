"""The text of a model's answer, out of the thoughts, the fence and the chatter around it."""

import re
from collections import Counter

_DOTS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", _DOTS)
# Some templates open the thoughts in the prompt, so that only their end is in the answer.
_END_OF_THOUGHTS = re.compile(r"\A(?:(?!<think).)*?^\s*</think(?:ing)?>[ \t]*$", _DOTS)
_THINKING, _END_OF_THINKING = ("<think>", "<thinking>"), re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_LONGEST_TAG = len("</thinking>")
_FENCED = re.compile(
    r"\A(?P<before>.*?)^(?P<fence>`{3,}|~{3,})[ \t]*(?P<kind>[a-z]*)[ \t]*\n"
    r"(?P<text>.*?)\n?^(?P=fence)[ \t]*$(?P<after>.*)\Z",
    _DOTS,
)
_OPEN_FENCE = re.compile(r"\A\s*(?:`{3,}|~{3,})[ \t]*(?:markdown|md|text|txt)?[ \t]*\n(?!.*^(?:`{3,}|~{3,}))", _DOTS)
# Of the blocks in which a prompt has its material, and small models put their answers, too.
_MATERIAL_TAGS = re.compile(
    r"\A(?:\s*<present>.*?</present>)+|\A\s*<material\b[^>\n]*>|</material>\s*\Z", re.IGNORECASE | re.DOTALL
)
_PROSE = frozenset({"", "markdown", "md", "text", "txt"})
_MOST_CHATTER_WORDS = 30
_SHORTEST_OVERLAP, _LONGEST_OVERLAP = 12, 400
# Shorter ones, such as the rules of a table, come again in any text.
_SHORTEST_UNIT_CHARS = 12
_UNIT_END = re.compile(r"(?<=[.!?…])[ \t]+|\n")
_LIST_MARK = re.compile(r"\A\s*(?:[-*+•–—>]|\d{1,4}[.)])\s+")
_STALE_UNITS = 24


def without_thoughts(text: str) -> str:
    """The answer after what the model thought aloud before it; thoughts without an end leave nothing."""
    for pattern in (_THOUGHTS, _END_OF_THOUGHTS):
        if found := pattern.match(text):
            return text[found.end() :].strip()
    return text.strip()


class ThoughtFilter:
    """Leaves out of an answer that comes in pieces what the model thinks aloud before it.

    Thoughts that the prompt has opened begin like an answer: they are shown until `after_unopened` sees their end. To
    hold every answer back for that would show none before it is whole. `has_thoughts`: it has had some, or cannot.
    """

    def __init__(self) -> None:
        self._held, self.has_thoughts, self._has_answered = "", False, False

    def take(self, piece: str) -> str:
        """Return what can be shown now: nothing while the answer may begin with thoughts, or they go on."""
        if self._has_answered:
            return piece
        self._held += piece
        begins = self._held.lstrip().lower()
        if not self.has_thoughts:
            if any(tag.startswith(begins) for tag in _THINKING):
                return ""
            self.has_thoughts = begins.startswith(_THINKING)
        if self.has_thoughts:
            found = _END_OF_THINKING.search(self._held)
            if found is None:
                self._held = self._held[-_LONGEST_TAG:]
                return ""
            if not (rest := self._held[found.end() :].lstrip()):
                return ""
            self._held = rest
        self._has_answered, shown, self._held = True, self._held, ""
        return shown

    def after_unopened(self, text: str, *, is_whole: bool) -> str | None:
        """The answer so far behind thoughts of which it has only the end; None where it has none, or none as yet."""
        if self.has_thoughts or "</think" not in text.lower() or (found := _END_OF_THOUGHTS.match(text)) is None:
            return None
        # Until the answer goes on below it, the tag may be a word of its line.
        said = text[found.end() :].lstrip()
        self.has_thoughts = bool(said) or is_whole
        return said if self.has_thoughts else None


def without_fence(text: str) -> str:
    """The text in the only fence of an answer, without a line or two of chatter around it.

    A text with code in it stays as it is: the fence is then neither of prose nor around nearly all of it.
    """
    found = _FENCED.match(text)
    if found is None:
        return _OPEN_FENCE.sub("", text).strip()
    chatter = f"{found['before']} {found['after']}"
    if found["kind"].lower() not in _PROSE or found["fence"][:3] in found["after"]:
        return text
    is_labelled = bool(found["kind"]) or not chatter.strip()
    most_words = min(_MOST_CHATTER_WORDS, len(found["text"].split()))
    return found["text"].strip() if is_labelled and len(chatter.split()) <= most_words else text


def without_material_tags(text: str) -> str:
    """The text without a tag of the prompt's own before or after it."""
    return _MATERIAL_TAGS.sub("", text).strip()


def joined(text: str, more: str) -> str:
    """A text with its continuation, without what the continuation says again of the text's end."""
    for length in range(min(len(text), len(more), _LONGEST_OVERLAP), _SHORTEST_OVERLAP - 1, -1):
        if text.endswith(more[:length]):
            return text + more[length:]
    return text + more


class RepetitionWatch:
    """Notices that an answer goes round in circles, as small models do up to their token limit, while it is written.

    A unit is a line or a sentence, without the mark or number of a list before it. The answer goes round once the last
    24 units have each been there twice before; code, which may well repeat itself, does not count.
    """

    def __init__(self) -> None:
        self.goes_round = False
        # Length of the text up to the end of the last unit that was new.
        self.fresh_chars = 0
        self._seen: Counter[str] = Counter()
        self._stale = self._read = 0
        self._unit, self._is_code = "", False

    def read(self, text: str) -> None:
        """Take the next piece of the answer."""
        start = len(self._unit)
        self._unit += text
        while end := _UNIT_END.search(self._unit, start):
            self._take(self._unit[: end.start()])
            self._read += end.end()
            self._unit, start = self._unit[end.end() :], 0

    def _take(self, unit: str) -> None:
        self._is_code ^= unit.lstrip().startswith(("```", "~~~"))
        words = _LIST_MARK.sub("", unit).strip().casefold()
        if self._is_code or len(words) < _SHORTEST_UNIT_CHARS:
            return
        self._stale = self._stale + 1 if self._seen[words] > 1 else 0
        if not self._seen[words]:
            self.fresh_chars = self._read + len(unit)
        self._seen[words] += 1
        self.goes_round = self.goes_round or self._stale >= _STALE_UNITS
