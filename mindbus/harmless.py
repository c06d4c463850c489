"""Foreign text that cannot do anything to a terminal."""

import unicodedata

_KEPT = "\n\t"
# Control and format characters, line separators, halves of pairs: escape sequences, reversed writing, hidden text.
_TROUBLE = {"Cc", "Cf", "Zl", "Zp", "Cs"}
# Without these, emoji fall apart, some scripts are spelled wrongly.
_JOINERS = "\u200c\u200d"


def harmless(text: str) -> str:
    """The same with everything spelled out that a terminal would obey rather than show."""
    return "".join(map(_harmless, text.replace("\r\n", "\n")))


def _harmless(character: str) -> str:
    if character in _KEPT or character in _JOINERS or unicodedata.category(character) not in _TROUBLE:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
