"""The OpenAI Agents SDK in an environment of its own, with the library and without the fleet: session and worker."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.newcomer import python_with

pytestmark = [pytest.mark.rabbit, pytest.mark.proof, pytest.mark.timeout(600)]

# Our session and the SDK's own go through the same table; an agent with a scripted model does a delegated task.
PROGRAM = """
import asyncio, json
from agents import Agent, ModelResponse, Runner, SQLiteSession, set_tracing_disabled
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from bus_schema.subagent import ExecuteTask
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.framework_agents import as_worker
from mindbus.integrations.openai_session import MindBusSession
from mindbus.settings import Settings
from mindbus.testing import running

set_tracing_disabled(True)

class Scripted(Model):
    async def get_response(self, system_instructions, input, *rest, **more):
        parts = [input] if isinstance(input, str) else [str(item.get("content")) for item in input]
        said = " | ".join(parts)
        text = ResponseOutputText(text=f"heard {said}", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *rest, **more):
        raise NotImplementedError

agent = Agent(name="clerk", instructions="Answer.", model=Scripted())

async def table(session):
    items = [{"role": "user", "content": f"{n} пицца"} for n in range(5)]
    seen = [await session.get_items(), await session.pop_item()]
    await session.add_items(items)
    await session.add_items([])
    seen += [await session.get_items()]
    seen += [await session.get_items(limit) for limit in (2, 9, 0)]
    seen += [await session.pop_item(), await session.get_items()]
    await session.clear_session()
    seen += [await session.get_items(), await session.pop_item()]
    for said in ("first", "second"):
        await Runner.run(agent, said, session=session)
    return [*seen, await session.get_items()]

async def work():
    Clerk = as_worker(agent, name="clerk", description="Answers.")
    async with running(Clerk, settings=Settings()) as bus:
        order = ExecuteTask(chat_id="local", task="add it up", delegation_id="dlg_1")
        return (await bus.request(order, to="subagent-clerk")).response

with BusThread("user.anna") as bus:
    ours, theirs = asyncio.run(table(MindBusSession(bus, "s"))), asyncio.run(table(SQLiteSession("s")))
print(json.dumps({"ours": ours, "theirs": theirs, "response": asyncio.run(work())}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_with(tmp_path_factory.mktemp("sdk"), "openai-agents")


async def test_the_sdk_works_with_a_session_of_ours_and_its_agent_is_a_worker(
    python: Path, vhost_url: str, migrated_folder: Path
) -> None:
    environment = {"MINDBUS_AMQP_URL": vhost_url, "MINDBUS_DATA_DIR": str(migrated_folder)}
    async with fleet_of(FLEET["glm"], settings=settings_for(vhost_url, migrated_folder)):
        process = await asyncio.create_subprocess_exec(
            str(python),
            "-c",
            PROGRAM,
            cwd=migrated_folder,
            env={"PATH": os.environ["PATH"], **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(120):
            out, err = await process.communicate()

    assert process.returncode == 0, err.decode()
    told = json.loads(out.decode().splitlines()[-1])
    assert told["ours"] == told["theirs"]
    assert len(told["ours"][-1]) == 4
    assert told["response"] == "heard add it up"
