"""Words that carry feeling, with how much of it: from −3 to 3."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from language.russian import word_forms
from language.sentences import sentences
from language.words import has_cyrillic, words


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# English words of feeling that the lexicon of VADER lacks, or weighs as if they were said of things.
_ENGLISH = {
    2.0: "relieved grin grinning beaming chuffed buzzing stoked celebrate enjoyed excited hooray yay smiling "
    "pumped smashing blessed gobsmacked yippee",
    1.0: "helpful calm optimistic smoothly works working confident",
    -1.0: "problem tricky unclear unsure drags stuck meh bleak flat delayed",
    -2.0: "worried worry worries worrying anxious tired lonely tense nervous bored homesick afraid nightmare "
    "gutted knackered shattered rubbish overwhelmed exhausted burnt burned livid fuming pants naff grim drained "
    "snowed swamped upset broken annoying complain complained wrong",
}
# What VADER counts as feeling is in everyday talk of work courtesy or matter of fact.
_MATTER_OF_FACT = _listed(
    """
    please thanks thank thankful ok okay help helps helped helping free share shared sharing yes sure ready party
    parties care cares interest interested interesting well true no agree agreed agreement agreeing play played
    playing fire drop dropped cut pay stop stopped sorry number miss missed missing cancel cancelled canceled leave
    left lost block blocked error errors debt emergency chance number welcome save saved saving safe safely safety
    secure security support supported clear cleared clean cleaner easy easier trust kind energy energetic certain
    accept accepted active top original special holiday holidays vacation value valuable positive negative credit
    solution solved solve strong stronger luck original grand like likes liked want wanted hope hopes greet greeting
    greetings dear friend friends kill fight fighting charge charged poison crash alarm alarms drunk hospital sick
    ill illness injury injured accident weak wait waiting demand demands risk risks delay delays shortage warning
    warnings attack pressure problem problems issue faults fault damage damaged lol haha hahaha laugh laughs
    laughing laughed joke joking shed grand ramp king winner dead deadline death dies die died dying kid cancelling
    isolated harm harmed dump dumped fail-safe bug bugs suspended dirty dirtier
    """
)
_LEAST_VALENCE = 1.5
# VADER's scale ends at 4, this one at 3.
_MOST_VALENCE = 3.0
EMOJI = {
    **dict.fromkeys("😀😃😄😁😊🙂😍🥰😘🤗🎉🥳👍💪❤🧡💛💚💙💜🙌👏🔥✨😎🚀🏆☀", 2.0),
    **dict.fromkeys("😕😟🙁☹😔😞😒😩😫😓😬🤦😰😥", -2.0),
    **dict.fromkeys("😢😭😡😠🤬😱💔👎🤮😤", -3.0),
}
_PHRASES = {
    3: "жду не дождусь | гора с плеч | камень с души | на седьмом небе | вне себя от (?:радости|счастья) | "
    "over the moon | on cloud nine | weight off (?:my|our) (?:shoulders|mind) | made my (?:day|week|year) | "
    "walking on air | on top of the world | best (?:day|news|week|thing|birthday|present|weekend|night)",
    2: "лучш(?:ий|ая|ее) (?:день|вечер|новость|подарок|выходные) | на душе (?:тепло|легко|светло|хорошо) | можно "
    "выдохнуть | "
    "нет слов от | made me (?:smile|laugh|happy) | feel human again | pinching myself | pinch myself | got the "
    "(?:job|keys|offer|part|grant|flat|house) | "
    "passed (?:my|the|her|his) (?:[a-z]+ )?(?:test|exam|exams|finals|driving test) | she said yes | he said yes |"
    " all clear | well done | good job | good work | good news | looking forward | look forward | can't wait | "
    "так держать | "
    "на высоте | не нарад(?:уюсь|уется|овался|овалась) | душа по[её]т | от (?:радости|счастья) | день удался | "
    "жизнь налаживается | как гора с плеч | "
    "ни одной? (?:бага|ошибки|замечания|жалобы) | отлегло | can't complain | can't stop (?:smiling|grinning|"
    "laughing) | slept like a (?:baby|log) | "
    "so good | nailed it | we did it | i did it | happy tears | couldn't be happier | never been happier | such "
    "a relief",
    1: "no problem | not bad | без проблем | ничего страшного | не переживай | по плану | mustn't grumble",
    0: "good morning | good afternoon | good evening | good night | sounds good | nice one | no worries | good "
    "one | good point | "
    "good luck | рад знакомству | рада знакомству | всего хорошего ",
    -1: "с ума сойти | don't like | didn't like | doesn't like",
    -2: "голова кругом | голова идёт кругом | не задал(?:ся|ось|ась) | опять двадцать пять | ничего не вышло | "
    "всё зря | "
    "end of my rope | can do one | over it | (?:i|we|really|so) miss (?:him|her|you|them|home|it|my) | let me go "
    "| made redundant | laid off | "
    "got sacked | broke up with me | dumped me | finest hour | nobody (?:listens|cares|asked|helps) | giving up |"
    " give up | fell apart | falling apart | falls apart | falling behind | на нервах | "
    "не годится | всё плохо | в шоке | в тупике | до сл[её]з | не могу спать | спать не могу | места себе не "
    "нахо(?:жу|дит|дил|дила) | "
    "на душе (?:кошки|тяжело|паршиво|мерзко|пусто) | кошки скребут | из рук валится | как на иголках | глаза на "
    "мокром месте | "
    "(?:не|ничего не) хочется | пропало (?:всякое )?желание | всё равно всем | (?:feel|feeling|felt) (?:so |"
    "really |a bit |very |pretty )?"
    "(?:low|down|rough|flat|empty|numb|lost|rubbish|awful|off|alone|left out|useless|guilty|sick|small|old) | "
    "could cry | want to cry | "
    "in tears | in bits | in pieces | on edge | at a loss | can't sleep | couldn't sleep | didn't sleep | no "
    "energy | let (?:me|us) down | "
    "can't cope | (?:i'm|so) done with | can't do this | could do without | (?:so|pretty|really|bit) down | "
    "(?:nothing's|everything's|nothing is|everything is) going (?:right|wrong) | (?:no one|nobody) (?:turned up|"
    "came|showed up|remembered) | heart's not in it | can't face | not (?:ok|okay|coping|great|fine) | doing my "
    "head in | dreading | wish i hadn't",
    -3: "fed up | can't stand it | can't stand this | can't take it | can't take this | burned out | burnt out | "
    "at my limit | sick of | нет сил | сил нет | сил больше нет | сыт по горло | сыта по горло | всё пропало | "
    "опускаются руки | руки опускаются | не могу больше | больше не могу | в ярости | хуже некуда | had enough | "
    "wits' end | last straw | sick to death | had it up to here | worst (?:day|week|news|night|thing) | хоть "
    "(?:вой|плачь|волком) | "
    "сил никаких | никаких сил | ненавижу всё | жить не хочется | на пределе | всё достал[оаи] | end of my "
    "tether | could scream",
}
_TEARS = "😢😭"
_FACES = {r"(?<![\w:;])\){2,}|(?<=[^\W\d])\)+(?=\s|$)": 0.5, r"[:;=]-?[)D]": 1.5, r"\({2,}|[:;=]-?\(": -1.5}
# A "not" reaches no further than its clause.
_CLAUSE = re.compile(r"[,;:—–]")
_REACH_WORDS = 3
_NEGATED = -0.6
_EXCLAIMED = 1.15
_MOST_EXCLAMATIONS = 3
# How much feeling it takes to sound half as strong as can be.
_SCALE = 8.0
_MOST_EVIDENCE = 8


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
    spoken = {rf"\b(?:{phrase})\b": weight for phrase, weight in _weighed_phrases().items()}
    return tuple((re.compile(pattern, re.IGNORECASE), weight) for pattern, weight in (spoken | _FACES).items())


@cache
def _any_phrase() -> re.Pattern[str]:
    """All of them at once, which most sentences have none of: eight times as fast as one after the other."""
    return re.compile("|".join((rf"\b(?:{'|'.join(_weighed_phrases())})\b", *_FACES)), re.IGNORECASE)


def _weighed_phrases() -> dict[str, float]:
    return {
        _with_yo(phrase.strip()): float(weight) for weight, listed in _PHRASES.items() for phrase in listed.split(" | ")
    }


@cache
def english_weights() -> dict[str, float]:
    """Weight of feeling by word: the lexicon of VADER (Hutto and Gilbert 2014), as far as it is one of feelings."""
    from vader.data.lexicon import LEXICON

    found = {
        word: max(-_MOST_VALENCE, min(_MOST_VALENCE, valence))
        for word, valence in LEXICON.items()
        if word.isalpha() and abs(valence) >= _LEAST_VALENCE and word not in _MATTER_OF_FACT
    }
    return found | {word: weight for weight, words in _ENGLISH.items() for word in words.split()}


@cache
def russian_weights() -> dict[str, float]:
    """Weight of feeling by dictionary form, from −3 to 3."""
    text = (resources.files("language") / "data" / "valence_ru.txt").read_text(encoding="utf-8")
    weights: dict[str, float] = {}
    weight = 0.0
    for line in text.splitlines():
        if line.startswith("["):
            weight = float(line.strip("[]"))
        elif not line.startswith("#"):
            weights.update(dict.fromkeys(line.split(), weight))
    return weights


@lru_cache(maxsize=4096)
def weight_of(word: str) -> float:
    """Weight of feeling of a word in any of its forms, 0 where it has none."""
    lowered = word.lower().replace("ё", "е").replace("’", "'")
    if not has_cyrillic(lowered):
        return english_weights().get(lowered, 0.0)
    lexicon = russian_weights()
    if lowered in lexicon:
        return lexicon[lowered]
    first = word_forms(word.lower())
    lemmas = (form.lemma.replace("ё", "е") for form in first if form.score >= _LIKELY_READING)
    return next((lexicon[lemma] for lemma in lemmas if lemma in lexicon), 0.0)


def _with_yo(phrase: str) -> str:
    """A pattern in which «ё» is written or not."""
    return phrase if "[её]" in phrase else phrase.replace("ё", "[её]")


_STRONGER, _WEAKER, _SHOUTED = 1.5, 0.5, 1.4
_LIKELY_READING = 0.2
_FELT = 0.4


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


def is_felt(text: str) -> bool:
    """Whether a text tells of an opinion or a feeling rather than a state of things."""
    return abs(analyse_tone(text).value) >= _FELT


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
    for pattern, weight in phrases() if _any_phrase().search(sentence) else ():
        if weight:
            yield from ((found[0].strip(), weight * louder) for found in pattern.finditer(sentence))
        rest = pattern.sub(" , ", rest)
    marks = [mark for mark in sentence if mark in EMOJI]
    # Tears beside a heart are of joy.
    is_joy = any(EMOJI[mark] > 0 for mark in marks)
    yield from ((mark, abs(EMOJI[mark]) if is_joy and mark in _TEARS else EMOJI[mark]) for mark in marks)
    for clause in _CLAUSE.split(rest):
        spoken = words(clause)
        yield from ((spoken[at], weight * louder) for at, weight in _weighed(spoken))


def _weighed(spoken: list[str]) -> Iterable[tuple[int, float]]:
    for at, word in enumerate(spoken):
        weight = weight_of(word)
        if not weight or _only_strengthens(spoken, at):
            continue
        before = [each.lower().replace("’", "'") for each in spoken[max(0, at - _REACH_WORDS) : at]]
        yield at, weight * _coloured(before) * (_SHOUTED if _is_shouted(word) else 1.0)


def _only_strengthens(spoken: list[str], at: int) -> bool:
    """«Ужасно рада» is glad, not awful."""
    following = spoken[at + 1] if at + 1 < len(spoken) else ""
    return spoken[at].lower() in STRONGER and bool(following and weight_of(following))


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
