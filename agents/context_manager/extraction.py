"""Sentences that are worth remembering, told from those that are not."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.context_manager.knowledge import FactRecorder
from agents.context_manager.statements import statement_kind
from agents.fragments import MessageSentence, is_supported, message_sentences, quoted_message
from agents.models.language_model import LanguageModel
from agents.models.prompt import Material, build_prompt
from agents.models.structured import try_complete_as
from agents.people import KnownPeople
from agents.syntax.clauses import read_sentence
from agents.task_manager.extraction import find_tasks
from agents.task_manager.status_reports import find_reports
from bus_schema.dialogue import DialogueMessage
from bus_schema.processing import FactKind
from language.dates.expressions import dates_in
from language.sentences import leans_back
from language.words import Language, first_words, language_of, terms, words

_LONGEST_WORDS = 60
_FEWEST_TERMS = 2
_SMALL_TALK = re.compile(
    r"^\W*(?:привет|здравствуй\w*|добр\w+ (?:утро|день|вечер)|спасибо|пожалуйста|пока|до свидания|ок|хорошо|"
    r"hi|hello|hey|thanks|thank you|good (?:morning|evening|afternoon)|ok|okay|bye|sure)\b[^.!?]{0,30}[.!?)]*$",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(r"\b(?:his|her|their|its|его|её|ее|их)\b", re.IGNORECASE)
_PROJECT = re.compile(
    r"\b(?:проект(?:а|е|у|ом)?|project)\s+(?:[«“\"]([^»”\"]{2,60})[»”\"]|([A-ZА-ЯЁ][\w-]+(?: [A-ZА-ЯЁ][\w-]+)?))"
)


@dataclass(frozen=True)
class FactStatement:
    """A sentence with the sort of thing that it makes known."""

    text: str
    kind: FactKind


def extract_facts(
    message: DialogueMessage, recorder: FactRecorder, people: KnownPeople, language: Language | None = None
) -> None:
    """Record the facts that a message states."""
    project = None
    for sentence in message_sentences(message.content or "", language):
        named = _PROJECT.search(sentence.text)
        project = (named[1] or named[2]) if named else project
        statement = find_statement(sentence, recorder.said_at(message), people)
        if statement:
            recorder.record(statement.text, statement.kind, message, project)


def find_statement(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> FactStatement | None:
    """The fact that a sentence states, or None."""
    text = sentence.text.strip()
    if sentence.is_question or _SMALL_TALK.match(text) or len(terms(text)) < _FEWEST_TERMS:
        return None
    kind = statement_kind(read_sentence(sentence, said_at, people), sentence.language)
    if kind is FactKind.FACT and not _stands_alone(sentence, said_at, people):
        return None
    return FactStatement(first_words(text, _LONGEST_WORDS), kind) if kind else None


def _stands_alone(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> bool:
    """Check that a sentence says of what it speaks, and is neither a task nor a report on one."""
    text = sentence.text
    if leans_back(_POSSESSIVE.sub("", text)) or len(words(text)) < 2 or find_tasks(sentence, said_at, people):
        return False
    # "Sent the contract" is over once it is said; "the release is moved to May" is to be remembered.
    reports = [report for report in find_reports(sentence, said_at, people) if not report.is_implied]
    return not reports or any(character.isdigit() for character in text) or bool(dates_in(text, said_at))


class ExtractedFact(BaseModel):
    """One thing that the model has read."""

    model_config = ConfigDict(extra="forbid")
    kind: FactKind
    message_id: str
    quote: str
    text: str
    supersedes: str | None


class ExtractedFacts(BaseModel):
    """The model's answer: all facts that it found."""

    model_config = ConfigDict(extra="forbid")
    items: list[ExtractedFact] = Field(max_length=40)


async def extract_by_model(messages: Sequence[DialogueMessage], recorder: FactRecorder, model: LanguageModel) -> None:
    """Enter what the rules have missed; what no message says is dropped."""
    if not messages:
        return
    guide = shipped_guide("context_manager", language_of(" ".join(each.content or "" for each in messages)))
    known = "\n".join(f"{fact.fact_id}: {fact.text}" for fact in recorder.knowledge.current)
    materials = [
        Material("known", "known", known or "nothing"),
        *(Material(message.message_id, "message", message.content or "") for message in messages),
    ]
    asked = build_prompt("context", "write", guide.system, "Report what has become known as JSON.", materials)
    read = await try_complete_as(model, asked, ExtractedFacts, guide.model)
    for item in read.items if read else ():
        message = quoted_message(item.quote, messages, item.message_id)
        if message and is_supported(item.text, item.quote) and not _is_read(item, message, recorder):
            old = next((fact for fact in recorder.knowledge.current if fact.fact_id == item.supersedes), None)
            recorder.record(item.text, item.kind, message, project=None, old=old)


def _is_read(item: ExtractedFact, message: DialogueMessage, recorder: FactRecorder) -> bool:
    """Check whether the rules have found the same statement."""
    return any(
        message.message_id in update.fact.message_ids
        and (is_supported(item.text, update.fact.text) or is_supported(update.fact.text, item.quote))
        for update in recorder.updates
    )
