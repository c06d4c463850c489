"""Decisions of a dialogue and requests to remember, in their own wording (spec 002 F3: all are kept)."""

import re
from collections.abc import Iterator, Sequence

from bus_schema.episodes import Decision, RawTurn
from language.words import stem_key
from memory.packing.sentences import TurnSentence, is_question, sentences_of, without_filler


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?<!\w)(?:{pattern})(?!\w)" for pattern in alternatives), re.IGNORECASE)


# Wordings of a decision, whatever else the sentence says.
_DECIDED = _any_of(
    r"decided|decision(?: is|:| was)|the decision|agreed(?: to|:| on| that| with| we|,)",
    r"it(?: is|'s) (?:decided|settled|agreed)|chose to|opted (?:for|to)|resolved to|signed off",
    r"we(?: have|'ve)? (?:chose|chosen|approved|settled|picked|opted|finali[sz]ed|confirmed)",
    r"settled on|made up (?:my|our|his|her|their) minds?|final (?:choice|answer|call)",
    r"going (?:to go )?with|(?:will|\w+'ll|let's|shall|should just|then we) go with",
    r"let's (?:stick with|settle|use|do it|drop|switch)|(?:have|\w+'ve) (?:chosen|settled|picked)",
    r"concluded|voted (?:to|for|on|against)|ended up \w+ing",
    r"(?:deal|resolution|outcome|agreement):|we (?:won't|will not)|I'll take|we (?:plan|intend) to",
    r"changed (?:my|our|his|her) minds?|(?:switching|switched|moving|migrating|moved over) to",
    r"no longer us\w+|stop using",
    r"реш[её]н[оаы]|решил\w*|решаем|решение(?: такое| принято|:| —| -| \w+ть)|приня\w+ решение",
    r"договорил\w+|договариваемся|условил\w+|согласовал\w*|одобрил\w*|одобрен\w*",
    r"утвердил\w*|утвержд[её]н\w*|утверждаем|постановил\w*|передумал\w*|выбрал\w*|выбираем",
    r"остановил\w+ на|останавливаемся на|отказал\w+ от|отказываемся от",
    r"выбран\w*|определил\w+ с|пришли к (?:выводу|решению|соглашению)|сошлись на|проголосовал\w* за|назначил\w*",
    r"(?:итог|решение|договор[её]нность|вывод):|не будем|не буду|используем|переезжаем|назначен\w*",
    r"переход(?:им|ить будем) на|переш(?:ли|[её]л|ла) на|больше не (?:используем|будем|буду|делаем|работаем)",
    r"откладываем|переносим|отменяем|запускаем|назначаем|фиксируем|закрепляем|бер[её]м|оставляем|внедряем",
)
# Wordings of a decision unless the sentence expresses doubt.
_INTENDED = _any_of(
    r"we(?:'ll| will| shall| are going to|'re going to) (?:use|keep|start|launch|move|hire|buy|drop|switch)",
    r"we(?:'ll| will| shall| are going to|'re going to) (?:make|ship|stay|adopt|run|postpone|cancel)",
    r"we(?:'re| are) (?:using|keeping|dropping|hiring|buying|postponing|cancell?ing|launching)",
    r"I(?:'ll| will) (?:go for|choose|accept|book|buy)",
    r"будем (?:использовать|делать|брать|работать|запускать|считать|писать|хранить|собираться|встречаться|платить)",
    r"использовать будем|возьм[её]м|сделаем|перенес[её]м|запустим|отменим|оставим|купим|перейд[её]м|найм[её]м",
)
_PROPOSED = _any_of(r"let's|shall we|how about|what about|давай(?:те)?|предлагаю|может,? ")
_ACCEPTED = re.compile(
    r"^\W*(?:ok(?:ay)?|sure|agreed|deal|sounds good|yes|yeah|great|perfect|fine|done|let's do (?:it|that)|"
    r"хорошо|договорились|согласен|согласна|давай(?:те)?|да|ок|окей|отлично|идёт|идет|решено|по рукам|так и сделаем)\b",
    re.IGNORECASE,
)
_UNDECIDED = _any_of(
    r"(?:haven't|hasn't|have not|has not|hadn't|not|never|yet to|before (?:we|you|I)|until (?:we|you|I))"
    r"(?: been| yet| fully| really)? (?:decided?|agreed?|settled?|chosen?|choose|made up|approved?)",
    r"(?:not|nothing is|isn't|nothing|no) (?:decided|settled|agreed|final|decision)",
    r"not sure (?:what|if|whether|how|who|when).*|реш\w+ бы|бы реш\w+|не зна\w+, (?:что|как|кто|когда).*",
    r"реш\w+ (?:\w+ )?(?:задач|уравнени|пример|головоломк|проблем|вопрос)\w*",
    r"(?:make|need|waiting for|help)(?: a| the| your| this)? decision",
    r"(?:ещ[её] |пока |так и )?не (?:решил\w*|решен\w*|реш[её]но|договорил\w*|выбрал\w*|определил\w*)",
    r"(?:ещ[её] |пока |так и )?не (?:утвержд\w*|утвердил\w*|согласовал\w*|принял\w* решени\w+)",
    r"(?:надо|нужно|пора|предстоит|осталось|хочу|хотим|помоги\w*|трудно|сложно|никак не|не могу|не можем) "
    r"(?:решить|выбрать|определиться|договориться)",
)
_UNSURE = _any_of(
    r"возможно|может|может быть|наверное|наверно|кажется|вроде|если|бы|хотел|хотела|надеюсь|предлагаю",
    r"maybe|perhaps|might|probably|i guess|if|would|could|wish|hope|wonder|not sure",
)
# A request, as opposed to «I'll always remember our trip».
_REQUEST = r"(?:^|[.!?;:,\n—-]\s*|\b(?:please|and|must|should|(?:can|could|will|would) you|you to)\s+)"
TO_REMEMBER = re.compile(
    r"\b(?:запомни|запиши|помни|сохрани)(?:те)?\b[^.!?\n]{0,60}\b(?:навсегда|на\s*всю\s*жизнь|навечно)\b"
    r"|\bнавсегда\s+(?:запомни|сохрани)(?:те)?\b"
    r"|\b(?:никогда\s+не\s+забывай|не\s+забывай\s+(?:этого\s+)?никогда)(?:те)?\b"
    rf"|{_REQUEST}(?:remember|keep|memori[sz]e)\b(?!,)[^.!?\n]{{0,60}}\b(?:for\s*ever|for\s+good|permanently)\b"
    rf"|{_REQUEST}(?:remember|keep)\s+(?:this|that|it)\s+always\b"
    rf"|{_REQUEST}(?:always|permanently)\s+remember\b"
    rf"|{_REQUEST}never\s+forget\s+(?:this|that)\b",
    re.IGNORECASE,
)
_MIN_WORDS = 2


