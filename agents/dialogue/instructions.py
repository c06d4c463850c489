"""What the dialogue agent is told to tell a user (spec 004 §5.2)."""

from agents.text import Language, language_of
from bus_schema.dialogue import HIDDEN_MARK

_PHRASES = {
    Language.ENGLISH: ("Tell the user: {message}", "What may help to say it: {context}"),
    Language.RUSSIAN: ("Сообщи пользователю: {message}", "Что поможет сказать это: {context}"),
}


def hidden_instruction(message: str, context: str = "") -> str:
    """The content of the hidden message, as it is stored."""
    tell, helpful = _PHRASES[language_of(message)]
    lines = [tell.format(message=" ".join(message.split()))]
    if context.strip():
        lines.append(helpful.format(context=" ".join(context.split())))
    return HIDDEN_MARK + "\n".join(lines)
