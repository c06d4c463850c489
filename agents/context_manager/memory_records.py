"""Commands that store facts in shared memory."""

from collections.abc import Iterable, Sequence

from agents.fragments import links_to, message_sentences
from bus_schema.dialogue import DialogueFragment
from bus_schema.kem import KemRights
from bus_schema.kps import ProcessRawData
from bus_schema.processing import Fact, FactUpdate
from language.words import first_words, terms

CURRENT, SUPERSEDED = "current", "superseded"
_LONGEST_WORDS = 60
# Beyond whatever is only said again.
_LAST_REVISION = 1_000_000


def memory_commands(
    updates: Iterable[FactUpdate], fragment: DialogueFragment, agent: str
) -> tuple[ProcessRawData, ...]:
    """A text for each fact with each person who said it, as the whole fragment leaves it; only that person reads it.

    Whoever says what another has said is remembered in their own words: the other's are not theirs to read.
    """
    latest: dict[str, ProcessRawData] = {}
    for update in updates:
        teller = fragment.user_id if update.change == "confirmed" else update.fact.said_by
        text = update.fact.text if teller == update.fact.said_by else _own_words(update.fact, fragment)
        if text.strip():
            remembered = _remembered(update.fact, teller, text, fragment, agent)
            latest[str(remembered.key)] = remembered
    return tuple(latest.values())


def _remembered(fact: Fact, teller: str, text: str, fragment: DialogueFragment, agent: str) -> ProcessRawData:
    is_superseded = fact.superseded_by is not None
    message_ids = _messages_of(fact, teller, fragment)
    # What another's fragment supersedes was found in another fragment.
    fragment_ids = [fragment.fragment_id] if set(message_ids) & set(fragment.message_ids) else []
    said_at = fact.said_at if teller == fact.said_by else fragment.ended_at
    metadata = {
        "kind": fact.kind.value,
        "status": SUPERSEDED if is_superseded else CURRENT,
        "user_id": teller,
        "source": "dialogue",
        "agent": agent,
        "fact_id": fact.fact_id,
        "message_id": message_ids[0],
        "said_at": said_at.isoformat(),
    }
    if fact.project:
        metadata["project"] = fact.project
    if fragment_ids:
        metadata["fragment_id"] = fragment_ids[0]
    return ProcessRawData.model_validate(
        {
            "raw_content": text.replace("\0", ""),
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


def _messages_of(fact: Fact, teller: str, fragment: DialogueFragment) -> Sequence[str]:
    """Messages of the teller that state the fact: the first where they found it, then those of this fragment."""
    own = [each for each in fact.message_ids if each in fragment.message_ids] if teller == fragment.user_id else []
    first = fact.message_ids[:1] if teller == fact.said_by else ()
    return list(dict.fromkeys([*first, *own]))[:20]


def _own_words(fact: Fact, fragment: DialogueFragment) -> str:
    """The sentence of the fragment that says the same."""
    said = [each for each in fragment.heard if each.message_id in fact.message_ids]
    sentences = [sentence.text for message in said for sentence in message_sentences(message.content or "")]
    wanted = set(terms(fact.text))
    return first_words(max(sentences, key=lambda each: len(wanted & set(terms(each))), default=""), _LONGEST_WORDS)
