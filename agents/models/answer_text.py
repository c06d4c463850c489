"""The text of a model's answer, out of the thoughts, the fence and the chatter around it."""

import re

_DOTS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", _DOTS)
# Some templates open the thoughts in the prompt, so that only their end is in the answer.
_END_OF_THOUGHTS = re.compile(r"\A(?:(?!<think).)*?^\s*</think(?:ing)?>[ \t]*$", _DOTS)
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


def without_thoughts(text: str) -> str:
    """The answer after what the model thought aloud before it; thoughts without an end leave nothing."""
    for pattern in (_THOUGHTS, _END_OF_THOUGHTS):
        if found := pattern.match(text):
            return text[found.end() :].strip()
    return text.strip()


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
