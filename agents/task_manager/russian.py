"""Patterns that announce tasks in Russian."""

from collections.abc import Iterable

from agents.task_manager.patterns import ImpliedOwner, task_pattern
from agents.task_manager.russian_verbs import ongoing_verbs, work_verbs

_NOUNS = (
    "часть|память|ночь|речь|дочь|помощь|сеть|область|очередь|мать|путь|смерть|жизнь|почти|дети|новости|вести|сети|"
    "сути|пути"
)
_INFINITIVE = rf"(?P<verb>(?!(?:{_NOUNS})\b)[а-яё]+(?:ть|ти|чь)(?:ся|сь)?)\b"
_FEW = r"(?P<few>(?:\s+(?!не\b|ли\b)[^\s,;:!?]+){0,3}?)\s+"
_LITTLE = r"(?:\s+[^\s,.;:!?]+)?\s+"
_NEED = r"(?<!\bне )\b(?:нужно|надо|необходимо|требуется|следует|осталось|предстоит|прид[её]тся)\b(?! было)"
_READY = r"(?:готов|сдан|сделан|отправлен|подписан|оплачен|запущен)[аоы]?"
_COLON = r"\s*(?::|—|–|\s-\s)\s*"
# «…, это на Косте» names the doer of what was said just before.
AFTERTHOUGHT = task_pattern(r"\b(?:это|всё это|этим займ[её]тся)(?: будет)?(?: на| за)? <name>")
# Spoil a cue in the same clause, or anywhere before it.
HEDGES = (
    r"\b(?:если|когда|вдруг|возможно|может|наверное|наверно|вряд ли|бы|хорошо бы|не знаю|думал|думала|хотел|хотела|"
    r"раньше|почему|зачем|как)\b"
)
DISTANT_HEDGES = (
    r"\b(?:думал[аи]?|казалось|сказали?|сказала|если (?:успею|смогу|получится|будет время|повез[её]т)|мечта)\b"
)
EMPTY_OPENINGS = (
    r"^(?:и|что|чтобы|а|но|ещё|еще|также|тоже|потом|затем|тогда|ну|пожалуйста|я|мы|сам|сама|всё|только|потому)\b[\s,]*"
)
ASIDES = r",?\s*\b(?:пожалуйста|обещаю|надеюсь|спасибо|хорошо|ладно|как договаривались|точно|тоже)\b[.!]*$"
REASONS = r",?\s+(?:потому что|так как|поскольку|иначе|а то|чтобы|если|когда|но)\b.*$"


def _forms(forms: Iterable[str]) -> str:
    # «ё» is written or not, as people like.
    return "(?P<verb>" + "|".join(sorted((form.replace("ё", "[её]") for form in forms), key=len, reverse=True)) + r")\b"


_FIRST = _forms(verb.first for verb in work_verbs())
_THIRD = _forms(verb.third for verb in work_verbs())
_PLURAL = _forms(verb.plural for verb in work_verbs())
_ORDER = _forms(form for verb in work_verbs() for form in verb.imperatives)
_IS_DOING = _forms(verb.third for verb in ongoing_verbs())
_AM_DOING = _forms(verb.first for verb in ongoing_verbs())
_ARE_DOING = _forms(verb.plural for verb in ongoing_verbs())

