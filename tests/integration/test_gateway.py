"""What the gateway answers, with real storage, tracker and dialogue behind it on a real RabbitMQ."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindbus import Settings
from tests.fleets import settings_for
from tests.gateways import Served, serving
from workers.dialogue.worker import DialogueWorker
from workers.fleet import FLEET
from workers.tracker import TrackerWorker


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> Settings:
    return settings_for(vhost_url, tmp_path, heartbeat_s=0.5)


@pytest.fixture
async def gateway(settings: Settings) -> AsyncIterator[Served]:
    async with serving(FLEET["storage"], TrackerWorker, DialogueWorker, settings=settings) as served:
        yield served


async def test_a_message_is_answered(gateway: Served) -> None:
    said = await gateway.ok("POST", "/api/dialogues/anna/messages", json={"message": "Привет!"})

    assert said["response"]
    told = await gateway.ok("GET", "/api/dialogues/anna/messages")
    assert [(item["role"], item["content"]) for item in told["items"]] == [
        ("assistant", said["response"]),
        ("user", "Привет!"),
    ]
