"""Reports on tasks: done, moved, cancelled, reassigned."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from agents.fragments import MessageSentence
from agents.people import KnownPeople, Mention
from language.dates.expressions import END_OF_DAY, SpokenDate, dates_in, without_dates
from language.russian import WordForm, word_forms
from language.words import has_cyrillic, is_past, words

Change = Literal["done", "moved", "cancelled", "reassigned"]
_CLAUSES = re.compile(r",\s*(?:а|но|and|but)\s+|[;:]\s*|\.\s+|,\s+(?=\w)|\s(?:and|but|а|но)\s|\s[—–]\s", re.IGNORECASE)


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


# What is said of plans that change, of whatever they are of.
_MOVED = _pattern(
    r"\b(?:перенес\w*|перен[её]с\w*|перенос\w*|перенош\w*|сдвига\w*|сдвин\w*|отлож\w*|отклад\w*|передвин\w*|"
    r"продл\w*|переигра\w*|переезжает)\b",
    r"\b(?:новый срок|срок теперь|не раньше|не спеши\w*|не горит|терпит|подожд[её]т)\b",
    r"\b(?:mov(?:e|ed|ing)|postpon(?:e|ed|ing)|push(?:ed|ing)?|resched\w*|delay(?:ed|ing)?|shift(?:ed|ing)?|slid|"
    r"slide)\b",
    r"\b(?:extend(?:ed|ing)?|slip(?:s|ped)?|new deadline|deadline is now|now due|put(?:ting)? (?:it )?(?:off|"
    r"back)|make it)\b",
    r"\b(?:bump(?:ed|ing)?|instead\b|no rush|can wait|leave (?:it |the .{1,30}? )?(?:till|until)|brought forward)\b",
)
_CANCELLED = _pattern(
    r"\b(?:отмен\w*|отбой|отпада\w*|отпал[аои]?|(?:больше|уже|пока) не (?:нуж\w+|надо|требуется)|не ?актуальн\w*)\b",
    r"\b(?:снима\w+ с|сняли с|забей\w*|отбо[йя]|обойд[её]\w+|накрыл\w+|сорвал\w+|не состоится|без надобности|"
    r"ничего не надо)\b",
    r"\b(?:cancel\w*|call(?:ed|ing)? off|no longer (?:need|necessary|relevant|happening|on)\w*|not needed(?: any "
    r"?more)?)\b",
    r"\b(?:scrap(?:ped|ping)?|drop(?:ped|ping)? the|don't need .*any ?more|(?:is|are|it's) off\b(?! (?:to|for|"
    r"till|until|work|sick|on|limits|school))|binned|ditch\w*)",
    r"\b(?:never ?mind|no need|no \w+ needed|don't (?:order|book|buy|bring|send|ring|call|come|cook|make|wait|"
    r"do)\b|don't bother|not bother\w*|forget (?:about )?(?:the|that|it|my|our)|not happening)\b",
    r"\b(?:delete|remove|drop|удали\w*|убери\w*|вычеркни\w*)\s+(?:(?:the|my|this|эту|мою)\s+)?(?:task|задачу)\b",
    r"\b(?:fell through|off the hook|knock(?:ed)? .* on the head|off the table|not going ahead)\b",
)
# «Не отменяй», "it has not been moved".
_KEPT = _pattern(
    r"\bне\s+(?:надо\s+|нужно\s+|стоит\s+|буд\w+\s+)?(?:отмен|перенос|перенош|перенес|перен[её]с|сдвига|сдвин|отклад|"
    r"отлож)\w*",
    r"(?:n't|\bnot|\bnever)\s+(?:be\s+|been\s+|(?:need|want|have|going)\s+to\s+)*(?:cancel|mov(?:e|ed|ing)\b|postpon|"
    r"resched|delay)\w*",
)
# What ends a plan only where it is clear which: a change of mind, no wish, no use.
_UNWANTED = _pattern(
    r"\b(?:передумал\w*|не (?:надо|нуж\w+|будет|буду|будем|пойду|поеду|стоит|хо(?:чу|чется))|нет смысла|смысла "
    r"нет|сам\w* справ\w+)\b",
    r"\b(?:changed (?:my|our|his|her) mind|not (?:fussed|bothered|doing|going)|don't (?:need|want)|doesn't "
    r"(?:need|want))\b",
    r"\b(?:won't be|isn't (?:on|needed|happening)|decided (?:against|not)|skip\w*|no point|pulled out|sorted it "
    r"(?:him|her)self)\b",
)
_UNDONE = _pattern(
    r"\b(?:если|когда|как только|if|when|once|until|unless|should have|забыл\w*|не успе\w*|forgot\w*|almost|"
    r"nearly|почти)\b"
)
_READY = _pattern(
    r"\b(?:is|are|was|were|'s|been|got|all|it's|they're)(?: now| already| finally| all| just)* "
    r"(?:done|finished|ready|complete|out|live|in|up|over|here|back|working again|arrived|all set|sorted|sent|"
    r"paid|booked|fixed|on (?:its|the) way|signed|"
    r"delivered|with (?:him|her|them)|handed in|taken care of|on your|in your|at your)\b",
    r"^\W*(?:(?:already |just |finally |all )?(?:done|sorted|finished|sent|all done|ready))\b",
    r"\b(?:taken care of|handed in|over and done|ticked off|out of the way|has arrived|have arrived|turned up|up "
    r"and running|good as new|(?:has|have|'s got|'ve got) (?:it|them) ?(?:now)?$|^(?:got|did|sent|have) (?:it|"
    r"them|that))\b|[✅☑✔]|\[x\]",
)
_RU_DONE = _pattern(
    r"\b(?:готов[аоы]?(?! \w+(?:ть|ти)\b)|сделано|вычеркива\w+|вычёркива\w+|больше не(?! нуж| надо| буд)|уже "
    r"(?:в|у|на|дома|здесь|тут|есть)|у (?:тебя|вас|него|не[её]|них) (?:на|в)|на месте|есть$|как нов\w+|в наличии|"
    r"лежит|висит|стоит на)\b"
)
# Past and participles that tell of what came between.
_IN_THE_WAY = _listed("closed shut broken cancelled canceled lost stuck delayed gone sold flooded locked missed forgot")
_RU_NOT_DONE = _pattern(r"\b(?:будет|будут|быть|должен|должна|должны|не|бы|ещё не|еще не)\s+(?:\w+\s+)?$")
# Verbs whose perfective past is not that of work done.
_NOT_DOING = _listed(
    "забыть успеть захотеть решить начать попросить обещать пообещать передумать перенести отложить сдвинуть "
    "стать смочь "
    "договориться отменить передвинуть сказать спросить узнать понять подумать пропасть прийти прийтись остаться "
    "потерять опоздать заболеть устать попасть понадобиться позабыть"
)
_NEGATION = re.compile(r"n't\b|\b(?:not|never|haven't|yet to|to)\s+(?:\w+\s+)?$", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\b(?P<way>back|forward|later|earlier|позже|раньше|вперед|вперёд|назад)?\s*(?:на |by |a |an |one |half an )?"
    r"(?P<count>\d|two|three|two|три|два|две|пару|a couple of)?\s*(?P<unit>days?|weeks?|hours?|mins?|minutes?|"
    r"день|дня|дней|неделю|недели|час|часа|минут|полчаса)\b"
    r"(?:\s(?P<after>back|later|earlier|forward|позже|раньше|вперед|вперёд))?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class StatusReport:
    """A reported change; `about` is the text that tells which task it is of.

    An implied one needs a task that was spoken of just before: "make it Thursday". `shift` is relative to its date.
    """

    change: Change
    about: str
    to: SpokenDate | None = None
    by: Mention | None = None
    is_implied: bool = False
    shift: timedelta | None = None
    # Of the teller's own doing, so that it may leave out what was done: "dropped it off".
    is_own: bool = True


def find_reports(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> list[StatusReport]:
    """Every report in a sentence, explicit ones first; whether there is such a task is another question."""
    return [] if sentence.is_question else list(_reports(sentence.text, said_at, people))


def _reports(sentence: str, said_at: datetime, people: KnownPeople) -> Iterator[StatusReport]:
    changed = _KEPT.sub("", sentence)
    if changed != sentence and not (_CANCELLED.search(changed) or _MOVED.search(changed)):
        return
    dates = dates_in(sentence, said_at)
    about = without_dates(sentence, dates)
    shift = None if dates else _shift(sentence)
    is_moved = bool(shift or (_MOVED.search(sentence) and dates))
    if _CANCELLED.search(sentence) and not is_moved:
        yield StatusReport("cancelled", about)
    elif is_moved:
        yield StatusReport("moved", about, to=_latest(dates), shift=shift)
    elif heir := _heir(sentence, people):
        yield StatusReport("reassigned", about, by=heir)
    else:
        yield from _plain_reports(sentence, about, dates, said_at)


def _plain_reports(sentence: str, about: str, dates: Sequence[SpokenDate], said_at: datetime) -> Iterator[StatusReport]:
    """Reports without a word for a change: of work done, of another day, of what will not be."""
    done = [] if _gives_up(sentence) else list(_done(about))
    yield from done
    later = [date for date in dates if date.at.date() > said_at.date() or (date.has_time and date.at > said_at)]
    is_refused = bool(_UNWANTED.search(sentence)) or _refuses(sentence)
    if later and not done:
        yield StatusReport("moved", about, to=_latest(later), is_implied=True)
    elif is_refused:
        yield StatusReport("cancelled", about, is_implied=True)


def shifted_date(due: datetime, by: timedelta) -> SpokenDate:
    """A date so much later than another: "back a day"."""
    at = due + by
    return SpokenDate(0, 0, at.date().isoformat(), at, has_time=at.time() != END_OF_DAY)


def _latest(dates: Sequence[SpokenDate]) -> SpokenDate | None:
    """The date that holds from now on: «сегодня не успею, завтра»."""
    return max(dates, key=lambda date: date.at, default=None)


def _shift(sentence: str) -> timedelta | None:
    """Time by which something is later: «на час позже», "back a day"."""
    for match in _RELATIVE.finditer(sentence):
        way = (match["after"] or match["way"] or "").lower()
        count = (match["count"] or "1").lower()
        number = int(count) if count.isdigit() else _COUNTS[count]
        by = number * next(span for unit, span in _UNITS.items() if match["unit"].lower().startswith(unit))
        if way or "на " in match[0]:
            return -by if way in ("earlier", "раньше", "forward") else by
    return None


def _refuses(sentence: str) -> bool:
    """Check for «не иду», «не поеду»: a plan that one does not carry out."""
    told = words(sentence)
    return any(
        before.lower() == "не"
        and any(form.has("VERB", "1per") and not form.has("past") for form in word_forms(word.lower())[:1])
        for before, word in pairwise(told)
        if has_cyrillic(word)
    ) and not re.search(
        r"\bне (?:знаю|могу|помню|понимаю|вижу|хочу|люблю|успеваю|думаю|забуду)\b", sentence, re.IGNORECASE
    )


def _gives_up(sentence: str) -> bool:
    """Check for «шторы не шьём, купили готовые»: what was done instead."""
    first, *others = re.split(r"[,;—–]", sentence, maxsplit=1)
    return bool(others) and has_cyrillic(first) and _refuses(first)


_COUNTS = {"two": 2, "three": 3, "a couple of": 2, "два": 2, "две": 2, "три": 3, "пару": 2}
_UNITS = {
    "day": timedelta(days=1), "week": timedelta(weeks=1), "hour": timedelta(hours=1), "min": timedelta(minutes=1),
    "д": timedelta(days=1), "нед": timedelta(weeks=1), "час": timedelta(hours=1), "мин": timedelta(minutes=1),
    "полчаса": timedelta(minutes=30),
}  # fmt: skip


_HANDED = _pattern(
    r"\b(?:переда(?:ю|л|ла|ли|[её]м)|отда(?:ю|л|ла|ли|[её]м)|перепоруч\w*|переназнач\w*|вместо)\b",
    r"\b(?:забирает|забрала?|подхватит|подхватила?|бер[её]т)\b",
    r"\b(?:hand|pass|giv|gave|transfer|reassign|delegat)\w*\b.*?\bto\b|\binstead of\b",
    r"\b(?:takes over|will take over|is taking over|took over)\b",
)
_INSTEAD = re.compile(r"(?:вместо|instead of)\s+$", re.IGNORECASE)


def _heir(sentence: str, people: KnownPeople) -> Mention | None:
    """The person who has a task from now on."""
    found = _HANDED.search(sentence)
    if not found:
        return None
    mentions = [each for each in people.mentions(sentence) if not _INSTEAD.search(sentence[: each.start])]
    if re.match(r"(?:переда|отда|пере|hand|pass|giv|gave|trans|reass|deleg)", found[0], re.IGNORECASE):
        mentions = [each for each in mentions if each.start > found.start()]
    elif not re.match(r"(?:вместо|.*instead)", found[0], re.IGNORECASE):
        mentions = [each for each in mentions if sentence[each.end : found.start()].strip() == ""]
    return mentions[-1] if mentions else None


def _done(sentence: str) -> Iterator[StatusReport]:
    for clause in _CLAUSES.split(sentence):
        told = _THEIR_DEED.sub("", clause)
        if clause.strip() and not _UNDONE.search(clause):
            is_russian = has_cyrillic(clause)
            if (_russian_done if is_russian else _english_done)(clause):
                yield StatusReport("done", told, is_own=is_russian or bool(_OWN_DEED.match(clause)))


# "The client sent four remarks": the client's deed, not one to the client.
_THEIR_DEED = re.compile(
    r"^\W*(?:the|a|our|my|their) \w+ (?=[a-z]+(?:ed|t|d|nt|ok|ew|ave) (?:a|an|the|some|\d+|two|three|us|me|it|them)\b)",
    re.IGNORECASE,
)
_OWN_DEED = re.compile(
    r"^\W*(?:(?:and|so|ok|okay|finally|just|already|right|yes|yep|yeah|all|have|has) )*"
    r"(?:i|we|i've|we've|ive|[a-z]+ed|done|sent|got|did|rang|paid|took|put|made|bought|found|met|gave|left|"
    r"brought|sorted|"
    r"(?:it's|that's|its|thats|it is|that is)(?: all)? (?:done|sorted|ready|finished|fixed|in|out|live|paid|sent|"
    r"up))\b",
    re.IGNORECASE,
)


def _russian_done(clause: str) -> bool:
    """Check for the past of a perfective verb, its participle, or a word for ready, not negated."""
    if re.search(r"[✅☑✔]|\[x\]", clause, re.IGNORECASE):
        return True
    if any(not _RU_NOT_DONE.search(clause[: found.start()]) for found in _RU_DONE.finditer(clause)):
        return True
    told = words(clause)
    for at, word in enumerate(told):
        form = _finished(word)
        before = [each.lower() for each in told[max(0, at - 2) : at]]
        if form and form.lemma not in _NOT_DOING and not {"не", "бы", "будет", "будут", "быть", "почти"} & set(before):
            return True
    return False


def _finished(word: str) -> WordForm | None:
    if not has_cyrillic(word):
        return None
    first = word_forms(word.lower())[0]
    is_past_verb = first.has("VERB", "past", "perf") and not first.has("neut")
    return first if is_past_verb or first.has("PRTS", "past") else None


def _english_done(clause: str) -> bool:
    """Check for a past tense, a participle or a word for ready, not negated, not of what came between."""
    if _DENIED.search(clause):
        return False
    if any(not _NEGATION.search(clause[: found.start()]) for found in _READY.finditer(clause)):
        return True
    told = [word.lower() for word in words(clause)][:_NEAR_WORDS]
    if _IN_THE_WAY & set(told):
        return False
    at = next((at for at, word in enumerate(told) if is_past(word) and word not in _NO_DEEDS), None)
    return at is not None and not {"be", "will", "would", "to", "could", "should"} & set(told[max(0, at - 3) : at])


_DENIED = re.compile(r"\b(?:will be|not|never)\b|n't\b", re.IGNORECASE)
_NO_DEEDS = _listed("been had got was were meant promised asked wanted decided said told thought agreed")
_NEAR_WORDS = 8
