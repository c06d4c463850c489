"""A fleet that has used its tokens of the day says so, and calls no model any more."""

from pathlib import Path

import pytest

from bus_schema.model_calls import GetTokensToday
from bus_schema.replies import Code
from mindbus import ReplyError
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from tests.llm_server import LlmServer, Says

pytestmark = pytest.mark.rabbit


async def test_beyond_the_quota_of_a_day_a_message_is_refused_with_the_reason(vhost_url: str, tmp_path: Path) -> None:
    async with LlmServer(Says("Fine."), Says("Not to be said.")) as server:
        settings = dialogue_settings(
            vhost_url, tmp_path, llm_base_url=server.base_url, llm_model="small", quota_tokens_per_day=1
        )
        async with runtime(settings, "storage", "dialogue") as team:
            answered = await team.say("anna", "How are you?")
            await until(lambda: _used(team), what="the count of tokens")
            with pytest.raises(ReplyError, match="MINDBUS_QUOTA_TOKENS_PER_DAY") as refused:
                await team.say("boris", "And you?")

    assert answered.response == "Fine."
    assert refused.value.code is Code.UNAVAILABLE
    assert len(server.requests) == 1


async def _used(team: Runtime) -> int:
    return (await team.bus.request(GetTokensToday())).tokens
