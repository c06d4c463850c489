"""What somebody said in one talk is of use in the next, for them alone, under the name of where it came from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus_schema.cards import Card, CardStep
from bus_schema.conversations import GetMessage
from bus_schema.data import DeleteUser
from bus_schema.dialogue import EndDialogue, MessageSent
from bus_schema.glm import RetrieveKems
from bus_schema.ids import mint
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.kps import ProcessRawData
from bus_schema.process import ProcessCompleted, StartProcess
from bus_schema.storage import GetArtifact
from config.settings import FleetSettings
from mindbus.cli.users import FORGET
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime

pytestmark = [pytest.mark.rabbit, pytest.mark.slow]

WORKERS = ("storage", "glm", "kps", "context_manager", "dialogue", "orchestrator", "researcher")
DECISION = "Решили: релиз проекта Аврора переносим на 24 марта."
FACT = "The budget of the Borealis project is 42000 euros."
CARD = Card(
    name="look_into_it",
    steps=(
        CardStep(id="research", role="researcher", instructions="Gather what is known.", produces="research_report"),
    ),
    result="research",
)


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return dialogue_settings(vhost_url, tmp_path, recall_timeout_s=20)


@pytest.fixture
async def team(settings: FleetSettings) -> AsyncIterator[Runtime]:
    async with runtime(settings, *WORKERS) as running:
        yield running


async def kems_of(team: Runtime, user_id: str, text: str | None = None) -> list[Kem]:
    query = RetrieveKems(query=KemQuery(text_query=text))
    page = await team.bus.acting_as(f"user.{user_id}").request(query)
    return [item.kem for item in page.items]


async def has_told(team: Runtime, user_id: str, *said: str) -> list[Kem]:
    """The units that have become of it."""
    for text in said:
        await team.say(user_id, text)
    await team.bus.request(EndDialogue(user_id=user_id))
    found: list[Kem] = []

    async def is_learned() -> bool:
        found[:] = await kems_of(team, user_id)
        return len(found) >= len(said)

    await until(is_learned, 30, f"{len(said)} units of {user_id}")
    return found


async def test_what_was_said_is_remembered_in_the_next_talk_with_its_source_and_for_nobody_else(team: Runtime) -> None:
    kems = await has_told(team, "anna", DECISION, FACT)
    decision, fact = (next(kem for kem in kems if kem.content == text) for text in (DECISION, FACT))

    # From a unit to the words that it was found in.
    assert decision.source
    leads = {link.kind: link.id for link in decision.source.links}
    message = await team.bus.request(GetMessage(user_id="anna", message_id=leads["message"]))
    assert message.content == DECISION
    assert decision.metadata["message_id"] == leads["message"]
    assert (decision.owner, decision.visibility, decision.readers) == (
        "agent.context_manager",
        "readers",
        ("user.anna",),
    )

    async with team.bus.subscribe(MessageSent) as sent:
        answered = await team.say("anna", "Напомни, когда релиз проекта Аврора?")
        told = await anext(aiter(sent))
    assert "24 марта" in answered.response
    assert answered.kem_ids == told.kem_ids == (decision.id,)
    assert (await team.history("anna"))[-1].kem_ids == (decision.id,)
    assert fact.id in (await team.say("anna", "How large is the budget of Borealis?")).kem_ids

    assert await kems_of(team, "boris", "релиз проекта Аврора") == []
    assert (await team.say("boris", "Напомни, когда релиз проекта Аврора?")).kem_ids == ()


async def test_a_run_is_shown_what_whoever_started_it_may_read(team: Runtime, settings: FleetSettings) -> None:
    (fact,) = await has_told(team, "anna", FACT)

    assert await sources_of_a_run(team, settings, "user.anna") == (fact.id,)
    assert await sources_of_a_run(team, settings, "user.boris") == ()
    without = CARD.model_copy(update={"steps": tuple(step.model_copy(update={"memory": False}) for step in CARD.steps)})
    assert await sources_of_a_run(team, settings, "user.anna", without) == ()


async def test_who_is_forgotten_is_forgotten_by_memory_even_of_what_was_on_its_way(team: Runtime) -> None:
    (fact,) = await has_told(team, "anna", FACT)
    owners = [name for name in FORGET if name in WORKERS]

    removed = {name: (await team.bus.request(DeleteUser(user_id="anna"), to=name)).counts for name in owners}

    assert removed["glm"] == {"kems": 1}
    assert await kems_of(team, "anna") == []
    assert fact.source
    late = ProcessRawData(
        raw_content=FACT,
        content_type="text/plain",
        initial_metadata=fact.metadata,
        links=fact.source.links,
        key=f"{fact.metadata['fact_id']}/anna",
    )
    processed = await team.bus.acting_as("agent.context_manager").request(late)
    assert processed.kem_ids == ()
    assert await kems_of(team, "anna") == []


async def sources_of_a_run(team: Runtime, settings: FleetSettings, identity: str, card: Card = CARD) -> tuple[str, ...]:
    """The units that a run's report names, which is about what Anna said."""
    run_id, bus = mint("run"), team.bus.acting_as(identity)
    async with open_artifacts(bus, settings) as artifacts:
        brief = b"# The Borealis project\n\nWrite about the budget of the Borealis project.\n"
        put = await artifacts.put(brief, artifact_type="brief", trace=run_id, content_type="text/markdown")
    async with team.bus.subscribe(ProcessCompleted, trace=run_id) as completed:
        await bus.request(StartProcess(run_id=run_id, card=card, inputs=(put.manifest.ref,)), trace=run_id)
        ended = await anext(aiter(completed))
    manifest = await bus.request(GetArtifact(artifact_id=ended.result.artifact_id), trace=run_id)
    assert manifest.context
    assert manifest.context.input_artifacts == (put.manifest.id,)
    return manifest.context.input_kems
