"""The language that a text is in, of those that models fall into: by script, then by its function words."""

import re
import unicodedata
from collections import Counter

from language.words import language_of, words

# By ISO 639-1: English name of the language and the script that it is written in.
LANGUAGES = {
    "ar": ("Arabic", "ARABIC"),
    "de": ("German", "LATIN"),
    "en": ("English", "LATIN"),
    "es": ("Spanish", "LATIN"),
    "fr": ("French", "LATIN"),
    "it": ("Italian", "LATIN"),
    "ja": ("Japanese", "CJK"),
    "ko": ("Korean", "HANGUL"),
    "nl": ("Dutch", "LATIN"),
    "pl": ("Polish", "LATIN"),
    "pt": ("Portuguese", "LATIN"),
    "ru": ("Russian", "CYRILLIC"),
    "uk": ("Ukrainian", "CYRILLIC"),
    "zh": ("Chinese", "CJK"),
}
_SCRIPTS = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}
# The most frequent words that mean nothing else in the other languages here.
_FUNCTION_WORDS = {
    language: tuple(frequent.split())
    for language, frequent in {
        "de": "der die das und ist nicht ein eine mit auf für von dem den sich auch des wird sind im zu aus bei nach",
        "en": "the and of is that it was with for this are be not have from by which they were has their his her you",
        "es": "el los las que y es una por con del para se su más como pero sus al fue son",
        "fr": "le les et est une que qui dans pour pas sur des du avec ce cette sont plus ne au aux ont il elle",
        "it": "il di che è per della del sono gli nel alla una non più anche con dei delle questo",
        "nl": "het een van en dat niet zijn op te aan voor met hij maar ook wordt bij naar door",
        "pl": "i w na nie się jest że do z jak ale po co przez dla był tym od które",
        "pt": "os um uma não para com mais as dos como mas foi ao ele das tem seu sua são em",
        "ru": "и в не на что он с как это по но из у за же от было так к для был они мы все",
        "uk": "і в не на що він з як це але у за від було та до для були ми все є або чи його її",
    }.items()
}
_FEWEST_LETTERS, _FEWEST_WORDS = 40, 40
# Names and terms are often of another script, and so are passages in a bilingual table.
_OWN_SCRIPT = 0.3
# Prose has two to five times these shares of function words of its language; tables and verse may have fewer.
_TOO_FEW_OWN, _ENOUGH_OTHER = 0.05, 0.12
_KANA = re.compile(r"[\u3040-\u30ff]")
_QUOTED = re.compile(r"^[ \t]*>.*$|```.*?```|`[^`\n]*`|«[^»]*»|“[^”]*”|\"[^\"\n]*\"", re.MULTILINE | re.DOTALL)


def name_of(language: str) -> str:
    """English name of a language by its code; a script's name is its own."""
    return LANGUAGES[language][0] if language in LANGUAGES else language


def identify(text: str) -> str:
    """Code of the language of a text, or name of its script; Russian or English in doubt."""
    usual = language_of(text).value
    return other_language(text, usual) or usual


def other_language(text: str, expected: str) -> str | None:
    """Code, or script, of the language of a text that is clearly not in the expected one; quotations do not count.

    None in doubt: of a short text, of a table, of a text a good part of which is in the expected language.
    """
    own = _QUOTED.sub(" ", text)
    scripts = _scripts(own)
    if expected not in LANGUAGES or (letters := scripts.total()) < _FEWEST_LETTERS:
        return None
    script = LANGUAGES[expected][1]
    if scripts[script] / letters < _OWN_SCRIPT:
        return _by_script(own, scripts.most_common(1)[0][0])
    return _by_function_words(own, expected)


def _scripts(text: str) -> Counter[str]:
    """Letters of a text by their script."""
    found: Counter[str] = Counter()
    for letter, count in Counter(text).items():
        name = unicodedata.name(letter, "").split(" ")[0] if letter.isalpha() else ""
        if name:
            found[_SCRIPTS.get(name, name)] += count
    return found


def _by_script(text: str, script: str) -> str:
    if script == "CJK":
        return "ja" if _KANA.search(text) else "zh"
    shares = _shares(text)
    written_so = [code for code, (_, of_script) in LANGUAGES.items() if of_script == script]
    return max(written_so, key=lambda code: shares.get(code, 0.0), default=script.capitalize())


def _by_function_words(text: str, expected: str) -> str | None:
    if expected not in _FUNCTION_WORDS or len(text.split()) < _FEWEST_WORDS:
        return None
    shares = _shares(text)
    best = max(shares, key=lambda code: shares[code])
    return best if shares[expected] < _TOO_FEW_OWN and shares[best] >= _ENOUGH_OTHER else None


def _shares(text: str) -> dict[str, float]:
    said = Counter(word.lower() for word in words(text))
    total = max(1, said.total())
    return {code: sum(said[word] for word in own) / total for code, own in _FUNCTION_WORDS.items()}
