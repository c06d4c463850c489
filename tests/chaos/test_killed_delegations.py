"""Workers are killed while masters delegate: no task is lost, doubled, out of order, or told of in another chat."""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bus_schema.dialogue import Invoke, conversation_trace
from bus_schema.history import chat_key
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.forked_workers import forked_workers_of
from tests.llm_server import LlmServer, Reply, Request, Says
from tests.subagent_kit import delegates, master, told, with_subagent

CHATS = 20
DELEGATIONS = 10
UNHARMED = ("storage", "subagent-analytic")

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


def thinking(request: Request) -> Reply:
    """A master that delegates so many times, an analyst that says how much it was told before."""
    messages = request.body["messages"]
    said = [message for message in messages if message["role"] == "user"]
    chat = re.findall(r"chat-\d+", said[-1]["content"])[-1]
    if "You are an analyst" in messages[0]["content"]:
        number = len(said) - 1
        named = {found for each in messages[1:] for found in re.findall(r"chat-\d+", each["content"] or "")}
        return Says(f"{chat} answer {number}" if named == {chat} else "told of another chat")
    done = sum(message["role"] == "tool" for message in messages)
    return Says(f"{chat} done") if done == DELEGATIONS else delegates(f"{chat} task {done}")


async def talk(team: Runtime, chat: str) -> str:
    command = Invoke(user_id=chat, message=f"Work for {chat}")
    return (await team.bus.request(command, trace=conversation_trace(chat), timeout_s=400)).response


@pytest.mark.parametrize(
    "victims",
    [
        ("history", "dialogue", "history"),
        pytest.param(("history", "dialogue") * 10, marks=[pytest.mark.proof, pytest.mark.timeout(1200)]),
        pytest.param(("history",) * 20, marks=[pytest.mark.proof, pytest.mark.timeout(1200)]),
    ],
    ids=["3", "20", "20-history"],
)
async def test_no_delegation_is_lost_doubled_or_out_of_order(
    vhost_url: str, tmp_path: Path, report: Callable[[str], None], victims: tuple[str, ...]
) -> None:
    chats = [f"chat-{number}" for number in range(CHATS)]
    async with LlmServer(otherwise=thinking) as model:
        options = {"llm_base_url": model.base_url, "llm_model": "scripted", "recall_timeout_s": 0}
        settings = dialogue_settings(vhost_url, tmp_path, **options)
        async with master(settings, *UNHARMED) as team:
            with forked_workers_of(settings) as workers:
                await workers.start("history", "dialogue")
                talks = asyncio.gather(*(talk(team, chat) for chat in chats))
                whole = 2 * CHATS * DELEGATIONS
                for number, victim in enumerate(victims):
                    wanted = whole * (number + 1) // (len(victims) + 1)
                    await until(partial(_has_come_to, model, talks, wanted), 300, f"{wanted} calls")
                    await workers.kill(victim)
                answers = await talks
                paid = len(model.requests)
                stored = {chat: await with_subagent(team, chat) for chat in chats}
                rounds = {chat: [each.content for each in await told(team, chat_key(chat))] for chat in chats}

    assert answers == [f"{chat} done" for chat in chats]
    for chat in chats:
        tasks = [f"{chat} task {number}" for number in range(DELEGATIONS)]
        replies = [f"{chat} answer {number}" for number in range(DELEGATIONS)]
        both = zip(tasks, replies, strict=True)
        assert stored[chat] == [each for task, reply in both for each in (("user", task), ("assistant", reply))]
        assert rounds[chat] == [
            f"Work for {chat}",
            *(each for reply in replies for each in (None, reply)),
            f"{chat} done",
        ]
    needed = CHATS * (2 * DELEGATIONS + 1)
    report(f"{CHATS} chats × {DELEGATIONS} delegations, {victims} killed: {paid} model calls, {needed} were needed")


def _has_come_to(model: LlmServer, talks: "asyncio.Future[list[str]]", calls: int) -> bool:
    return talks.done() or len(model.requests) >= calls
