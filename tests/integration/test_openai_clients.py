"""OpenAI's own client in front of the dialogue, a role and a sub-agent."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from agents.models.language_model import tool_call
from config.settings import FleetSettings
from mindbus.accounts import AccessRole, accounts_of
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.gateways import Served, gateway_settings, serving
from tests.installed import FLEET
from tests.llm_server import Fails, HangsUp, LlmServer, Reply, Says, Stalls

pytestmark = pytest.mark.rabbit
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "openai-clients.md"
TALK = ("storage", "history", "dialogue")


@asynccontextmanager
async def talking(
    broker: Broker,
    url: str,
    folder: Path,
    *script: Reply,
    workers: Sequence[str] = TALK,
    delay: timedelta = timedelta(0),
    **changes: Any,
) -> AsyncIterator[tuple[Served, FleetSettings, LlmServer]]:
    async with LlmServer(*script, delay=delay) as model:
        access = {"gateway_access": "token", "llm_base_url": model.base_url, "llm_model": "small"}
        settings = gateway_settings(broker, url, folder, **access, **changes)
        async with serving(*(FLEET[name] for name in workers), settings=settings) as gateway:
            yield gateway, settings, model


@asynccontextmanager
async def client_of(gateway: Served, settings: FleetSettings, name: str = "anna") -> AsyncIterator[AsyncOpenAI]:
    token = accounts_of(settings).add(name, AccessRole.USER)
    async with AsyncOpenAI(base_url=f"{gateway.worker.url}/v1", api_key=token, max_retries=0) as client:
        yield client


def said(*texts: str) -> Any:
    return [{"role": "user", "content": text} for text in texts]


async def test_chat_completions(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    script = (Says("It is sunny in Oslo."), Says("Still sunny."), Says("Once.", finish_reason="stop"))
    async with (
        talking(broker, vhost_url, migrated_folder, *script) as (gateway, settings, model),
        client_of(gateway, settings) as client,
    ):
        whole = await client.chat.completions.create(model="dialogue", messages=said("How is the weather?"))
        assert whole.choices[0].message.content == "It is sunny in Oslo."
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage
        assert whole.usage.total_tokens > 0

        stream = await client.chat.completions.create(
            model="dialogue",
            messages=said("How is the weather?", "And now?"),
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Still sunny."
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].usage
        # What was said before stands in the dialogue's own memory: once, not as the client repeats it.
        heard = str(model.requests[-1].messages)
        assert heard.count("How is the weather?") == 1

        key = {"Idempotency-Key": "k1"}
        twice = [
            await client.chat.completions.create(model="dialogue", messages=said("Say it."), extra_headers=key)
            for _ in range(2)
        ]
        assert [each.choices[0].message.content for each in twice] == ["Once.", "Once."]
        assert len(model.requests) == 3


async def test_the_programs_of_the_guide(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    programs = re.findall(r"```python\n(.+?)```", GUIDE.read_text(), re.S)
    script = (Says("", (tool_call("stock", thing="chair"),)), Says("No, there are 28."))
    workers = (*TALK, "task_manager")
    async with talking(broker, vhost_url, migrated_folder, *script, workers=workers) as (gateway, settings, _):
        token = accounts_of(settings).add("anna", AccessRole.USER)
        environment = {"OPENAI_BASE_URL": f"{gateway.worker.url}/v1", "OPENAI_API_KEY": token}
        for program, told in zip(programs, ("Nothing is due today.", "No, there are 28."), strict=True):
            running = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", program), env={**os.environ, **environment}, stdout=asyncio.subprocess.PIPE
            )
            assert (await running.communicate())[0].decode() == f"{told}\n"


async def test_what_is_refused(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    async with (
        talking(broker, vhost_url, migrated_folder) as (gateway, settings, _),
        client_of(gateway, settings) as client,
        client_of(gateway, settings, "boris") as boris,
    ):
        create: Any = client.chat.completions.create
        with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'"):
            await create(model="gpt-9", messages=said("Hello"))
        with pytest.raises(openai.UnprocessableEntityError, match="only text is heard, no image_url"):
            await create(model="dialogue", messages=[{"role": "user", "content": picture}])
        with pytest.raises(openai.UnprocessableEntityError, match="the last one of the user has no text"):
            await create(model="dialogue", messages=[{"role": "system", "content": "Be brief."}])
        with pytest.raises(openai.BadRequestError, match="messages"):
            await create(model="dialogue", messages=[])
        with pytest.raises(openai.AuthenticationError):
            await client.with_options(api_key="no such token").models.list()
        # A user cannot speak as another: the name is but a label.
        answer = await boris.responses.create(model="dialogue", input="My salary is 310000.", user="anna")
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(answer.id)


async def test_a_response_goes_on_from_one_of_the_same_user(
    broker: Broker, vhost_url: str, migrated_folder: Path
) -> None:
    async with (
        talking(broker, vhost_url, migrated_folder, Says("Noted."), Says("310000.")) as (gateway, settings, _),
        client_of(gateway, settings) as client,
        client_of(gateway, settings, "boris") as boris,
    ):
        first = await boris.responses.create(model="dialogue", input="My salary is 310000.")
        more = await boris.responses.create(model="dialogue", input="Say it.", previous_response_id=first.id)
        assert more.output_text == "310000."
        with pytest.raises(openai.NotFoundError, match=f"there is no response {first.id}"):
            await client.responses.create(model="dialogue", input="How much?", previous_response_id=first.id)
        with pytest.raises(openai.UnprocessableEntityError, match="only dialogue remembers"):
            await boris.responses.create(model="role:critic", input="And?", previous_response_id=first.id)
        result: Any = {"type": "function_call_output", "call_id": "call_1", "output": "21"}
        with pytest.raises(openai.UnprocessableEntityError, match="calls are not kept"):
            await boris.responses.create(model="dialogue", input=[result], previous_response_id=first.id)


async def test_a_response_outlives_its_connection(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    async with (
        talking(broker, vhost_url, migrated_folder, Says("A long answer."), Says("Another.")) as (
            gateway,
            settings,
            model,
        ),
        client_of(gateway, settings) as client,
    ):
        begun = await client.responses.create(model="dialogue", input="Tell me all.", background=True)
        assert begun.status == "in_progress"

        async def is_completed() -> bool:
            return (await client.responses.retrieve(begun.id)).status == "completed"

        await until(is_completed)
        assert (await client.responses.retrieve(begun.id)).output_text == "A long answer."
        again = [event async for event in await client.responses.retrieve(begun.id, stream=True)]
        assert "".join(event.delta for event in again if event.type == "response.output_text.delta") == "A long answer."
        assert again[-1].type == "response.completed"
        assert [event.sequence_number for event in again] == list(range(len(again)))

        async with client.responses.stream(model="dialogue", input="More?") as stream:
            final = await stream.get_final_response()
        assert final.output_text == "Another."
        assert len(model.requests) == 2


async def test_a_response_that_never_comes_fails_and_only_one_under_way_is_cancelled(
    broker: Broker, vhost_url: str, migrated_folder: Path
) -> None:
    soon: dict[str, Any] = {"llm_timeout_s": 1, "subagent_timeout_s": 1, "request_timeout_s": 8}
    script = (Fails(400), Says("Here."))
    async with (
        talking(broker, vhost_url, migrated_folder, *script, **soon) as (gateway, settings, _),
        client_of(gateway, settings) as client,
    ):
        begun = await client.responses.create(model="dialogue", input="Tell me all.", background=True)

        async def is_failed() -> bool:
            return (await client.responses.retrieve(begun.id)).status == "failed"

        await until(is_failed, 60)
        error = (await client.responses.retrieve(begun.id)).error
        assert error is not None
        assert "send the input again" in error.message

        events = await client.responses.create(model="dialogue", input="Again.", background=True, stream=True)
        *_, last = [event async for event in events]
        assert last.type == "response.completed"
        for response_id, refusal in ((last.response.id, openai.ConflictError), ("resp_nosuch", openai.NotFoundError)):
            with pytest.raises(refusal):
                await client.responses.cancel(response_id)


async def test_hanging_up_stops_no_response(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    async with (
        talking(broker, vhost_url, migrated_folder, Says("All of it."), delay=timedelta(seconds=2)) as talk,
        client_of(*talk[:2]) as client,
    ):
        begun = await client.responses.create(model="dialogue", input="Tell me all.", background=True)
        with pytest.raises(openai.APITimeoutError):
            await client.with_options(timeout=0.7).responses.retrieve(begun.id, stream=True)

        async def is_completed() -> bool:
            return (await client.responses.retrieve(begun.id)).status == "completed"

        await until(is_completed)
        assert (await client.responses.retrieve(begun.id)).output_text == "All of it."


async def test_hanging_up_stops_a_completion(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    script = (Stalls(after_pieces=3), HangsUp(after_pieces=2), Says("word " * 8))
    async with (
        talking(broker, vhost_url, migrated_folder, *script) as (gateway, settings, model),
        client_of(gateway, settings) as client,
    ):
        async with await client.chat.completions.create(
            model="dialogue", messages=said("Tell me all."), stream=True
        ) as stream:
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break

        async def is_kept() -> bool:
            token = client.api_key
            own = {"Authorization": f"Bearer {token}"}
            page = await gateway.ok("GET", "/api/dialogues/anna/messages", headers=own)
            return "assistant" in {item["role"] for item in page["items"]}

        await until(is_kept)
        # A stream of the model that breaks and begins again is told without a repetition.
        again = await client.chat.completions.create(model="dialogue", messages=said("Again?"), stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in again]).strip() == ("word " * 8).strip()
        assert len(model.requests) == 3


async def test_roles_subagents_and_embeddings(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    workers = (*TALK, "glm", "orchestrator", "critic", "subagent-analytic")
    async with (
        talking(broker, vhost_url, migrated_folder, workers=workers) as (gateway, settings, _),
        client_of(gateway, settings) as client,
    ):
        names = {model.id async for model in client.models.list()}
        assert {"dialogue", "role/critic", "subagent/analytic"} <= names
        assert (await client.models.retrieve("role/critic")).id == "role/critic"
        ask = client.chat.completions.create
        review, analysis = await asyncio.gather(
            ask(model="role/critic", messages=said("# Wind\n\nIt blows from the west, always.")),
            ask(model="subagent/analytic", messages=said("What is 2 + 2?")),
        )
        assert review.choices[0].message.content
        assert analysis.choices[0].message.content
        vectors = await client.embeddings.create(model="any", input=["A cat sleeps.", "A kitten naps.", "Tax law."])
        near, far = (_cosine(vectors.data[0].embedding, vectors.data[other].embedding) for other in (1, 2))
        assert near > far


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
