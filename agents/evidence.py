"""Whether a text bears out what a model says of it."""

import re
from collections.abc import Iterable, Mapping

from agents.salience import coverage
from agents.text import terms, words
from bus_schema.dialogue import DialogueMessage

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ENOUGH = 0.6
_EVENLY: Mapping[str, float] = {}


def said_in(quote: str, messages: Iterable[DialogueMessage]) -> bool:
    """Whether one of the messages says these very words; a piece without words, such as 😡, has to stand there."""
    wanted = _bare(quote)
    return any(
        f" {wanted} " in f" {_bare(each.content or '')} "
        if wanted
        else bool(quote.strip()) and quote in (each.content or "")
        for each in messages
    )


def quoted_in(quote: str, messages: Iterable[DialogueMessage], message_id: str) -> DialogueMessage | None:
    """The message that says these very words; marks and spaces may differ."""
    wanted = _bare(quote)
    named = next((each for each in messages if each.message_id == message_id), None)
    return named if named and wanted and said_in(quote, [named]) else None


def borne_out(claim: str, by: str) -> bool:
    """Whether most of a claim's words, all of its numbers are in a text."""
    if not set(_NUMBER.findall(claim)) <= set(_NUMBER.findall(by)):
        return False
    return coverage(terms(claim), terms(by), _EVENLY) >= _ENOUGH


def _bare(text: str) -> str:
    return " ".join(words(text.lower().replace("ё", "е")))
