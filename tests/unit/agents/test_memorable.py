"""What was found in a dialogue is remembered for those who said it, with the way back to their words."""

from agents.context_manager.agent import ContextManager, memory_commands
from agents.context_manager.knowledge import FactBase
from agents.fragment_reader import FragmentReader
from agents.models.offline.model import OfflineModel
from agents.present import Present
from bus_schema.dialogue import DialogueFragment
from bus_schema.kps import ProcessRawData
from tests.fragments import MOSCOW, a_fragment

AGENT = "context_manager"


async def heard(*fragments: DialogueFragment) -> list[tuple[ProcessRawData, ...]]:
    """What each fragment has to be remembered."""
    agent, knowledge = ContextManager(FragmentReader(OfflineModel()), zone=MOSCOW), FactBase()
    found = []
    for fragment in fragments:
        present = Present(fragment.ended_at, "Europe/Moscow", fragment.user_id, projects=("Archive",))
        knowledge, outcome = await agent.process(fragment, knowledge, present)
        found.append(memory_commands(outcome.items, fragment, AGENT))
    return found


async def test_a_decision_is_remembered_with_its_message_for_whoever_said_it() -> None:
    said = "Решили: релиз проекта Аврора переносим на 24 марта."

    ((learned,),) = await heard(a_fragment(1, "anna", ["Привет!", said]))

    assert (learned.raw_content, learned.content_type) == (said, "text/plain")
    assert learned.rights.visibility == "readers"
    assert learned.rights.readers == ("user.anna",)
    metadata = learned.initial_metadata
    assert {name: metadata[name] for name in ("kind", "status", "user_id", "message_id", "fragment_id", "agent")} == {
        "kind": "decision",
        "status": "current",
        "user_id": "anna",
        "message_id": "msg_1_1",
        "fragment_id": "frag_1",
        "agent": AGENT,
    }
    assert [(link.kind, link.id) for link in learned.links][:2] == [("message", "msg_1_1"), ("fragment", "frag_1")]
    assert learned.key == f"{metadata['fact_id']}/anna"


async def test_the_same_fragment_is_remembered_the_same_way() -> None:
    fragment = a_fragment(1, "anna", ["We decided to use PostgreSQL for the archive."])

    assert await heard(fragment) == await heard(fragment)


async def test_what_holds_no_longer_is_remembered_so_in_a_later_revision() -> None:
    first = a_fragment(1, "anna", ["The release of the Aurora app is on May 12."])
    second = a_fragment(2, "anna", ["The release of the Aurora app is moved to May 19."])

    (before,), after = await heard(first, second)

    old = next(each for each in after if each.key == before.key)
    new = next(each for each in after if each.key != before.key)
    assert (old.initial_metadata["status"], new.initial_metadata["status"]) == ("superseded", "current")
    assert old.revision > before.revision
    assert old.initial_metadata["message_id"] == "msg_1_0"
    assert "May 19" in str(new.raw_content)


async def test_whoever_says_it_as_well_is_remembered_in_their_own_words() -> None:
    first = a_fragment(1, "anna", ["We decided to use PostgreSQL for the Archive project."])
    second = a_fragment(2, "boris", ["Hello. Yes, agreed on PostgreSQL for the archive."])

    (hers,), (his,) = await heard(first, second)

    assert his.raw_content == "Yes, agreed on PostgreSQL for the archive."
    assert his.rights.readers == ("user.boris",)
    assert his.initial_metadata["user_id"] == "boris"
    assert his.initial_metadata["message_id"] == "msg_2_0"
    assert [link.id for link in his.links if link.kind == "message"] == ["msg_2_0"]
    assert his.key != hers.key


async def test_what_another_supersedes_leads_to_none_of_the_others_words() -> None:
    first = a_fragment(1, "anna", ["We decided to use PostgreSQL for the Archive project."])
    second = a_fragment(2, "boris", ["We decided to use MySQL instead of PostgreSQL for the Archive project."])

    (hers,), after = await heard(first, second)

    old = next(each for each in after if each.key == hers.key)
    assert old.initial_metadata["status"] == "superseded"
    assert old.rights == hers.rights
    assert [link.id for link in old.links] == ["msg_1_0", str(old.initial_metadata["fact_id"])]
