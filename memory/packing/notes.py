"""Notes by rules: sentences in which a person tells what happened, a preference, an instruction or a number."""

import re
from collections.abc import Iterator, Sequence

from bus_schema.episodes import Note, NoteKind, RawTurn
from language.dates.intervals import date_spans
from language.russian import word_forms
from language.statements import FIRST_PERSON
from language.words import has_cyrillic, is_base, is_past, without_gaps, words
from memory.packing.decisions import TO_REMEMBER
from memory.packing.entities import amounts_in
from memory.packing.sentences import is_question, sentences_of

_MIN_WORDS = 3
# Share of a word's uses of which a reading is not rare.
_FAIR = 0.25
_I = (
    r"(?:i|we)(?:'ve|'m| have| am| are)?"
    r"(?: (?:also|always|really|usually|still|just|much|absolutely|generally|tend to|do))*"
)
_PREFERENCE = re.compile(
    rf"\b{_I} (?:prefer\w*|love[ds]?|loving|enjoy\w*|adore|hate|dislike|avoid|can't stand|cannot stand|into|fond of"
    r"|(?:don't|do not) (?:\w+ )?(?:like|want|eat|drink|enjoy)|allergic to|(?:more )?comfortable with|like)\b"
    r"|\bi'd (?:rather|prefer)\b|\b(?:my|our) (?:\w+ ){0,2}(?:fav(?:ou)?rites?|preference|preferred|go-to)\b"
    r"|\bfav(?:ou)?rites?\b[^.!?]{0,40}\b(?:is|are|of mine)\b|\b(?:works|suits) (?:me )?best(?: for me)?\b"
    r"|\bi(?:'m| am) (?:a )?(?:vegetarian|vegan)\b"
    r"|\b(?:предпочита[юе]\w*|обожаю|ненавижу|терпеть не могу|мне (?:\w+ ){0,2}(?:нрав\w+|удобн\w+|ближе|подходит)"
    r"|(?:не )?люблю|мы (?:не )?любим|(?:мо[йяеёи]|мою|моего|моих|наш\w*) (?:\w+ )?любим\w+"
    r"|аллергия|непереносимость|(?:я|мы) не (?:ем|пью|едим|пь[её]м))\b",
    re.IGNORECASE,
)
# An order to do something; whether the word is a verb is looked up.
_ORDER = re.compile(
    r"(?:^|[,;:—–-]\s*)(?:please |and |so |also |but )*(?:always|never|don't|do not) (\w+)", re.IGNORECASE
)
_INSTRUCTION = re.compile(
    r"\b(?:from now on|going forward|henceforth|(?:when|whenever|every time|if) i ask)\b"
    r"|\bplease (?:avoid|always|never)\b"
    r"|\bi(?:'d| would)? (?:want|like|need|prefer) you to\b|\byou (?:should|must) (?:always|never)\b"
    r"|(?:^|[,;:—–-]\s*)(?:пожалуйста,? )?(?:всегда|никогда не|больше не|впредь|отныне|с этого момента)\s"
    r"|\b(?:отвечай|пиши|называй|обращайся|используй|добавляй|присылай|указывай|не забывай|напоминай)(?:те)?\b"
    r"|\bкогда я (?:спрашиваю|прошу|пишу)\b|\b(?:я хочу|прошу|хотел[аи]? бы),? чтобы ты\b",
    re.IGNORECASE,
)
_WE = re.compile(r"\b(?:we|our|us|мы|наш\w*|нам|нас)\b", re.IGNORECASE)


def notes_of(turns: Sequence[RawTurn]) -> tuple[Note, ...]:
    """Notes that rules find, in the order of the turns, without an assistant's; a sentence may be of several kinds."""
    by_key: dict[tuple[NoteKind, str], Note] = {}
    people = [turn for turn in turns if turn.role == "user" or turn.speaker is not None]
    # People who talk with each other have names; they instruct no assistant.
    to_assistant = {turn.raw_log_id for turn in people if turn.speaker is None}
    for sentence in sentences_of(people):
        for kind in _kinds(sentence.text, is_to_assistant=sentence.raw_log_id in to_assistant):
            note = Note(kind=kind, text=sentence.text, raw_log_ids=(sentence.raw_log_id,))
            known = by_key.setdefault((kind, note.text.casefold()), note)
            if known is not note:
                ids = dict.fromkeys((*known.raw_log_ids, sentence.raw_log_id))
                by_key[kind, note.text.casefold()] = known.model_copy(update={"raw_log_ids": tuple(ids)})
    return tuple(by_key.values())


def _kinds(text: str, *, is_to_assistant: bool) -> Iterator[NoteKind]:
    said = without_gaps(text).replace("’", "'")
    if len(said.split()) < _MIN_WORDS:
        return
    if is_question(said):
        return
    if is_to_assistant and (TO_REMEMBER.search(said) or _INSTRUCTION.search(said) or _is_order(said)):
        yield "instruction"
    if _PREFERENCE.search(said):
        yield "preference"
    if _is_event(said):
        yield "event"
    if any(True for _ in amounts_in(said)):
        yield "number"


def _is_order(said: str) -> bool:
    return any(is_base(match[1].lower()) for match in _ORDER.finditer(said))


def _is_event(said: str) -> bool:
    """Whether a person tells what they did, or what happened, at a time."""
    if not (FIRST_PERSON.search(said) or _WE.search(said)) or not any(True for _ in date_spans(said)):
        return False
    return any(map(_is_told, words(said.lower())))


def _is_told(word: str) -> bool:
    """Whether a word tells of the past, in Russian by a reading that is not rare: «мыла» and «пила» are things, too."""
    if not has_cyrillic(word):
        return is_past(word) or word == "were"
    return any(form.has("VERB", "past") and form.score >= _FAIR for form in word_forms(word))
