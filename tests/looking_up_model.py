"""An OpenAI-compatible endpoint that uses its tool `search_memory` before it answers; for all else the offline model.

As a process: `python -m tests.looking_up_model` prints its address when it is ready.
"""

import asyncio
import json
import signal

from agents.models.language_model import ToolCall
from tests.llm_server import LlmServer, Reply, Request, Says, offline_reply

TOOL = "search_memory"


def reply_to(request: Request) -> Reply:
    """Delegates an explicit request, looks up what a task asks for, answers with what was found."""
    tools = {tool["function"]["name"] for tool in request.body.get("tools", ())}
    last = request.body["messages"][-1]
    text = str(last.get("content") or "")
    if TOOL in tools:
        if last["role"] == "tool":
            return Says(f"It is written down: {text[:300]}")
        return Says(
            tool_calls=(
                ToolCall(id="call_1", name=TOOL, arguments=json.dumps({"query": text.strip().splitlines()[-1]})),
            )
        )
    if (delegate := "delegate_to_librarian") in tools:
        if last["role"] == "tool":
            return Says(text[:400])
        if "librarian" in text.lower():
            return Says(
                tool_calls=(
                    ToolCall(
                        id="call_2", name=delegate, arguments=json.dumps({"task": text.rpartition(":")[2].strip()})
                    ),
                )
            )
    return offline_reply(request)


async def _serve() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with LlmServer(otherwise=reply_to) as server:
        print(server.base_url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
