"""CrewAI in an environment of its own, with the library and without the fleet: a crew does a delegated task."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.newcomer import python_with

pytestmark = [pytest.mark.rabbit, pytest.mark.proof, pytest.mark.timeout(900)]

# The crew's model is scripted: it answers with the last words that it is asked.
PROGRAM = """
import asyncio, json
from crewai import Agent, BaseLLM, Crew, Task
from bus_schema.history import ChatMessage
from bus_schema.subagent import ExecuteTask
from mindbus.integrations.framework_agents import as_worker
from mindbus.settings import Settings
from mindbus.testing import running

class Scripted(BaseLLM):
    def call(self, messages, *rest, **more):
        said = messages if isinstance(messages, str) else messages[-1]["content"]
        line = next(line for line in said.splitlines() if "Do this" in line)
        return f"Thought: I know.\\nFinal Answer: done: {line.strip()}"

    async def acall(self, messages, *rest, **more):
        return self.call(messages)

clerk = Agent(role="clerk", goal="answer", backstory="", llm=Scripted(model="scripted"), verbose=False)
task = Task(description="Do this: {task} (before: {history})", expected_output="an answer", agent=clerk)
crew = Crew(agents=[clerk], tasks=[task])

async def work():
    Clerk = as_worker(crew, name="clerk", description="Answers.")
    async with running(Clerk, settings=Settings()) as bus:
        said = (ChatMessage(role="user", content="Good morning."),)
        order = ExecuteTask(chat_id="local", task="add it up", delegation_id="dlg_1", history=said)
        return (await bus.request(order, to="subagent-clerk", timeout_s=60)).response

print(json.dumps(asyncio.run(work())))
"""


async def test_a_crew_is_a_worker(tmp_path: Path, vhost_url: str, migrated_folder: Path) -> None:
    python = await asyncio.to_thread(python_with, tmp_path, "crewai")
    quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
    environment = {"MINDBUS_AMQP_URL": vhost_url, "MINDBUS_DATA_DIR": str(migrated_folder), "HOME": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-c",
        PROGRAM,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **environment, **quiet},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(240):
        out, err = await process.communicate()

    assert process.returncode == 0, err.decode()
    assert (
        json.loads(out.decode().splitlines()[-1])
        == "done: Current Task: Do this: add it up (before: user: Good morning.)"
    )
