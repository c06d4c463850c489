"""Memory on a user's message: what is recalled for the answer, and which of it the answer has used."""

import asyncio
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agents.dialogue.agent import MemorySnippet
from agents.keywords import inverse_document_frequency
from agents.models.prompt import memory_materials, uncertain_materials
from bus_schema.dialogue import DialogueMessage, MessageKind
from bus_schema.glm import FoundKem
from bus_schema.message_parts import MemoryAbsence, RecalledEpisode
from language.words import Language, language_of, small_talk_stems, stem, terms, words
from mindbus.sdk.recall import ContextItem, EpisodeRecall, KemRecall, RecalledText, Recollection

# Leaves room for the picture.
_RECALLED_WORDS, _UNCERTAIN_WORDS = 250, 100
# Words of recalled turns for a token, with labels: more would push current episodes out of the prompt.
_WORDS_A_TOKEN = {Language.ENGLISH: 0.4, Language.RUSSIAN: 0.3}
# Used is a turn that shares so many words with the answer, or a number or a name; and so much of what the best shares.
_SHARED_WORDS, _SHARE_OF_BEST = 3, 0.5
_NAME_WEIGHT = 2.0
# Nothing is to be recalled for such a message.
_COURTESY = re.compile(
    r"\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|night)|bye|goodbye|see you|thanks|thank you|ok|okay|"
    r"how are you|how's it going|привет\w*|здравствуй\w*|добр\w+ (?:утро|день|вечер|ночи)|спокойной ночи|пока|"
    r"до (?:свидания|встречи|завтра|связи)|спасибо|ок|окей|ладно|ага|понятно|хорошо|как (?:дела|ты|вы))\b\W*)+",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?…:\n«»“”\"(]\s*$")


@dataclass(frozen=True)
class RetrievedMemory:
    """Snippets, the most relevant first, each once; `absence` tells that some memory did not answer.

    `unit_ids` are those of shared memory among them; `texts` are by id those of long-term memory.
    """

    snippets: Sequence[MemorySnippet] = ()
    unit_ids: frozenset[str] = frozenset()
    texts: Mapping[str, RecalledText] = field(default_factory=dict)
    episodes: Recollection[RecalledText] = field(default_factory=Recollection)
    absence: MemoryAbsence | None = None

    def kem_ids(self, shown: Iterable[MemorySnippet]) -> tuple[str, ...]:
        """Ids of the units of shared memory among the shown snippets."""
        return tuple(each.id for each in shown if each.id in self.unit_ids)

    def recalled(self, shown: Iterable[MemorySnippet], used: Sequence[str]) -> tuple[RecalledEpisode, ...]:
        """Episodes of the shown snippets that the search returned or the answer has used, the best first."""
        by_episode: defaultdict[str, list[RecalledText]] = defaultdict(list)
        for text in (self.texts[each.id] for each in shown if each.id in self.texts):
            if text.id in self.episodes.result_ids or text.id in used:
                by_episode[text.episode_id].append(text)
        return tuple(_recalled(episode_id, texts, used) for episode_id, texts in by_episode.items())

    def used(self, shown: Iterable[MemorySnippet], question: str, answer: str) -> list[str]:
        """Ids of the shown turns that the answer has used."""
        turns = {each.id: _content(each.text) for each in shown if each.id in self.texts}
        return [each for each in used_turns(question, answer, turns) if each != self.texts[each].episode_id]


def _recalled(episode_id: str, texts: Sequence[RecalledText], used: Sequence[str]) -> RecalledEpisode:
    turns = [each.id for each in texts if each.id != episode_id]
    return RecalledEpisode(
        episode_id=episode_id,
        time=min(each.time for each in texts),
        raw_log_ids=tuple(turns),
        used=tuple(each for each in turns if each in used),
        is_uncertain=all(each.is_uncertain for each in texts),
    )


