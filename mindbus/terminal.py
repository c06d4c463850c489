"""Escaping of text that a terminal would interpret."""

import unicodedata

_ALLOWED = "\n\t"
# Categories of control and format characters, line separators, surrogates: escape sequences, reversed or hidden text.
_UNSAFE = {"Cc", "Cf", "Zl", "Zp", "Cs"}
# Zero-width joiners: emoji and some scripts need them.
_JOINERS = "\u200c\u200d"


def escape_controls(text: str) -> str:
    """The text with control and format characters as backslash escapes."""
    if text.isprintable():
        return text
    return "".join(map(_escape, text.replace("\r\n", "\n")))


def _escape(character: str) -> str:
    if character in _ALLOWED or character in _JOINERS or unicodedata.category(character) not in _UNSAFE:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