CUES = (
    task_pattern(r"^\W*(?:todo|задача|сделать|план)\s*:\s*", ImpliedOwner.SPEAKER),
    task_pattern(rf"\bнапомни(?:те)?(?: мне)?(?:,? пожалуйста,?)?{_FEW}{_INFINITIVE}", ImpliedOwner.SPEAKER, asks=True),
    task_pattern(r"\bнапомни(?:те)?(?: мне)? (?:про|о|об)\b", ImpliedOwner.SPEAKER, asks=True),
    task_pattern(rf"\bне (?:забыть|забудь|забудьте)(?: бы)?{_FEW}{_INFINITIVE}", ImpliedOwner.SPEAKER),
    task_pattern(
        rf"\b(?:попро[сш]|поруч|скаж|сказа|напомн|назнач|передай|поставил)[а-яё]*(?: задачу)? <name>,?"
        rf"{_FEW}{_INFINITIVE}",
        asks=True,
    ),
    task_pattern(r"\bпоруч[а-яё]+ <name> "),
    task_pattern(rf"\bпусть <name>{_FEW}{_THIRD}"),
    task_pattern(rf"<name>,? (?:пожалуйста,? )?{_ORDER}", asks=True),
    task_pattern(rf"<name>(?:\s+(?!не\b)[^\s,.;:!?]+){{0,2}}?\s+{_THIRD}"),
    task_pattern(rf"{_THIRD}\s+(?:,\s*)?<name>"),
    task_pattern(
        rf"<name>,? (?:долж[а-яё]+|обеща[а-яё]*|обязан[а-яё]*|собира[а-яё]+|планиру[а-яё]+|взял[а-яё]+|будет|"
        rf"нужно|надо|необходимо|предстоит|прид[её]тся)(?! быть\b){_FEW}{_INFINITIVE}"
    ),
    task_pattern(rf"\bответственн[а-яё]+(?: за (?P<work>[^—–:,.]+?))?{_COLON}<name>"),
    task_pattern(r"\b(?:отвечает|ответственн[а-яё]+) за (?P<work>[^—–:,.]+?) <name>", weak=True),
    task_pattern(r"(?:^|[,.;:]\s*)(?:на|за|с) <name>(?:\s*[—–-])?\s+"),
    task_pattern(r"(?P<work>[^,;.:!?—]+?)\s+(?:—|–|-)?\s*(?:на|за) <name>(?=\s*(?:[,.;!]|$))"),
    task_pattern(rf"(?:^|[,;]\s*)(?:а |и )?<name>\s*[—–-]\s*{_INFINITIVE}"),
    task_pattern(rf"^\W*<name>{_COLON}"),
    task_pattern(
        rf"\bя{_LITTLE}(?:долж[а-яё]+|обязан[а-яё]*|собираюсь|планирую|обеща[а-яё]+|буду)"
        rf"(?! был){_FEW}{_INFINITIVE}", ImpliedOwner.SPEAKER,
    ),
    task_pattern(
        rf"(?<!\bне )\b(?:планирую|обещаю|собираюсь|обязуюсь|буду|беру на себя){_FEW}{_INFINITIVE}",
        ImpliedOwner.SPEAKER,
    ),
    task_pattern(rf"\bмне (?:[^\s,.;:!?]+ )?{_NEED}{_FEW}{_INFINITIVE}", ImpliedOwner.SPEAKER),
    task_pattern(rf"{_NEED} мне{_FEW}{_INFINITIVE}", ImpliedOwner.SPEAKER),
    task_pattern(
        r"\b(?:с меня|за мной|беру на себя|возьму на себя|беру в работу|возьму в работу)\b", ImpliedOwner.SPEAKER
    ),
    task_pattern(rf"(?<!\bне )\b{_FIRST}", ImpliedOwner.SPEAKER),
    task_pattern(rf"(?:\bнам )?{_NEED}{_FEW}{_INFINITIVE}"),
    task_pattern(rf"\bмы должны{_FEW}{_INFINITIVE}"),
    task_pattern(rf"\bдавай(?:те)?{_FEW}{_INFINITIVE}"),
    task_pattern(rf"(?<!\bне )\b{_PLURAL}"),
    task_pattern(rf"<name>(?:\s+(?!не\b)[^\s,.;:!?]+){{0,2}}?\s+{_IS_DOING}", weak=True),
    task_pattern(rf"{_IS_DOING}\s+<name>", weak=True),
    task_pattern(rf"(?<!\bне )\b{_AM_DOING}", ImpliedOwner.SPEAKER, weak=True),
    task_pattern(rf"(?<!\bне )\b{_ARE_DOING}", weak=True),
    task_pattern(rf"(?P<work>[^,;.:!?]+?) (?:долж[а-яё]+) быть {_READY}\b"),
    task_pattern(rf"(?P<work>[^,;.:!?]+?) (?:будет|будут) {_READY}\b", weak=True),
    task_pattern(r"(?P<work>[^,;.:!?]+?) нуж(?:ен|на|но|ны)\b", weak=True),
    task_pattern(r"\bнуж(?:ен|на|ны)\b", weak=True),
    task_pattern(rf"\b(?:дедлайн|срок(?: сдачи)?)(?: по| для| на)? (?P<work>[^—–:,.]+?){_COLON}", weak=True),
    task_pattern(rf"^\W*(?:пожалуйста,? )?{_ORDER}", asks=True, weak=True),
    task_pattern(rf"^\W*{_INFINITIVE}", weak=True),
)  # fmt: skip

# «… и отправит им»: что ещё сделает тот же человек.
AND_ALSO = rf",?\s+(?:и|а потом|потом|затем|а затем|и потом)\s+(?=(?:{_THIRD.replace('verb', 'third')}|{_INFINITIVE}))"