@dataclass(frozen=True, slots=True)
class MemoryLookup:
    """Retrieves memory on a message; memory that is unavailable is no failure."""

    kems: KemRecall
    episodes: EpisodeRecall

    async def about(
        self,
        message: DialogueMessage,
        window_ids: Sequence[str] = (),
        budget_tokens: int = 1000,
        picture: Sequence[ContextItem] = (),
    ) -> RetrievedMemory:
        """Memory of everything but the messages that the model is shown anyway, with the items about the user."""
        user_id, text = message.user_id, message.content
        # An instruction is self-contained.
        if message.kind is MessageKind.HIDDEN or text is None:
            return _remembered(Recollection(), Recollection(), picture)
        is_courtesy = _COURTESY.fullmatch(text) is not None
        budget_words = 0 if is_courtesy else int(_WORDS_A_TOKEN[language_of(text)] * budget_tokens)
        kems, episodes = await asyncio.gather(
            self.kems.recall("" if is_courtesy else text, f"user.{user_id}"),
            self.episodes.about(text, user_id, (*window_ids, message.message_id), budget_words),
        )
        return _remembered(kems, episodes, picture)

    async def report(self, memory: RetrievedMemory, user_id: str, used: Sequence[str]) -> None:
        """Report the turns of the search that an answer has used, for their episodes to count as accessed."""
        used = [each for each in used if each in memory.episodes.result_ids]
        if used and memory.episodes.search_id is not None:
            await self.episodes.report_used(memory.episodes.search_id, user_id, used)


def _remembered(
    kems: Recollection[FoundKem], episodes: Recollection[RecalledText], pictured: Sequence[ContextItem]
) -> RetrievedMemory:
    certain = memory_materials(kems.items, _RECALLED_WORDS)
    uncertain = uncertain_materials(kems.items, _UNCERTAIN_WORDS)
    unit_ids = frozenset(material.id for material in (*certain, *uncertain))
    facts = {each.kem.metadata.get("fact_id") for each in kems.items if each.kem.id in unit_ids}
    snippets = [
        *(MemorySnippet(material.id, material.text) for material in certain),
        *(MemorySnippet(each.id, each.text, each.is_uncertain) for each in episodes.items),
        *(MemorySnippet(known.id, known.text) for known in pictured if known.id not in facts),
        *(MemorySnippet(material.id, material.text, is_uncertain=True) for material in uncertain),
    ]
    texts = {each.id: each for each in episodes.items}
    return RetrievedMemory(snippets, unit_ids, texts, episodes, episodes.absence or kems.absence)


def used_turns(question: str, answer: str, turns: Mapping[str, str]) -> list[str]:
    """Ids of the turns of which the answer has words, numbers or names that the question has not."""
    known = {*terms(question), *small_talk_stems()}
    fresh = {each for each in terms(answer) if each not in known}
    marked = fresh & _names_and_numbers(answer)
    shared = {turn_id: fresh.intersection(terms(text)) for turn_id, text in turns.items()}
    weights = inverse_document_frequency(list(turns.values()))
    scores = {
        turn_id: math.fsum(weights[each] * (_NAME_WEIGHT if each in marked else 1.0) for each in stems)
        for turn_id, stems in shared.items()
        if stems & marked or len(stems) >= _SHARED_WORDS
    }
    best = max(scores.values(), default=0.0)
    return [turn_id for turn_id, score in scores.items() if score >= _SHARE_OF_BEST * best]


def _names_and_numbers(text: str) -> set[str]:
    """Stems of the words with a digit and of those with a capital letter within a sentence."""
    marked, end = set[str](), 0
    for word in words(text):
        start = text.index(word, end)
        is_first = start == 0 or bool(_SENTENCE_END.search(text[max(0, start - 3) : start]))
        end = start + len(word)
        if any(map(str.isdigit, word)) or (word[0].isupper() and not is_first):
            marked.add(stem(word))
    return marked


def _content(text: str) -> str:
    """A recalled turn without the line of its day and its speaker."""
    return text.partition("\n")[2]
