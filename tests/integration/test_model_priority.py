"""A chat comes before background work at the model's endpoint, which reads a fragment once for all agents."""

import asyncio
import json
from pathlib import Path

import pytest

from bus_schema.dialogue import EndDialogue
from mindbus.testing.wait import until
from tests.dialogue_kit import dialogue_settings, runtime
from tests.llm_server import LlmServer, Reply, Request, Says, Stalls

pytestmark = pytest.mark.rabbit
WORKERS = ("storage", "tracker", "dialogue", "task_manager", "context_manager", "mood_watcher")


def reads(request: Request) -> bool:
    """Whether a call reads a fragment."""
    return "response_format" in request.body


def reading(message_id: str, quote: str, text: str) -> Says:
    task = {"change": "found", "message_id": message_id, "quote": quote, "task_id": None, "text": text}
    return Says(
        json.dumps(
            {
                "facts": {"items": []},
                "mood": {"tone": -0.7, "evidence": [quote]},
                "tasks": {"items": [{**task, "owner": None, "due_said": None}]},
            }
        )
    )


@pytest.mark.parametrize(
    ("said", "quote", "text", "question"),
    [
        ("Смета Ирине опять на мне, тоска зелёная.", "Смета Ирине опять на мне", "Смета Ирине", "Кто сегодня дежурит?"),
        ("Writing the estimate is on me again, ugh.", "Writing the estimate", "The estimate", "Who is on duty?"),
    ],
)
async def test_a_question_interrupts_the_reading_of_a_fragment_which_is_made_again(
    vhost_url: str, tmp_path: Path, said: str, quote: str, text: str, question: str
) -> None:
    script: tuple[Reply, ...] = (Says("Fine."), Stalls(), Says("Monday."), reading("msg_first", quote, text))
    async with LlmServer(*script) as server:
        settings = dialogue_settings(vhost_url, tmp_path, llm_base_url=server.base_url, llm_model="small")
        async with runtime(settings, *WORKERS) as team:
            await team.say("anna", said, message_id="msg_first")
            await team.bus.request(EndDialogue(user_id="anna"))
            await until(lambda: len(server.requests) == 2, 20, "the reading")
            async with asyncio.timeout(20):
                answered = await team.say("anna", question)
            found = await team.until_on_timeline("processed.tasks_found")
            moods = await team.until_on_timeline("processed.mood_assessed")

    assert answered.response == "Monday."
    assert [reads(request) for request in server.requests] == [False, True, False, True]
    assert text in [item["task"]["text"] for event in found for item in (event.data or {})["items"]]
    assert [item["tone"] for event in moods for item in (event.data or {})["items"]] == [-0.7]


async def test_a_role_may_have_a_model_of_its_own(
    vhost_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LlmServer(Says("Fine.")) as chat, LlmServer(reading("msg_first", "x", "x")) as background:
        endpoint = f"endpoints: {{chat: {{base_url: '{chat.base_url}'}}}}"
        (tmp_path / "models.yaml").write_text(f"{endpoint}\nroles: {{dialogue: {{endpoint: chat, model: large}}}}\n")
        monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path))
        monkeypatch.setenv("MINDBUS_LLM_CONTEXT_MANAGER_MODEL", "offline")
        monkeypatch.setenv("MINDBUS_LLM_MOOD_WATCHER_MODEL", "offline")
        settings = dialogue_settings(vhost_url, tmp_path, llm_base_url=background.base_url, llm_model="small")
        async with runtime(settings, *WORKERS) as team:
            await team.say("anna", "I will send the report on Friday.", message_id="msg_first")
            await team.bus.request(EndDialogue(user_id="anna"))
            await team.until_on_timeline("processed.tasks_found")

    assert [request.body["model"] for request in chat.requests] == ["large"]
    assert {request.body["model"] for request in background.requests} == {"small"}
    assert all(reads(request) for request in background.requests)