def decisions_of(turns: Sequence[RawTurn]) -> tuple[Decision, ...]:
    """All decisions and requests to remember, each with the turns that state it."""
    sentences = sentences_of(turns)
    to_remember = set(_to_remember(sentences))
    by_key: dict[str, tuple[str, list[str]]] = {}
    for at, sentence in enumerate(sentences):
        if at in to_remember or is_decision(sentence.text) or _is_accepted(sentence, sentences[at + 1 :]):
            text = without_filler(sentence.text)
            by_key.setdefault(stem_key(text), (text, []))[1].append(sentence.raw_log_id)
    return tuple(Decision(text=text, raw_log_ids=tuple(dict.fromkeys(ids))) for text, ids in by_key.values())


def is_decision(text: str) -> bool:
    """Whether a sentence by itself states a decision."""
    sentence = text.replace("’", "'")
    if is_question(sentence) or len(sentence.split()) < _MIN_WORDS:
        return False
    decided = _UNDECIDED.sub(" ", sentence)
    if _DECIDED.search(decided):
        return len(without_filler(sentence).split()) > 1
    return bool(_INTENDED.search(decided)) and not _UNSURE.search(decided)


def _to_remember(sentences: Sequence[TurnSentence]) -> Iterator[int]:
    """Indices of sentences to remember: of a request, or of its neighbour in the turn where it says nothing else."""
    for at, sentence in enumerate(sentences):
        if not TO_REMEMBER.search(sentence.text) or is_question(sentence.text):
            continue
        neighbours = [place for place in (at + 1, at - 1) if 0 <= place < len(sentences)]
        same_turn = [place for place in neighbours if sentences[place].turn == sentence.turn]
        is_bare = len(TO_REMEMBER.sub(" ", sentence.text).split()) < _MIN_WORDS
        yield same_turn[0] if is_bare and same_turn else at


def _is_accepted(sentence: TurnSentence, following: Sequence[TurnSentence]) -> bool:
    """Whether a sentence is a proposal that the next turn accepts."""
    if not _PROPOSED.search(sentence.text.replace("’", "'")) or sentence.words < _MIN_WORDS + 1:
        return False
    answer = next((follower for follower in following if follower.turn > sentence.turn), None)
    return answer is not None and answer.turn == sentence.turn + 1 and bool(_ACCEPTED.match(answer.text))
