"""Messages of one user never overtake each other, however many are on their way; users do not wait for users."""

import asyncio
from pathlib import Path

import pytest

from bus_schema.dialogue import Invoke, conversation_trace
from tests.dialogue_kit import dialogue_settings, runtime


@pytest.mark.parametrize(
    ("users", "messages", "partitions"),
    [
        (20, 5, ""),
        (8, 3, "dialogue=3"),
        pytest.param(50, 40, "", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_a_flood_of_messages_is_kept_in_order_and_whole(
    vhost_url: str, tmp_path: Path, users: int, messages: int, partitions: str
) -> None:
    everybody = [f"user-{number}" for number in range(users)]
    settings = dialogue_settings(vhost_url, tmp_path, partitions=partitions)
    async with runtime(settings, "storage", "dialogue") as team:

        async def flood(user_id: str) -> None:
            """Without waiting for any answer; a command is on its way when it is confirmed."""
            for number in range(messages):
                command = Invoke(user_id=user_id, message=f"{number} – и снова я")
                await team.bus.send(command, trace=conversation_trace(user_id))

        await asyncio.gather(*map(flood, everybody))
        for user_id in everybody:
            await team.until_said(user_id, 2 * messages, within_s=60 + users * messages / 10)
        histories = {user_id: await team.history(user_id) for user_id in everybody}

    for said in histories.values():
        asked, answers = said[::2], said[1::2]
        assert [int((message.content or "").split()[0]) for message in asked] == list(range(messages))
        assert {message.role for message in asked} == {"user"}
        assert {message.role for message in answers} == {"assistant"}
