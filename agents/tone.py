"""Words that carry feeling, with how much of it: from −3 to 3."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from language.sentences import sentences
from language.words import stem, words

_WORDS = {
    3: """
    amazing awesome brilliant delighted ecstatic excellent fantastic incredible love loved overjoyed perfect superb
    thrilled wonderful великолепно восторг восторге восхитительно гениально гордость горжусь идеально люблю обожаю
    отлично превосходно прекрасно потрясающе счастлив счастлива счастье супер ура восхищён восхищена блестяще круто
    """,
    2: """
    beautiful celebrate cheerful enjoy enjoyed excited fun glad good-natured grateful great happy hooray impressed
    inspired joy lovely nice pleased proud relieved smile smiling success successful win yay весело благодарен
    благодарна благодарность вдохновляет доволен довольна довольны замечательно здорово классно молодец молодцы
    нравится понравилось порадовал порадовала победа победили рад рада рады радость радует радостно спасибо удача
    успех успешно справились справился справилась хвалит хвалят шикарно приятно красота повезло улыбка легче
    """,
    1: """
    better calm comfortable confident easy fine fond good helpful hope hopeful interesting like liked ok okay
    optimistic promising ready relaxed smooth smoothly thank thanks well works working бодро вовремя выспался
    выспалась готово интересно лучше надеюсь неплохо нормально окей оптимизм получилось получается полезно спокойно
    удобно уверен уверена уютно хорошо хороший хорошая хорошие ценю
    """,
    -1: """
    anxious behind boring busy concern concerned confused delay delayed difficult doubt doubts hard issue late
    lonely miss missed nervous problem problems sorry stuck tense tired tricky unclear unsure worried worries worry
    worse боюсь волнуюсь волнует грустно жаль жалко задержка мешает непонятно нервничаю опаздываем опоздали одиноко
    переживаю плохо плохой плохая проблема проблемы путаница скучно сложно сомневаюсь сомнения сомнение стыдно
    тревожно тревога тревожит встревожен трудно тяжело устал устала устали хуже страшно медленно ошибка неудобно
    неприятно скучаю обидно
    """,
    -2: """
    afraid angry annoyed annoying bad broken complain complained complaint cry crying disappointed disappointing
    exhausted fail failed failing failure frustrated frustrating ill irritated lost mad mess overwhelmed pain ruined
    sad scared sick stress stressed stressful stupid terrified ugly unfair unhappy upset useless waste wrong бардак
    бесит бесят беспокоит боль больно виноват виновата враньё выгорел выгорела горе достало достали злит злюсь зол
    зла измотан измотана измучен кошмар ломается накипело напрягает напряжение недоволен недовольна недовольны
    несправедливо обидел обидели отстой паника паникую плачу провал провалили раздражает раздражён раздражена
    разочарован разочарована расстроен расстроена рухнуло сломалось сломался сорвали срыв стресс тошно бесполезно
    хамит хамство жалоба жалуется жалуются безнадёжно
    """,
    -3: """
    awful catastrophe depressed despair desperate devastated disaster disgusting furious hate hated hell hopeless
    horrible miserable nightmare outrageous panic terrible unacceptable unbearable worst взбешён взбешена
    возмутительно депрессия катастрофа мерзко мерзость невыносимо ненавижу омерзительно отвратительно отчаяние
    отчаянии позор ужас ужасно ужасный ужасная ужасные худший ад
    """,
}  # fmt: skip
EMOJI = {
    **dict.fromkeys("😀😃😄😁😊🙂😍🥰😘🤗🎉🥳👍💪❤🧡💛💚💙💜🙌👏🔥✨😎🚀🏆☀", 2.0),
    **dict.fromkeys("😕😟🙁☹😔😞😒😩😫😓😬🤦😰😥", -2.0),
    **dict.fromkeys("😢😭😡😠🤬😱💔👎🤮😤", -3.0),
}
_PHRASES = {
    3: "жду не дождусь | гора с плеч",
    2: "well done | good job | good work | good news | looking forward | look forward | can't wait | так держать | "
    "на высоте",
    1: "no problem | not bad | без проблем | ничего страшного | не переживай | по плану",
    -1: "no idea | с ума сойти",
    -2: "giving up | give up | fell apart | falling apart | falls apart | falling behind | на нервах | "
    "не годится | всё плохо | в шоке | в тупике",
    -3: "fed up | can't stand it | can't stand this | can't take it | can't take this | burned out | burnt out | "
    "at my limit | sick of | нет сил | сил нет | сил больше нет | сыт по горло | сыта по горло | всё пропало | "
    "опускаются руки | руки опускаются | не могу больше | больше не могу | в ярости | хуже некуда",
}
_FACES = {r"(?<![\w:;])\){2,}|(?<=[^\W\d])\)+(?=\s|$)|[:;=]-?[)D]": 1.5, r"\({2,}|[:;=]-?\(": -1.5}
# A "not" reaches no further than its clause.
_CLAUSE = re.compile(r"[,;:—–]")
_REACH_WORDS = 3
_NEGATED = -0.6
_EXCLAIMED = 1.15
_MOST_EXCLAMATIONS = 3
# How much feeling it takes to sound half as strong as can be.
_SCALE = 8.0
_MOST_EVIDENCE = 8


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Said of nothing good or bad by itself, it makes what follows stronger or weaker.
STRONGER = _listed(
    """
    absolutely completely deeply extremely incredibly really so super terribly totally truly utterly very
    абсолютно безумно весьма жутко крайне невероятно очень просто реально сильно совершенно совсем страшно так такой
    такая такие ужасно чертовски
    """
)
WEAKER = _listed(
    """
    bit fairly kinda kind little rather slightly somewhat sort
    вроде малость немного несколько отчасти слегка чуть
    """
)
NEGATIONS = _listed(
    """
    no not never none nothing without hardly neither nor cannot can't don't doesn't didn't isn't wasn't aren't weren't
    won't wouldn't couldn't ain't haven't hasn't
    не ни нет без никогда вовсе отнюдь
    """
)


@cache
def phrases() -> tuple[tuple[re.Pattern[str], float], ...]:
    """Phrases that carry feeling as a whole, with their weights."""
    spoken = {
        rf"\b{phrase.strip().replace('ё', '[её]')}\b": float(weight)
        for weight, listed in _PHRASES.items()
        for phrase in listed.split("|")
    }
    return tuple((re.compile(pattern, re.IGNORECASE), weight) for pattern, weight in (spoken | _FACES).items())


@cache
def weights() -> dict[str, float]:
    """Weight of feeling by stem, from −3 to 3."""
    return {stem(word): float(weight) for weight, words in _WORDS.items() for word in words.split()}


_STRONGER, _WEAKER, _SHOUTED = 1.5, 0.5, 1.4


@dataclass(frozen=True)
class ToneAnalysis:
    """A tone with the words that it was heard in, as they were written."""

    value: float
    evidence: tuple[str, ...] = ()


def analyse_tone(text: str) -> ToneAnalysis:
    heard = [part for sentence in sentences(text) for part in _heard(sentence)]
    total = math.fsum(weight for _, weight in heard)
    evidence = dict.fromkeys(said for said, weight in heard if weight * total >= 0)
    value = total / math.sqrt(total * total + _SCALE)
    return ToneAnalysis(round(value, 3), tuple(evidence)[:_MOST_EVIDENCE])


def combine_tones(tones: Iterable[ToneAnalysis]) -> ToneAnalysis:
    """The tone of several texts by one person: later ones count for more, plain ones for less."""
    weighed = [((1 + 0.1 * place) * (1.0 if tone.evidence else 0.25), tone) for place, tone in enumerate(tones)]
    total = math.fsum(weight for weight, _ in weighed)
    if not total:
        return ToneAnalysis(0.0)
    value = math.fsum(weight * tone.value for weight, tone in weighed) / total
    evidence = dict.fromkeys(said for _, tone in weighed if tone.value * value > 0 for said in tone.evidence)
    return ToneAnalysis(round(value, 3), tuple(evidence)[:_MOST_EVIDENCE])


def _heard(sentence: str) -> Iterable[tuple[str, float]]:
    """Words, phrases and emoji of a sentence that carry feeling, with their weights."""
    louder = _EXCLAIMED ** min(sentence.count("!"), _MOST_EXCLAMATIONS)
    rest = sentence
    for pattern, weight in phrases():
        for found in pattern.finditer(sentence):
            yield found[0].strip(), weight * louder
        rest = pattern.sub(" , ", rest)
    yield from ((mark, EMOJI[mark]) for mark in sentence if mark in EMOJI)
    for clause in _CLAUSE.split(rest):
        spoken = words(clause)
        yield from ((spoken[at], weight * louder) for at, weight in _weighed(spoken))


def _weighed(spoken: list[str]) -> Iterable[tuple[int, float]]:
    for at, word in enumerate(spoken):
        weight = weights().get(stem(word), 0.0)
        if not weight or _only_strengthens(spoken, at):
            continue
        before = [each.lower().replace("’", "'") for each in spoken[max(0, at - _REACH_WORDS) : at]]
        yield at, weight * _coloured(before) * (_SHOUTED if _is_shouted(word) else 1.0)


def _only_strengthens(spoken: list[str], at: int) -> bool:
    """«Ужасно рада» is glad, not awful."""
    following = spoken[at + 1] if at + 1 < len(spoken) else ""
    return spoken[at].lower() in STRONGER and bool(weights().get(stem(following)))


def _coloured(before: list[str]) -> float:
    factor = 1.0
    if any(word in NEGATIONS or word.endswith("n't") for word in before):
        factor *= _NEGATED
    if before and before[-1] in STRONGER:
        factor *= _STRONGER
    if any(word in WEAKER for word in before[-2:]):
        factor *= _WEAKER
    return factor


def _is_shouted(word: str) -> bool:
    return len(word) > 2 and word.isupper()
