"""Cues of a sentence that it states a decision: verbs by their dictionary forms, words that close, change or doubt.

Each cue has a weight, and a sentence the sum of those of its cues, the log odds that it states a decision.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from language.russian import WordForm, fold_yo, word_forms
from language.words import base_of, has_cyrillic, is_base, is_past, stem, terms, words
from memory.packing.sentences import is_question


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?<!\w)(?:{pattern})(?!\w)" for pattern in alternatives), re.IGNORECASE)


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Verbs whose meaning is to decide, and those of the steps that people decide on.
_DECIDING = _listed(
    """
    agree approve choose conclude decide finalise finalize opt resolve settle vote
    решить решать решиться договориться договариваться условиться согласовать одобрить утвердить утверждать
    постановить передумать выбрать выбирать отказаться отказываться определиться проголосовать назначить назначать
    остановиться останавливаться зафиксировать фиксировать
    """
)
_STEPS = _listed(
    """
    accept add adopt arrange assign book buy cancel choose commit cut delay deploy drop freeze go hire invite join
    keep launch lease merge migrate move order pay pick postpone push put rent replace schedule sell send sign skip
    split start stay stick stop submit swap switch take use
    брать взять оставить оставлять остаться оставаться заказать заказывать купить покупать ставить поставить делать
    сделать переехать переезжать перейти переходить менять поменять сменить отдать отдавать переносить перенести
    отменить отменять отложить откладывать нанять нанимать подписать подписывать забронировать бронировать
    согласиться соглашаться начинать начать запускать запустить сажать посадить вешать повесить ехать
    поехать снять снимать сносить платить закупать продать продавать арендовать закрыть закрывать возвращаться
    вернуться отправить отправлять подать подавать записать записаться лететь полететь бросить вести использовать
    внедрять внедрить купить хранить
    """
)
# States and sayings, of which a promise decides nothing.
_STATES = _listed(
    """
    ask be believe check drink eat feel get guess hate hear hope joke know let like live look love mean miss need
    plan remember say see sit sleep tell think try understand wait want wish wonder
    болеть бояться быть верить видеть волноваться говорить ждать жить завидовать знать каяться клясться лежать любить
    мечтать мочь надеяться написать ненавидеть переживать пить планировать плакать подумать помнить понимать понять
    посмотреть предлагать пытаться радоваться сидеть сказать скучать слышать смеяться собираться сомневаться спать
    спросить стараться считать терпеть увидеть узнать хотеть чувствовать думать есть позвонить поговорить
    """
)
_DECIDED = _any_of(
    r"(?:the |final )?decision(?: is|:| was)|it(?: is|'s) (?:decided|settled|agreed)|signed off|final (?:choice|call)",
    r"made up (?:my|our) minds?|changed (?:my|our) minds?|(?:I|we) (?:caved|gave in|relented)",
    r"(?:deal|resolution|outcome|agreement):|we (?:won't|will not)",
    r"going (?:to go )?with|(?:I|we|let's|I'll|we'll|to) go with|(?:I|we) ended up \w+ing|I'll take",
    r"we (?:no longer|stop) us\w+",
    r"(?:I|we|I'm|we're|I've|we've)(?: are| have| am)? (?:switching|switched|moving|migrating|moved over) to",
    r"(?:I|we) (?:intend|plan) to|(?:said|told \w+) (?:yes|no)|it's a (?:yes|no)|(?:scrap|forget) (?:that|it|the)",
    r"(?:I've|we've|I|we|have) (?:gone|went|going|plumped) (?:for|with)|wins",
    r"(?:итог|решение|договор[её]нность|вывод):|решение (?:такое|принято)|приня\w+ решение|сошлись на",
    r"сдал(?:ся|ась|ись)|уступил[аи]?",
    r"пришли к (?:выводу|решению|соглашению)|не буд(?:ем|у)|больше не \w+(?:ем|им)|переш(?:ли|[её]л|ла) на",
)
_OPEN = _any_of(
    r"(?:haven't|hasn't|have not|has not|hadn't|not|never|yet to|can't|cannot|before|until|nothing is|isn't|nothing|no)"
    r"(?: \w+){0,2} (?:decide|agree|settle|choose|chosen|approve|ma[dk]e up|final|decision)\w*",
    r"(?:make|need|waiting for|help)(?: a| the| your| this| me| us)? (?:decision|decide|choose)",
    r"not sure (?:what|if|whether|how|who|when).*|не зна\w+, (?:что|как|кто|когда).*",
    r"(?:не|надо|нужно|пора|предстоит|осталось|хоч(?:у|ем)|хотим|помоги\w*|трудно|сложно|не мо(?:гу|жем)|как|что)"
    r" (?:\w+ )?(?:реш|выбр|выбир|определ|договор|утвер|согласов|принял)\w*",
    r"реш\w+ бы|бы реш\w+|реш\w+ (?:\w+ )?(?:задач|уравнени|пример|головоломк|проблем|вопрос)\w*",
)
_CLOSES = _any_of(
    r"ok(?:ay)?|so|then|that's (?:that|it)|right|fine|final(?:ly)?|settled|deal|done|it is|sold|target|after all",
    r"sod it|screw it|in the end|for good|decided|convinced|тогда|ладно|ну что ж|короче|вс[её]|значит|итак|в общем|вот",
    r"окончательно|точно|вс[её]-таки|так и быть|убедил[аи]?|уговорил[аи]?|ок|окей|ид[её]т|по рукам|без вариантов",
)
_CHANGES = _any_of(
    r"instead|actually|no longer|switch\w*|changed?|scrap\w*|cancel\w*|drop\w*|back in|moved?|off|swap\w*|replac\w+",
    r"rather than|передум\w+|меня(?:ем|ю)|вместо|больше не|отмен\w+|перен[ео]с\w+",
)
_DOUBTS = _any_of(
    r"maybe|perhaps|might|could|would|if|whether|not sure|wonder\w*|tempted|considering|want\w*|wish|probably",
    r"может|возможно|наверное?|если|бы|не зна\w+|не уверен\w*|подумыва\w+|хотел\w*|хоч\w+|надеюсь|кажется|вроде",
)
_HABIT = _any_of(
    r"always|usually|never|often|every(?:one|body|thing)?|horribly|love|hate",
    r"всегда|обычно|никогда|часто|каждый раз|люблю|ненавижу|терпеть",
)
_RECKONS = _any_of(r"i think (?:we|i)(?:'ll)?|i reckon|i'm thinking|i guess (?:we|i)|i said (?:okay|yes|no)")
_ASKS_FOR = _any_of(
    r"me|please|(?:can|could|would|will) you|helps?|review|explain|try(?:ing)? to|not sure|make sure",
    r"(?:having|getting|facing) (?:\w+ ){0,2}(?:trouble|issues?|problems?|errors?|difficult\w+)|wondering",
    r"мне|меня|пожалуйста|нам|помоги\w*|подскажи\w*|объясни\w*|пыта(?:юсь|емся)|можешь",
)
_CODE = re.compile(r"[{}<>=;`|\\]|\w\(|\)\W*$|^\W*(?:import|def|return|from|class|const|let|var)\s\w")
ACCEPTS = re.compile(
    r"^\W*(?:ok(?:ay)?|sure|agreed|deal|yes|yeah|great|perfect|fine|done|right|sold|good|sounds good|let's|хорошо|"
    r"договорились|соглас(?:ен|на)|давай(?:те)?|да|ок|окей|отлично|ид[её]т|решено|ладно|угу|ага|ну|тогда|убедил[аи]?|"
    r"уговорил[аи]?|бер(?:у|[её]м)|годится|пусть|по рукам|так и сделаем)(?!\w)",
    re.IGNORECASE,
)
PROPOSES = _any_of(
    r"let's|shall we|should (?:we|i)|how about|what about|why not|could|would|options?|i'd|recommend|suggest\w*",
    r"consider|either|or|давай(?:те)?|предлага\w+|может|можно|вариант\w*|или|либо|лучше|стоит|советую|я (?:за|бы)",
    r"возьм[её]м",
)
# How others tell that a plan is a good one.
APPROVES = _any_of(
    r"sensible|sound(?!s like)|wise|(?:good|great|excellent|fine|smart|right) (?:choice|call|plan|idea|decision|move)",
    r"разумно|мудро|правильно|верно|(?:отличн|хорош)\w+ (?:план|решение|выбор|идея)",
)
# «Баня так баня»: both words are one.
_ECHO = re.compile(r"(?<!\w)(\w+) так (\w+)(?!\w)", re.IGNORECASE)
# Whole sentences by which one settles what was talked of before.
_IT_IS = _any_of(
    r"(?<!as )(?<!what )(?<!how )(?<!that )(?<!course )it is(?:,? then)?(?=\W*$|,)",
    r"that's that|go ahead|go for it|make it so|make (?:it|that) (?:the )?\w+(?=\W*$)|yes to|no to",
    r"(?:fine|good|ok|okay|grand) (?:by|with) (?:me|us)|(?:works|suits)(?: fine)?(?: for)? (?:me|us)",
    r"(?:gave|given|got)(?: \w+){0,2} (?:the|a) (?:go-ahead|green light|nod)",
    r"пусть (?:будет|так)|без вариантов|точка(?=\W*$)|(?:меня|нас) устраивает|(?:мне|нам) подходит",
    r"да(?:ли|л|ла|ю|[её]м) (?:отмашку|добро|зел[её]ный свет)",
)
_LIKELY_READING, _FEW_TERMS, _FEW_WORDS, _LONG_WORDS = 0.15, 2, 5, 30
# "Then 10 October", «Значит, Салтанат»: so short, without a verb, with a figure or a name.
_FIXED_WORDS = 8
_FIGURE_OR_NAME = re.compile(r"\d|(?<=\s)[A-ZА-ЯЁ][a-zа-яё]")
_UNSETTLED = frozenset({"doubts", "question", "asks_for", "habit"})

# Log odds of each cue, rounded from a logistic regression on three chats of people, one English and two Russian, with
# 42 decisions, that starts from a guess and hardly leaves it (ridge of 3). `shared_before` and `shared_after` are for
# the share of the sentence's words that the messages around it have, up to three. `fixes` and `approved` were added by
# hand.
WEIGHTS = {
    "decides": 3.6, "promises": 1.0, "does": 1.0, "orders": 0.5, "lets": 1.2, "step": 1.2, "own_step": 1.0, "did": 0.8,
    "echo": 3.0, "fixes": 1.0, "closes": 0.7, "changes": 0.6, "doubts": -0.4, "habit": -0.9, "reckons": 1.7,
    "asks_for": -1.5, "question": -2.5, "few_terms": -0.4, "few_words": 0.1, "narrates": -0.4, "long": -0.6,
    "accepts": 0.8, "accepts_proposal": 1.2, "accepted": 2.0, "approved": 0.8, "after_proposal": 0.9,
    "shared_before": 2.0, "own_shared_before": 0.9, "shared_after": 1.4, "last": 0.8,
}  # fmt: skip
BIAS = -4.5
# Cues of verbs by which the speaker speaks for himself, for both, or tells the other.
OWN = frozenset({"promises", "does", "orders", "lets"})


def decides(sentence: str) -> bool:
    """Whether a sentence has the cue `decides`, which most have not: the others are not looked for."""
    text = sentence.replace("’", "'")
    return not _CODE.search(text) and _says_decided(text, _verbs(text))


@lru_cache(maxsize=4096)
def cues_of(sentence: str) -> frozenset[str]:
    """Cues of a sentence by itself, by the names that they have in WEIGHTS."""
    text = sentence.replace("’", "'")
    if _CODE.search(text):
        return frozenset({"question"})
    verbs = _verbs(text)
    said = {
        "decides": _says_decided(text, verbs),
        "echo": bool(_IT_IS.search(text)) or any(stem(a)[:4] == stem(b)[:4] for a, b in _ECHO.findall(text)),
        "closes": bool(_CLOSES.search(text)),
        "changes": bool(_CHANGES.search(text)),
        "doubts": bool(_DOUBTS.search(text)),
        "habit": bool(_HABIT.search(text)),
        "reckons": bool(_RECKONS.search(text)),
        "asks_for": bool(_ASKS_FOR.search(text)),
        "question": is_question(text),
        "few_terms": len(set(terms(text))) < _FEW_TERMS,
        "few_words": len(text.split()) < _FEW_WORDS,
        "long": len(text.split()) > _LONG_WORDS,
        "accepts": bool(ACCEPTS.match(text)),
    }
    found = (verbs - {"decides"}) | {name for name, is_there in said.items() if is_there}
    if not verbs and _fixes(text, found):
        found |= {"fixes"}
    if "echo" in found:
        # "Fine by me" asks for nothing.
        found -= {"asks_for"}
    is_own = not found.isdisjoint(OWN)
    own = {"own_step"} if is_own and "step" in found else set()
    return frozenset(found | own) - (frozenset({"narrates"}) if is_own or "step" in found else frozenset())


def _verbs(text: str) -> frozenset[str]:
    return frozenset(_russian_verbs(text) if has_cyrillic(text) else _english_verbs(text))


def _says_decided(text: str, verbs: frozenset[str]) -> bool:
    return bool(_DECIDED.search(_OPEN.sub(" ", text))) or ("decides" in verbs and not _OPEN.search(text))


def _fixes(text: str, cues: frozenset[str]) -> bool:
    """Whether a sentence without a verb closes a question by a figure or a name."""
    is_closed = cues.isdisjoint(_UNSETTLED) and not cues.isdisjoint({"closes", "accepts"})
    return is_closed and len(text.split()) <= _FIXED_WORDS and bool(_FIGURE_OR_NAME.search(text))


def _russian_verbs(text: str) -> Iterator[str]:
    tokens = [word.lower() for word in words(text)]
    if not {"давай", "давайте", "пусть"}.isdisjoint(tokens):
        yield "lets"
    for readings in (word_forms(word) for word in tokens if has_cyrillic(word)):
        if readings and readings[0].has("PRTS") and fold_yo(readings[0].lemma) in _DECIDING:
            yield "decides"
        verb = next((each for each in readings if each.has("VERB") and each.score >= _LIKELY_READING), None)
        if verb is not None:
            is_told = verb.has("past") and not verb.has("neut")
            is_ours = verb.has("1per") or (is_told and (verb.has("plur") or not _has_subject(tokens)))
            yield from _of_russian_verb(verb, is_ours=is_ours)


def _of_russian_verb(verb: WordForm, *, is_ours: bool) -> Iterator[str]:
    lemma = fold_yo(verb.lemma)
    if lemma in _DECIDING and is_ours:
        yield "decides"
    if lemma in _STEPS and not (verb.has("3per") or verb.has("neut")):
        yield "step"
        yield from ("did",) if verb.has("past") and is_ours else ()
    if lemma in _STATES:
        return
    if verb.has("1per"):
        yield "promises" if verb.has("futr") else "does"
    elif verb.has("impr") or verb.has("past"):
        yield "orders" if verb.has("impr") else "narrates"


def _has_subject(tokens: list[str]) -> bool:
    """Whether somebody else than the speaker may be the subject."""
    likeliest = (word_forms(word)[0] for word in tokens if has_cyrillic(word))
    return any(each.has("nomn") and not {"anim", "Name", "3per"}.isdisjoint(each.grammemes) for each in likeliest)


def _english_verbs(text: str) -> Iterator[str]:
    tokens = [word.lower() for word in words(text)]
    for at, word in enumerate(tokens):
        is_of_others = at > 0 and is_past(word) and _US.isdisjoint(tokens[:at])
        if _is_one_of(base_of(word), _STEPS) and tokens[at - 1 : at] != ["to"] and not is_of_others:
            yield "step"
        if _is_one_of(base_of(word), _DECIDING) and _is_decided(tokens, at):
            yield "decides"
        if is_past(word) and tokens[:at] in _ALL and _is_one_of(base_of(word), _STEPS):
            yield "did"
        if word in ("let's", "lets"):
            yield "lets"
        if not {"i", "we"}.isdisjoint(word.split("'")[:1]):
            yield from _after_us(tokens, at)
    yield from _of_first_word(tokens[0]) if tokens else ()


def _after_us(tokens: list[str], at: int) -> Iterator[str]:
    """Of the verb that follows "I", "we", "I'll" and the like."""
    following = [each for each in tokens[at + 1 : at + 5] if each not in _BETWEEN]
    auxiliary = tokens[at].partition("'")[2] or next(iter(following[:1]), "")
    verb = next((each for each in following if each not in ("will", "am", "are", "have")), "")
    if base_of(verb) in _STATES:
        return
    if auxiliary in ("ll", "will"):
        yield "promises"
    elif auxiliary in ("m", "re", "am", "are"):
        yield from ("does",) if verb.endswith("ing") or tokens[at + 1 : at + 3] == ["going", "to"] else ()
    elif is_base(verb):
        yield from () if verb in ("do", "have") else ("does",)
    elif is_past(verb):
        yield "did" if _is_one_of(base_of(verb), _STEPS) else "narrates"


def _of_first_word(word: str) -> Iterator[str]:
    """«Booked the barn», «Move it»."""
    if is_past(word) and _is_one_of(base_of(word), _STEPS):
        yield "did"
    if is_base(word) and word not in _STATES and word not in ("thank", "can", "will"):
        yield "orders"


def _is_decided(tokens: list[str], at: int) -> bool:
    """Whether a verb says what the speakers have done or will do."""
    before = tokens[max(0, at - 3) : at]
    return (is_past(tokens[at]) and (not before or not _US.isdisjoint(before))) or before[-1:] in (["i'll"], ["we'll"])


def _is_one_of(base: str, verbs: frozenset[str]) -> bool:
    """Whether a verb is in a list; the past of a verb that `base_of` does not know is compared by its stem."""
    return base in verbs or (base.endswith("ed") and stem(base) in _stems(verbs))


@cache
def _stems(verbs: frozenset[str]) -> frozenset[str]:
    return frozenset(stem(verb) for verb in verbs)


_US = _listed("i we i'll we'll i'm we're i've we've let's both all everyone everybody team")
_ALL = (["both"], ["all"], ["everything"])  # "Both booked."
_BETWEEN = _listed("just also definitely probably not still then all only going to gonna")
