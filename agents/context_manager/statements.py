"""Sorts of statements: decisions, preferences, roles and facts that hold, told from what happened and from talk."""

import re

from agents.context_manager import english_statements, russian_statements
from agents.syntax.clauses import Sentence, without_spans
from bus_schema.processing import FactKind
from language.words import Language


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
    if not words or not (russian_statements if is_russian else english_statements).holds(read, words):
        return None
    is_titled = russian_statements.is_titled(words) if is_russian else english_statements.is_titled(read, words)
    return FactKind.ROLE if is_titled or _IN_CHARGE.search(bare) else FactKind.FACT
