"""Sentences that are worth remembering, told from those that are not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.context_manager import english_statements, russian_statements
from agents.context_manager.knowledge import FactRecorder, FactStatement
from agents.fragment_reader import FragmentReader, ReadingPart
from agents.fragments import MessageSentence, is_supported, message_sentences, quoted_message
from agents.keywords import most_relevant
from agents.models.explicit_delegation import is_delegation
from agents.models.prompt import Material
from agents.people import KnownPeople
from agents.present import Present
from agents.sentence_kinds import LIKELY_FACT, may_state, sentence_kind
from agents.status_reports import find_reports
from agents.syntax.clauses import Sentence, read_sentence, without_spans
from agents.task_manager.extraction import find_tasks
from agents.task_requests import find_requests
from bus_schema.dialogue import DialogueMessage
from bus_schema.processing import FactKind
from language.dates.expressions import dates_in
from language.sentences import leans_back
from language.words import Language, first_words, language_of, stem, terms, words


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"\b(?:{each})\b" for each in alternatives), re.IGNORECASE)


_UNCERTAIN = _any_of(
    r"возможно|может(?! быть нельзя)|наверное|наверно|кажется|думаю|вроде|если(?! что)|бы|хотел|хотела|хочу|"
    r"надеюсь|предлагаю",
    r"давай(?:те)?|мечтаю|не ?знаю|вдруг|интересно|помнишь|помните|представь\w*|прикинь\w*|небось|лишь бы",
    r"maybe|perhaps|might|probably|i (?:think|guess|reckon|bet)|if|would|could|wish|hope|wonder|suggest|let's|not sure",
    r"used to|remember|imagine|suppose|'d|who knew|apparently",
)
_PAST_TASTE = _any_of(r"did|didn't|loved|liked|hated|was|were")
_LAUGHTER = re.compile(r"\b(?:lol|lmao|haha\w*|omg|hehe|ахах\w*|хаха\w*|лол|ржу)\b|[😂🤣😅]|\)\)", re.IGNORECASE)
_DECIDED = _any_of(
    r"решили|решено|решила?|договорились|условились|выбрали|выбираем|утвердили|утвержден\w*|согласовали|"
    r"остановились на",
    r"сошлись на|определились|постановили|одобрили|принято|приняли решение|будем использовать|использовать будем",
    r"переходим на|перешли на|отказались|отказываемся|передумали|больше не (?:используем|будем|делаем|работаем)|"
    r"остаемся",
    r"остаёмся|вердикт|окончательно|проголосовали|решение такое|итог такой",
    r"decided|agreed (?:to|on|that|with)|agreed|chose|have chosen|approved|settled (?:on|for)?|going with|go "
    r"with|opted for",
    r"signed off on|will use|switching to|switched to|moving to|changed our mind|no longer use|won't use|stop using",
    r"final (?:answer|decision)|said (?:no|yes) to|said (?:no|yes)|voted|went with|sticking with|picked|it's a "
    r"(?:yes|no)",
    r"ruled out|from now on|no more|going ahead with|turned down|given the go-ahead|signed off",
)
_PREFERRED = _any_of(
    r"предпочита\w+|терпеть не (?:могу|может)|обожа\w+|ненавиж\w+|ненавидит|люб(?:лю|ит|им)|нравится|нравятся",
    r"удобн(?:о|ее|ей)|комфортн(?:о|ее|ей)|прив?ычн(?:о|ее|ей)|обращай\w+ ко мне|не переносит|не выношу|не выносит",
    r"(?:зови|называй|пиши|звони)(?:те)? (?:мне|меня)|только без|мне (?:лучше|проще|легче|приятнее)",
    r"(?:i|we|they|people|kids|both)(?: \w+)? (?:prefer|like|love|enjoy|hate)|prefers|likes|loves|enjoys|hates|"
    r"can't stand|favou?rite|works best|is best for me|'d rather|would rather",
    r"call me|not a (?:fan|morning person)|fan of|an? \w+ person|only (?:drinks|eats|takes|wears)|takes (?:his|"
    r"her|my|their)",
    r"don't (?:like|eat|drink|do)|doesn't (?:like|eat|drink|do)|do not like|vegetarian|vegan|veggie|fond of|keen on",
    r"rather (?:have|be|get)|happiest when|best for (?:me|him|her|us)",
)
_IN_CHARGE = _any_of(
    r"отвеча(?:ю|ет|ют) за|руковожу|руководит|возглавля\w+|я работаю|работает (?:у нас )?\w+ом|курирую|курирует|"
    r"вед[её]т",
    r"заведует|замещает|заменяет|за главн\w+|старш(?:ий|ая) \w+|главн(?:ый|ая)|ответственн(?:ый|ая)|заведующ\w+|"
    r"бригадир\w*",
    r"(?:мо[йя]|наша?|новый|новая) (?:начальник|руководитель|коллега|заместитель|начальница|помощница|помощник|"
    r"директор|"
    r"дизайнер|разработчик|юрист|подрядчик|клиент|заказчик|менеджер|бухгалтер|аналитик|врач|тренер|учитель\w*|"
    r"классн\w+)",
    r"(?:am|is|are|'m|'s|'re) (?:now )?(?:responsible for|in charge of|our|the one|head of|running|covering|acting)",
    r"works? as|leads?|heads? (?:up|the)|runs? the|looks after|signs off|handles|deals with|reports to|manages|chairs",
    r"(?:my|our) (?:new )?(?:boss|manager|assistant|colleague|deputy|director|designer|developer|lawyer|contractor|"
    r"client|customer|accountant|lead|coach|teacher|supervisor)",
)


def statement_kind(read: Sentence, language: Language) -> FactKind | None:
    """The sort of thing that a sentence states; None where it tells what happened, asks, feels or supposes."""
    bare = without_spans(
        read.text.replace("’", "'"), 0, len(read.text), [(w.start, w.end) for w in read.words if w.is_quoted]
    )
    if read.is_question or _UNCERTAIN.search(bare) or _LAUGHTER.search(read.text):
        return None
    words = [word for word in read.words if not word.is_quoted]
    is_russian = language is Language.RUSSIAN
    if _DECIDED.search(bare) or (is_russian and russian_statements.is_choice(words)):
        return FactKind.DECISION
    if _PREFERRED.search(bare) and not _PAST_TASTE.search(bare):
        return FactKind.PREFERENCE
    statements = russian_statements if is_russian else english_statements
    if not words or not (statements.holds(read, words) or sentence_kind(read.text).fact >= LIKELY_FACT):
        return None
    is_titled = russian_statements.is_titled(words) if is_russian else english_statements.is_titled(read, words)
    return FactKind.ROLE if is_titled or _IN_CHARGE.search(bare) else FactKind.FACT


_LONGEST_WORDS = 60
_FEWEST_TERMS = 2
# Known facts that a model is shown.
_MOST_KNOWN = 40
_SMALL_TALK = re.compile(
    r"^\W*(?:привет|здравствуй\w*|добр\w+ (?:утро|день|вечер)|спасибо|пожалуйста|пока|до свидания|ок|хорошо|"
    r"hi|hello|hey|thanks|thank you|good (?:morning|evening|afternoon)|ok|okay|bye|sure)\b[^.!?]{0,30}[.!?)]*$",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(r"\b(?:his|her|their|its|его|её|ее|их)\b", re.IGNORECASE)
_PROJECT = re.compile(
    r"\b(?:проект(?:а|е|у|ом)?|project)\s+(?:[«“\"]([^»”\"]{2,60})[»”\"]|([A-ZА-ЯЁ][\w-]+(?: [A-ZА-ЯЁ][\w-]+)?))"
)


def extract_facts(
    messages: Iterable[DialogueMessage], recorder: FactRecorder, people: KnownPeople, language: Language | None = None
) -> None:
    """Record the facts that messages state."""
    for message in messages:
        project = None
        if is_delegation(message.content or ""):
            continue
        for sentence in message_sentences(message.content or "", language):
            named = _PROJECT.search(sentence.text)
            project = (named[1] or named[2]) if named else project
            statement = find_statement(sentence, recorder.said_at(message), people)
            if statement:
                recorder.record(_placed(statement, recorder, project), message)


def find_statement(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> FactStatement | None:
    """The fact that a sentence states, or None."""
    text = sentence.text.strip()
    if sentence.is_question or _SMALL_TALK.match(text) or len(terms(text)) < _FEWEST_TERMS:
        return None
    if any(request.is_certain for request in find_requests(text, said_at)):
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


_OWN = re.compile(r"\b(?:я|меня|мне|мной|мо[йяеи]|моего|моему|моей|мою|моих)\b|\b(?:I|I'm|my|me|mine)\b", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")
_PROJECT_WORD = re.compile(r"проект(?:а|е|у|ом)?|project", re.IGNORECASE)
_QUOTE_MARKS = "«“„\"'"
_IN_CONFIDENCE = _any_of(
    r"между нами|по секрету|секрет(?:но|ы|а|ом|е)?|конфиденциальн\w+|никому не (?:говори|рассказывай|показывай)\w*",
    r"не для (?:всех|передачи|протокола)|только (?:тебе|для тебя)|не говори\w* (?:им|ему|ей|команде|остальным)",
    r"between (?:us|you and me|ourselves)|in confidence|confidential\w*|off the record|in private|privately",
    r"(?:don't|do not) (?:tell|share|mention|repeat)|secret(?:ly|s)?",
    r"keep(?:ing)? (?:it|this|that) (?:quiet|to yourself)",
    r"for your eyes|just for you|only for you|nobody else|no one else",
)


def _placed(statement: FactStatement, recorder: FactRecorder, project: str | None = None) -> FactStatement:
    """The statement with its project, and with the one that it is shared with, if it is not of the speaker."""
    text = statement.text
    is_personal = statement.kind is FactKind.PREFERENCE or bool(_OWN.search(text))
    shared = None if is_personal else shared_project(text, recorder.projects)
    return replace(statement, project=project, shared_with=shared)


def is_in_confidence(messages: Iterable[DialogueMessage]) -> bool:
    """Whether somebody says of what they say that others are not to hear of it."""
    return any(_IN_CONFIDENCE.search((message.content or "").replace("’", "'")) for message in messages)


def shared_project(sentence: str, projects: Iterable[str]) -> str | None:
    """The project of the speaker's that a sentence names: sharing is said, never guessed.

    «Вега» is named by «по проекту Вега», «в «Веге»», «для Веги», and where a sentence begins with «Вега».
    """
    spoken = list(_WORD.finditer(sentence))
    roots = [stem(each[0]) for each in spoken]
    for project in projects:
        named = [stem(each) for each in _WORD.findall(project)]
        for place in range(len(roots) - len(named) + 1 if named else 0):
            if roots[place : place + len(named)] == named and _is_name(sentence, spoken, place, project):
                return project
    return None


def _is_name(sentence: str, spoken: Sequence[re.Match[str]], place: int, project: str) -> bool:
    """Whether words stand as a name: after "project", in quotes, capitalised, or unchanged at the beginning."""
    start = spoken[place].start()
    if place and (_PROJECT_WORD.fullmatch(spoken[place - 1][0]) or sentence[start - 1] in _QUOTE_MARKS):
        return True
    if not sentence[:start].strip(_QUOTE_MARKS):
        return sentence[start:].casefold().startswith(project.casefold())
    return spoken[place][0][0].isupper()


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


READING = "facts"


async def extract_by_model(
    messages: Sequence[DialogueMessage], recorder: FactRecorder, reader: FragmentReader, present: Present | None = None
) -> None:
    """Enter what the rules have missed; what no message says is dropped."""
    if not messages:
        return
    spoken = " ".join(each.content or "" for each in messages)
    guide = shipped_guide("context_manager", language_of(spoken))
    # Only a fact that shares a word with the messages can be what they repeat or contradict.
    related, _others = most_relevant(recorder.knowledge.current, lambda fact: fact.text, spoken, _MOST_KNOWN)
    known = "\n".join(f"{fact.fact_id}: {fact.text}" for fact in related)
    materials = [Material("known", "known", known or "nothing")]
    part = ReadingPart(READING, guide, "Report what has become known as JSON.", ExtractedFacts, materials)
    read = await reader.read(part, messages, present)
    for item in read.items if read else ():
        message = quoted_message(item.quote, messages, item.message_id)
        is_new = message and is_supported(item.text, item.quote) and not _is_read(item, message, recorder)
        if message and is_new and may_state(message) and not is_delegation(message.content or ""):
            old = next((fact for fact in recorder.knowledge.current if fact.fact_id == item.supersedes), None)
            recorder.record(_placed(FactStatement(item.text, item.kind), recorder), message, old)


def _is_read(item: ExtractedFact, message: DialogueMessage, recorder: FactRecorder) -> bool:
    """Check whether the rules have found the same statement."""
    return any(
        message.message_id in update.fact.message_ids
        and (is_supported(item.text, update.fact.text) or is_supported(update.fact.text, item.quote))
        for update in recorder.updates
    )
