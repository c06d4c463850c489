"""What a processing agent has for a service reaches it once; a service that is not there is no trouble to the agent."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from bus_schema.dialogue import DialogueFragment
from bus_schema.fleet import AgentResult
from bus_schema.kps import ProcessedData, ProcessRawData
from config.settings import FleetSettings
from mindbus import Event, MessageContext, ProcessingAgent, Send, Worker, WorkerContext, on_command
from mindbus.errors import TemporaryFailure
from tests.fleets import fleet_of, settings_for
from tests.fragments import a_fragment
from tests.installed import FLEET

FRAGMENT = a_fragment(1, "anna", ["Релиз 24 марта.", "Бюджет 42 тысячи."])


class Nothing(BaseModel):
    """It remembers nothing itself."""


class Scribe(ProcessingAgent[Nothing]):
    """Has everything remembered; stumbles once when that is done."""

    name = "scribe"
    state = Nothing
    stumbles = 1

    async def process(self, fragment: DialogueFragment, state: Nothing) -> tuple[Nothing, Sequence[Event | Send]]:
        texts = (str(message.content) for message in fragment.heard)
        return state, [Send(ProcessRawData(raw_content=text, content_type="text/plain")) for text in texts]

    async def after(self, fragment: DialogueFragment) -> None:
        """Take two attempts."""
        if self.stumbles:
            self.stumbles -= 1
            raise TemporaryFailure("stumbled")


class Processing(Worker):
    """Knowledge processing that counts."""

    name = "kps"

    def __init__(self, _kit: WorkerContext) -> None:
        self.heard: list[tuple[str, str | None]] = []

    @on_command
    async def process(self, command: ProcessRawData, context: MessageContext) -> ProcessedData:
        self.heard.append((context.owner, command.raw_content))
        return ProcessedData(kem_ids=(), status="stored")


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    return settings_for(f"memory://{tmp_path}", tmp_path)


async def test_it_is_heard_once_although_the_agent_needs_two_attempts(settings: FleetSettings) -> None:
    async with fleet_of(FLEET["storage"], Processing, Scribe, settings=settings) as fleet:
        async with fleet.bus.subscribe(AgentResult) as results:
            await fleet.bus.publish(FRAGMENT)
            result = await anext(aiter(results))

        assert fleet[Processing].heard == [
            ("agent.scribe", "Релиз 24 марта."),
            ("agent.scribe", "Бюджет 42 тысячи."),
        ]
        assert fleet[Scribe].stumbles == 0
    assert result.outcome == "found"


async def test_without_the_service_the_agent_goes_on(settings: FleetSettings) -> None:
    async with (
        fleet_of(FLEET["storage"], Scribe, settings=settings) as fleet,
        fleet.bus.subscribe(AgentResult) as ended,
    ):
        await fleet.bus.publish(FRAGMENT)

        assert (await anext(aiter(ended))).outcome == "found"
