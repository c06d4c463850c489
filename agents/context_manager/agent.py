"""The context manager: facts that users state, those that newer ones supersede, and commands that store them."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

from agents.context_manager.extraction import extract_by_model, extract_facts, is_in_confidence
from agents.context_manager.knowledge import FactBase, FactRecorder
from agents.fragment_reader import FragmentReader
from agents.fragments import ProcessingResult, links_to
from agents.keywords import most_relevant
from agents.people import KnownPeople
from agents.present import Present
from agents.sentence_kinds import prepare_kinds
from bus_schema.dialogue import DialogueFragment
from bus_schema.ids import derived
from bus_schema.kem import KemRights
from bus_schema.kps import ProcessRawData
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Fact, FactKind, FactUpdate
from bus_schema.users import User
from language.dates.expressions import date_text
from language.statements import statement_content
from language.words import Language, language_of

AGENT = "context_manager"
NOBODY_KNOWN = KnownPeople()
_NEWS_LASTS = timedelta(days=3)
_PHRASES = {
    Language.ENGLISH: "{who} says: “{new}” Before, it was: “{old}”",
    Language.RUSSIAN: "{who}: «{new}» Раньше было: «{old}»",
}
CURRENT, SUPERSEDED = "current", "superseded"
_LONGEST_WORDS = 60
_LONGEST_CHARS = 1000
# Beyond whatever is only said again.
_LAST_REVISION = 1_000_000


class ContextManager:
    """Reads fragments by rules, then once more with a language model, where there is one."""

    def __init__(self, reader: FragmentReader, people: KnownPeople = NOBODY_KNOWN, zone: tzinfo = UTC) -> None:
        self._reader, self._people, self._zone = reader, people, zone

    async def process(
        self, fragment: DialogueFragment, knowledge: FactBase, present: Present | None = None
    ) -> tuple[FactBase, ProcessingResult[FactUpdate]]:
        """Facts found in a fragment, and the fact base with them."""
        messages = fragment.heard
        projects = () if present is None or is_in_confidence(messages) else present.projects
        recorder = FactRecorder(knowledge, self._zone, projects)
        await prepare_kinds(messages)
        # Off the event loop, since a message may have hundreds of sentences.
        await asyncio.to_thread(extract_facts, messages, recorder, self._people)
        await extract_by_model(messages, recorder, self._reader, present)
        ids = [each for update in recorder.updates for each in update.fact.message_ids]
        outcome = ProcessingResult[FactUpdate](
            items=tuple(recorder.updates),
            notifications=tuple(self._news(recorder.updates, fragment.user_id)),
            links=links_to("message", ids),
        )
        return recorder.knowledge, outcome

    def _news(self, updates: Iterable[FactUpdate], teller: str) -> Iterable[NotificationGenerated]:
        """Notifications for those whose statements were superseded by someone else."""
        superseded: list[Fact] = []
        for update in updates:
            if update.change == "superseded":
                superseded.append(update.fact)
            for old in superseded if update.change == "found" else ():
                is_news = old.superseded_by == update.fact.fact_id and old.said_by != teller
                if is_news and _matters(old, update.fact):
                    yield self._notice(old, update.fact, teller)

    def _notice(self, old: Fact, new: Fact, teller: str) -> NotificationGenerated:
        phrase = _PHRASES[language_of(new.text)]
        return NotificationGenerated(
            notification_id=f"ntf_{derived(new.fact_id, AGENT, old.said_by)}",
            agent=AGENT,
            to_user=old.said_by,
            message=phrase.format(who=self._people.name_of(teller), new=new.text, old=old.text),
            about=f"{old.fact_id} superseded",
            expires=new.said_at + _NEWS_LASTS,
            links=(*links_to("fact", [new.fact_id, old.fact_id]), *links_to("message", new.message_ids)),
        )


def facts_for(reader: User, knowledge: FactBase, limit: int = 12) -> tuple[Fact, ...]:
    """Current facts for a conversation with a user: their own first, then by kind, the newest first."""
    return tuple(islice(_without_repeated(_by_importance(knowledge, reader), reader.user_id), limit))


def relevant_facts(reader: User, knowledge: FactBase, about: str, limit: int) -> tuple[Fact, ...]:
    """Current facts that a user may be told and that bear on a text, best first, then the others by kind."""
    best, others = most_relevant(_by_importance(knowledge, reader), lambda fact: fact.text, about, limit)
    return tuple(islice(_without_repeated((*best, *others), reader.user_id), limit))


def with_speaker(fact: Fact, reader: str, people: KnownPeople, now: datetime) -> str:
    """The fact's words, after who said them and when where it was not the reader; `now` is on the reader's clock."""
    if fact.said_by == reader:
        return fact.text[:_LONGEST_CHARS]
    said = date_text(fact.said_at.astimezone(now.tzinfo), now, language_of(fact.text))
    return f"{people.name_of(fact.said_by)} ({said}): {fact.text}"[:_LONGEST_CHARS]


def _by_importance(knowledge: FactBase, reader: User) -> tuple[Fact, ...]:
    """Facts that a user may be told: their own, and those that others have shared with a project of theirs."""
    order = ("preference", "role", "decision", "fact")
    told = (
        fact for fact in knowledge.current if fact.said_by == reader.user_id or fact.is_shared_with(reader.projects)
    )
    current = sorted(told, key=lambda fact: fact.said_at, reverse=True)
    current.sort(key=lambda fact: (fact.said_by != reader.user_id, order.index(fact.kind)))
    return tuple(current)


def _without_repeated(facts: Iterable[Fact], user_id: str) -> Iterable[Fact]:
    """The facts without those of others that an earlier one says already."""
    shown: dict[tuple[object, ...], Fact] = {}
    for fact in facts:
        content = statement_content(fact.text, fact.said_at)
        key = (fact.kind, content) if content.subject else (fact.fact_id,)
        if fact.said_by == user_id or key not in shown:
            shown.setdefault(key, fact)
            yield fact


def memory_commands(
    updates: Iterable[FactUpdate], fragment: DialogueFragment, agent: str
) -> tuple[ProcessRawData, ...]:
    """A text for each fact, as the whole fragment leaves it; only the person who said it reads it."""
    latest: dict[str, ProcessRawData] = {}
    for update in updates:
        remembered = _remembered(update.fact, fragment, agent)
        latest[str(remembered.key)] = remembered
    return tuple(latest.values())


def _matters(old: Fact, new: Fact) -> bool:
    """Figures change every day, which is no news; another date is, another decision, somebody else in charge."""
    is_decided = FactKind.DECISION in (old.kind, new.kind) or new.kind is FactKind.ROLE
    return (
        is_decided or statement_content(old.text, old.said_at).dates != statement_content(new.text, new.said_at).dates
    )


def _remembered(fact: Fact, fragment: DialogueFragment, agent: str) -> ProcessRawData:
    is_superseded, teller = fact.superseded_by is not None, fact.said_by
    message_ids = _messages_of(fact, fragment)
    # What another's fragment supersedes was found in another fragment.
    fragment_ids = [fragment.fragment_id] if set(message_ids) & set(fragment.message_ids) else []
    metadata = {
        "kind": fact.kind.value,
        "status": SUPERSEDED if is_superseded else CURRENT,
        "user_id": teller,
        "source": "dialogue",
        "agent": agent,
        "fact_id": fact.fact_id,
        "message_id": message_ids[0],
        "said_at": fact.said_at.isoformat(),
    }
    if fact.project:
        metadata["project"] = fact.project
    if fragment_ids:
        metadata["fragment_id"] = fragment_ids[0]
    return ProcessRawData.model_validate(
        {
            "raw_content": fact.text.replace("\0", ""),
            "content_type": "text/plain",
            "initial_metadata": metadata,
            "rights": KemRights(visibility="readers", readers=(f"user.{teller}",)),
            "links": (
                *links_to("message", message_ids),
                *links_to("fragment", fragment_ids),
                *links_to("fact", [fact.fact_id]),
            ),
            "key": f"{fact.fact_id}/{teller}",
            "revision": len(fact.message_ids) + (_LAST_REVISION if is_superseded else 0),
        }
    )


def _messages_of(fact: Fact, fragment: DialogueFragment) -> Sequence[str]:
    """The first message that states the fact, then those of this fragment."""
    own = [each for each in fact.message_ids if each in fragment.message_ids]
    return list(dict.fromkeys([*fact.message_ids[:1], *own]))[:20]
