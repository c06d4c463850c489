"""Words that carry feeling, with how much of it: from −3 to 3."""

import re
from functools import cache

from agents.text import stem


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


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


@cache
def phrases() -> tuple[tuple[re.Pattern[str], float], ...]:
    """What carries feeling as a whole, with how much."""
    spoken = {
        rf"\b{phrase.strip().replace('ё', '[её]')}\b": float(weight)
        for weight, listed in _PHRASES.items()
        for phrase in listed.split("|")
    }
    return tuple((re.compile(pattern, re.IGNORECASE), weight) for pattern, weight in (spoken | _FACES).items())


@cache
def weights() -> dict[str, float]:
    """How much feeling each stem carries."""
    return {stem(word): float(weight) for weight, words in _WORDS.items() for word in words.split()}
