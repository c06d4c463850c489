"""Facts over the bus: each user's own, all of them, whatever becomes of the agent that found them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.agent_data import GetAgentData, PutAgentData
from bus_schema.data import DeleteUser
from bus_schema.dialogue import EndDialogue, conversation_trace
from bus_schema.facts import FindFacts, ListFactRecords, ListFacts, SaveFacts
from bus_schema.processing import Fact
from bus_schema.replies import Code
from bus_schema.users import PutUser, User
from mindbus.errors import ReplyError
from mindbus.sdk.recall import UserContexts
from mindbus.sdk.requests import items_of
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
WORKERS = ("storage", "context_manager", "dialogue", "tracker")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.backends)])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of the database."""
    return {"database_url": request.getfixturevalue("postgres_url")} if request.param == "postgres" else {}


def a_fact(number: int, said_by: str = "anna", text: str = "") -> Fact:
    at = NOON + timedelta(minutes=number)
    return Fact.model_validate(
        {
            "fact_id": f"fact_{said_by}_{number}",
            "kind": "fact",
            "text": text or f"Invoice AB-{number} is for {number} dollars.",
            "said_by": said_by,
            "said_at": at,
            "message_ids": (f"msg_{number}",),
        }
    )


async def tell(talk: Runtime, user_id: str, text: str) -> None:
    """Say it and end the dialogue."""
    await talk.say(user_id, text)
    await talk.bus.request(EndDialogue(user_id=user_id), trace=conversation_trace(user_id))


async def texts(talk: Runtime, user_id: str, **wanted: bool) -> list[str]:
    return [fact.text async for fact in items_of(talk.bus, ListFacts(user_id=user_id, limit=200, **wanted))]


async def test_of_five_hundred_facts_none_is_lost_and_the_prompt_gets_those_that_matter(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), *WORKERS) as talk:
        door = a_fact(0, text="The code of the warehouse door is 4417.")
        facts = [door, *(a_fact(number) for number in range(1, 500))]
        for start in range(0, len(facts), 100):
            await talk.bus.request(SaveFacts(facts=tuple(facts[start : start + 100])))
        await tell(talk, "anna", "The budget is 500 thousand dollars.")

        async def is_there() -> bool:
            return "The budget is 500 thousand dollars." in await texts(talk, "anna")

        await until(is_there, 30, "the new fact")
        assert set(await texts(talk, "anna")) == {fact.text for fact in facts} | {"The budget is 500 thousand dollars."}
        found = await talk.bus.request(FindFacts(user_id="anna", about="Which code opens the warehouse?"))
        assert len(found.items) == 12
        assert found.items[0] == door


async def test_a_fact_is_its_speakers_alone_unless_they_shared_it_with_a_project(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), *WORKERS) as talk:
        for user_id, projects in (("anna", ("Polaris",)), ("boris", ("polaris",)), ("maria", ())):
            await talk.bus.request(PutUser(user=User(user_id=user_id, name=user_id.title(), projects=projects)))
        await tell(talk, "anna", "The Polaris release is set for May 15.")
        await talk.until_on_timeline("agent_result", 1)
        await tell(talk, "boris", "The Polaris release is set for May 20. My desk number is 12. That is between us.")
        await talk.until_on_timeline("agent_result", 2)
        await tell(talk, "boris", "The Polaris release is set for May 21. The release party is set for June 2.")
        await talk.until_on_timeline("agent_result", 3)

        assert await texts(talk, "anna") == []
        assert await texts(talk, "anna", superseded=True) == ["The Polaris release is set for May 15."]
        assert set(await texts(talk, "boris")) == {
            "My desk number is 12.",
            "The Polaris release is set for May 21.",
            "The release party is set for June 2.",
        }
        for user_id in ("anna", "maria"):
            await tell(talk, user_id, "The office has 3 meeting rooms.")
        await talk.until_on_timeline("agent_result", 5)
        shown = [item.text for item in await UserContexts(talk.bus).of("anna")]
        assert shown[0] == "The office has 3 meeting rooms."
        assert [text.split(" (")[0] for text in shown[1:]] == ["Boris"]
        assert shown[1].endswith("): The Polaris release is set for May 21.")
        assert [item.text for item in await UserContexts(talk.bus).of("maria")] == ["The office has 3 meeting rooms."]
        for user_id, known in (("anna", 2), ("maria", 1)):
            asked = FindFacts(user_id=user_id, about="What is Boris's desk number?")
            found = (await talk.bus.request(asked)).items
            assert len(found) == known
            assert not [fact for fact in found if "desk" in fact.text]


async def test_facts_over_the_bus_are_asked_for_by_whoever_stated_them(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), "storage", "context_manager") as talk:
        await talk.bus.request(SaveFacts(facts=(a_fact(1), a_fact(2, "boris"))))

        anna = talk.bus.acting_as("user.anna")
        assert [fact.text for fact in (await anna.request(ListFacts())).items] == [a_fact(1).text]
        for refused in (ListFacts(user_id="boris"), ListFactRecords(users=("boris",))):
            with pytest.raises(ReplyError) as error:
                await anna.request(refused)
            assert error.value.code is Code.UNAUTHORIZED


async def test_the_facts_of_an_older_version_become_records_but_not_of_whoever_is_forgotten(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    settings = dialogue_settings(amqp_url, tmp_path, **database)
    old = [a_fact(number, said_by) for said_by in ("anna", "boris") for number in range(150)]
    knowledge = {"knowledge": {"facts": [fact.model_dump(mode="json") for fact in old]}, "heard": []}
    async with runtime(settings, "storage") as talk:
        value = {"state": knowledge, "turns": [], "owed": []}
        await talk.bus.request(PutAgentData(agent="context_manager", namespace="notes", key="team", value=value))
    async with runtime(settings, "storage", "context_manager") as talk:
        await talk.bus.request(DeleteUser(user_id="boris"), to="context_manager")

        assert len(await texts(talk, "anna")) == 150
        assert await texts(talk, "boris") == []
        query = GetAgentData(agent="context_manager", namespace="notes", key="team")
        assert (await talk.bus.request(query)).items == ()
        counts = (await talk.bus.request(DeleteUser(user_id="anna"), to="storage")).counts
        assert counts["facts"] == 150
        assert await texts(talk, "anna") == []
