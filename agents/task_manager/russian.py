"""Verbs of work in Russian, in the forms in which people promise, ask, report."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from pymorphy3 import MorphAnalyzer
from pymorphy3.analyzer import Parse

from agents.task_manager.patterns import ImpliedOwner, task_pattern

# Verbs of work in the perfective: people promise, ask for and report them.
_PERFECTIVE = """
арендовать взять включить внедрить внести восстановить выбрать выдать вызвать выкупить выложить выписать выпустить
выслать выставить добавить доделать дописать дополнить доработать доставить забронировать заверить завершить завести
загрузить заказать закончить закрыть закупить залить заменить записать запланировать заполнить запросить запустить
зарегистрировать зафиксировать изменить измерить изучить исправить купить назначить найти нанять напечатать написать
нарисовать настроить обеспечить обновить обработать обучить объявить оплатить опросить опубликовать организовать
освободить отгрузить отдать отладить отослать отправить отремонтировать отсканировать оформить оценить перевести
перевыпустить передать переделать переписать перепроверить переслать пересобрать пересчитать перечислить погасить
подать подготовить подключить подобрать подписать подтвердить покрасить получить поправить поставить построить
посчитать починить предоставить предупредить пригласить придумать принять прислать проанализировать проверить провести
продать продлить проработать протестировать прочитать развернуть разгрузить разместить разобрать разослать разработать
распечатать рассчитать реализовать решить сверить сверстать сдать сделать смонтировать снять собрать согласовать
создать сократить составить спланировать спроектировать убрать увеличить удалить улучшить упаковать установить
утвердить уточнить
"""
# Those whose participle reports no work done: «показан», «начат».
_WITHOUT_PARTICIPLE = """
вернуть встретить встретиться выкатить выяснить дать договориться донести забрать заехать зайти заняться начать
обзвонить обсудить объяснить ответить откатить отнести перезвонить поговорить подвести поделиться позвонить поздравить
показать поменять помочь посетить посмотреть предложить презентовать привезти принести пройти проконтролировать
проследить просмотреть разобраться рассказать рассмотреть связаться скачать скинуть созвониться сообщить сравнить
сходить съездить узнать
"""
# Verbs whose present tense speaks of the future along with a date.
_ONGOING = """
выкатывать выпускать встречаться готовить делать доделывать заканчивать закрывать запускать обсуждать отправлять
писать показывать презентовать проверять проводить сдавать собирать созваниваться тестировать
"""
# Forms that the dictionary lacks.
_IMPERATIVES = {"заехать": "заезжай"}
_PARTICIPLES = {"спланировать": ("спланирован", "спланирована", "спланировано", "спланированы")}


@dataclass(frozen=True)
class Verb:
    """Forms of a verb: "I will", "they will" (singular), "we will", "do it!", "has done", "is done"."""

    infinitive: str
    first: str
    third: str
    plural: str
    imperative: str
    pasts: tuple[str, ...]
    participles: tuple[str, ...]


@cache
def verbs() -> tuple[Verb, ...]:
    """Verbs of work in the perfective."""
    lacking = frozenset(_WITHOUT_PARTICIPLE.split())
    return tuple(_inflected((*_PERFECTIVE.split(), *lacking), lacking))


@cache
def ongoing() -> tuple[Verb, ...]:
    """Verbs of work in the imperfective."""
    return tuple(_inflected(_ONGOING.split(), frozenset(_ONGOING.split())))


@cache
def infinitives() -> dict[str, str]:
    """The infinitive of every form, «ё» written as «е»."""
    forms = [(form, verb) for verb in ongoing() for form in (verb.first, verb.third, verb.plural)]
    for verb in verbs():
        present = (verb.infinitive, verb.first, verb.third, verb.plural, verb.imperative, f"{verb.imperative}те")
        forms += [(form, verb) for form in (*present, *verb.pasts, *verb.participles)]
    return {plain(form): verb.infinitive for form, verb in forms}


def _inflected(infinitives: Iterable[str], lacking: Collection[str]) -> Iterator[Verb]:
    """Forms by pymorphy3, without participles of the verbs `lacking` them."""
    # Its dictionary takes 30 MiB, which are freed once the forms are made.
    analyzer = MorphAnalyzer()
    for infinitive in sorted(infinitives):
        parsed = next(parse for parse in analyzer.parse(infinitive) if parse.tag.POS == "INFN")
        tense = "futr" if parsed.tag.aspect == "perf" else "pres"

        def form(*grammemes: str, parsed: Parse = parsed) -> str:
            inflected = parsed.inflect(frozenset(grammemes))
            return inflected.word if inflected else ""

        genders = (("masc",), ("femn",), ("neut",), ("plur",))
        participles = tuple(form("PRTS", "past", "pssv", *gender) for gender in genders)
        yield Verb(
            infinitive,
            form("1per", "sing", tense),
            form("3per", "sing", tense),
            form("1per", "plur", tense),
            _IMPERATIVES.get(infinitive) or form("impr", "sing", "excl"),
            tuple(form("past", *gender) for gender in genders),
            () if infinitive in lacking else _PARTICIPLES.get(infinitive, participles),
        )


def plain(word: str) -> str:
    """A word as it is compared."""
    return word.lower().replace("ё", "е")


def _forms(forms: Iterable[str]) -> str:
    # «ё» is written or not, as people like.
    return "(?P<verb>" + "|".join(sorted((form.replace("ё", "[её]") for form in forms), key=len, reverse=True)) + r")\b"


_NOUNS = (
    "часть|память|ночь|речь|дочь|помощь|сеть|область|очередь|мать|путь|смерть|жизнь|почти|дети|новости|вести|сети|"
    "сути|пути"
)
_INFINITIVE = rf"(?P<verb>(?!(?:{_NOUNS})\b)[а-яё]+(?:ть|ти|чь)(?:ся|сь)?)\b"
_FIRST = _forms(verb.first for verb in verbs())
_THIRD = _forms(verb.third for verb in verbs())
_PLURAL = _forms(verb.plural for verb in verbs())
_ORDER = _forms(form for verb in verbs() for form in (verb.imperative, f"{verb.imperative}те"))
_IS_DOING = _forms(verb.third for verb in ongoing())
_AM_DOING = _forms(verb.first for verb in ongoing())
_ARE_DOING = _forms(verb.plural for verb in ongoing())
_FEW = r"(?P<few>(?:\s+(?!не\b|ли\b)[^\s,;:!?]+){0,3}?)\s+"
_LITTLE = r"(?:\s+[^\s,.;:!?]+)?\s+"
_NEED = r"(?<!\bне )\b(?:нужно|надо|необходимо|требуется|следует|осталось|предстоит|прид[её]тся)\b(?! было)"
_READY = r"(?:готов|сдан|сделан|отправлен|подписан|оплачен|запущен)[аоы]?"
_COLON = r"\s*(?::|—|–|\s-\s)\s*"

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
# «… и отправит им»: что ещё сделает тот же человек.
AND_ALSO = rf",?\s+(?:и|а потом|потом|затем|а затем|и потом)\s+(?=(?:{_THIRD.replace('verb', 'third')}|{_INFINITIVE}))"
