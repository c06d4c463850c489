"""Sub-agents that remember (spec 001): what is said in one request, across requests, whatever models get wrong."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from redis.asyncio import Redis

from agents.models.language_model import ToolCall
from bus_schema.artifacts import ArtifactRef
from bus_schema.history import chat_key, subagent_key
from bus_schema.subagent import MAX_SHOWN_CHARS, SubagentCompletion, SubagentToolResult
from config.settings import FleetSettings
from mindbus import Delegated, ReplyError, SubAgent
from mindbus.sdk.artifacts import open_artifacts
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.llm_server import Fails, LlmServer, Reply, Request, Says
from tests.subagent_kit import called, delegates, master, told, with_subagent

TEST_1 = "Скажи подагенту что меня зовут Алия, а потом спроси как меня зовут"
MB = 1024**2


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.backends)])
def redis_url_or_none(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("redis_url") if request.param == "redis" else None


async def test_the_three_tests_of_the_specification(
    vhost_url: str, tmp_path: Path, redis_url_or_none: str | None
) -> None:
    settings = dialogue_settings(vhost_url, tmp_path, redis_url=redis_url_or_none)
    async with master(settings) as team:
        first = await team.say("12345", TEST_1)
        stored = await with_subagent(team, "12345")
        raw = await as_redis_has_it(redis_url_or_none, "subagent:analytic:12345")
        across = await team.say("12345", "Спроси подагента, как меня зовут")

        await team.say("777", "Меня зовут Алия")
        second = await team.say("777", "Как меня зовут?")
        stranger = await team.say("778", "Как меня зовут?")
        rounds = [each.role for each in await told(team, chat_key("12345"))]

    # Test 1: both calls in one request; the second sees the first.
    assert [role for role, _ in stored] == ["user", "assistant", "user", "assistant"]
    assert [content for _, content in stored[::2]] == ["Меня зовут Алия.", "Как меня зовут?"]
    assert stored[-1] == ("assistant", "Вас зовут Алия.")
    assert "Вас зовут Алия." in first.response
    assert rounds == ["user", *["assistant", "tool"] * 2, "assistant", "user", "assistant", "tool", "assistant"]
    # Test 2: the next request reads what the one before has told.
    assert second.response == "Вас зовут Алия."
    assert "Вас зовут Алия." in across.response
    assert "Алия" not in stranger.response
    # Test 3: the value under the key is one JSON array of messages.
    assert raw is None or [(each["role"], each["content"]) for each in json.loads(raw)] == stored


@pytest.mark.parametrize(
    ("text", "tasks", "name"),
    [
        (
            "Скажи подагенту моё имя Алия, а потом спроси у него",
            ["Моё имя Алия.", "Как меня зовут?"],
            "Вас зовут Алия.",
        ),
        ("Сообщи аналитику, что меня зовут Алия, и спроси у него", ["Меня зовут Алия.", "Как меня зовут?"], "Алия"),
        ("Tell the analyst that my name is Bob, then ask it", ["My name is Bob.", "What is my name?"], "Bob"),
    ],
)
async def test_without_a_model_the_delegations_are_told_with_the_answer(
    vhost_url: str, tmp_path: Path, text: str, tasks: list[str], name: str
) -> None:
    async with master(dialogue_settings(vhost_url, tmp_path)) as team:
        answer = await team.say("12345", text)

    assert [(each.subagent, each.task) for each in answer.delegations] == [("analytic", task) for task in tasks]
    assert name in answer.delegations[-1].response
    assert name in answer.response


async def as_redis_has_it(url: str | None, key: str) -> bytes | None:
    if url is None:
        return None
    async with Redis.from_url(url) as redis:
        found = await redis.get(key)
    assert isinstance(found, bytes)
    return found


class ClumsySubagent(SubAgent):
    """Fails in whatever way its task says, or takes for ever."""

    name = "subagent-clumsy"
    description = "Fails, for tests."
    seen: ClassVar[list[str]] = []

    async def execute(self, work: Delegated) -> str:
        self.seen.append(work.task)
        if work.task == "sleep":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.seen.append("cancelled")
                raise
        raise ValueError("stumbled")


@asynccontextmanager
async def scripted(settings: FleetSettings, server: LlmServer) -> AsyncIterator[Runtime]:
    """Every model call goes to the server, over HTTP; `clumsy`, `gone` are known beside `analytic`."""
    others = settings.data_dir / "subagents.yaml"
    others.write_text("subagents: {clumsy: Fails., gone: Is never there.}\n", encoding="utf-8")
    options = {"llm_base_url": server.base_url, "llm_model": "scripted", "subagents": str(others)}
    async with master(settings.model_copy(update=options), more=(ClumsySubagent,)) as team:
        yield team


@pytest.fixture
async def model() -> AsyncIterator[LlmServer]:
    async with LlmServer() as server:
        yield server


@pytest.fixture
async def team(vhost_url: str, tmp_path: Path, model: LlmServer) -> AsyncIterator[Runtime]:
    async with scripted(dialogue_settings(vhost_url, tmp_path, subagent_timeout_s=4, delegation_rounds=3), model) as it:
        yield it


def asked_of_analyst(model: LlmServer) -> list[Request]:
    return [each for each in model.requests if "You are an analyst" in each.body["messages"][0]["content"]]


def results_told(request: Request) -> list[str]:
    """What the master's model was told by tools since the user's last words."""
    messages = request.body["messages"]
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    return [message["content"] for message in messages[last + 1 :] if message["role"] == "tool"]


async def test_calls_of_one_request_and_of_the_next_see_each_other(team: Runtime, model: LlmServer) -> None:
    model.script.extend(
        [
            delegates("Пользователя зовут Алия.", text="Сейчас передам."),
            Says("Запомнил."),
            delegates("Как зовут пользователя?"),
            Says("Алия."),
            Says("Готово."),
        ]
    )
    answer = await team.say("anna", "Передай подагенту моё имя")
    second = asked_of_analyst(model)[1].body["messages"]
    assert [(each["role"], each["content"].splitlines()[-1]) for each in second[1:]] == [
        ("user", "Пользователя зовут Алия."),
        ("assistant", "Запомнил."),
        ("user", "Как зовут пользователя?"),
    ]
    assert answer.response == "Сейчас передам.\n\nГотово."
    assert [(each.subagent, each.task, each.response) for each in answer.delegations] == [
        ("analytic", "Пользователя зовут Алия.", "Запомнил."),
        ("analytic", "Как зовут пользователя?", "Алия."),
    ]

    model.script.extend([delegates("И ещё раз?"), Says("Алия."), Says("Вот.")])
    await team.say("anna", "Ещё раз")
    third = asked_of_analyst(model)[2].body["messages"]
    assert [each["role"] for each in third[1:]] == ["user", "assistant"] * 2 + ["user"]
    chat = [(each.role, each.content) for each in await told(team, chat_key("anna"))]
    assert ("assistant", "Сейчас передам.") in chat
    assert ("assistant", "Готово.") in chat

    await team.until_on_timeline("subagent_completion", 3, trace_id="conv_anna")
    names = [each.name for each in await team.timeline(topics=("subagent",), trace_id="conv_anna")]
    assert names == ["subagent_delegation", "subagent_completion"] * 3


async def test_a_pair_of_delegations_in_one_answer_keeps_both_in_the_order_of_the_calls(
    team: Runtime, model: LlmServer
) -> None:
    model.script.extend([delegates("Раз.", "Два."), Says("Первое."), Says("Второе."), Says("Оба.")])
    await team.say("anna", "Спроси дважды")

    assert [content for _, content in await with_subagent(team, "anna")] == ["Раз.", "Первое.", "Два.", "Второе."]
    assert results_told(model.requests[-1]) == ["Первое.", "Второе."]


async def test_what_was_delegated_before_a_failure_is_neither_done_nor_kept_again(
    team: Runtime, model: LlmServer
) -> None:
    model.script.extend([delegates("Раз.", text="Минуту."), Says("Первое."), Fails(400)])
    with pytest.raises(ReplyError):
        await team.say("anna", "Спроси", message_id="msg_1")
    model.script.append(Says("Готово."))
    answer = await team.say("anna", "Спроси", message_id="msg_1")

    assert answer.response == "Минуту.\n\nГотово."
    again = await team.say("anna", "Спроси", message_id="msg_1")
    assert [each.task for each in again.delegations] == [each.task for each in answer.delegations] == ["Раз."]
    assert results_told(model.requests[-1]) == ["Первое."]
    assert len(asked_of_analyst(model)) == 1
    assert await with_subagent(team, "anna") == [("user", "Раз."), ("assistant", "Первое.")]
    kept = [(each.role, each.content) for each in await told(team, chat_key("anna"))]
    assert kept == [("user", "Спроси"), ("assistant", "Минуту."), ("tool", "Первое."), ("assistant", "Готово.")]


async def test_whatever_a_model_or_a_sub_agent_gets_wrong_the_talk_goes_on(team: Runtime, model: LlmServer) -> None:
    broken = ToolCall(id="call_b", name="delegate_to_analytic", arguments='{"task": "нет конца')
    nothing = ToolCall(id="call_b", name="delegate_to_analytic", arguments="[]")
    wrong: list[tuple[Reply, str]] = [
        (delegates("Привет", to="nobody"), "Подагента 'nobody' нет; есть: analytic, clumsy, gone"),
        (delegates("Привет", to="gone"), "Подагент gone не ответил: subagent-gone is not running"),
        (delegates("sleep", to="clumsy"), "Подагент clumsy не ответил: not done within"),
        (delegates("fall", to="clumsy"), "Подагент clumsy не ответил: "),
        (Says(tool_calls=(broken,)), "Вызов не читается: it is no JSON"),
        (Says(tool_calls=(nothing,)), "Вызов не читается: it has no task"),
    ]
    for number, (reply, expected) in enumerate(wrong):
        model.script.extend([reply, Says(f"Ладно {number}.")])
        answer = await team.say(f"user-{number}", "Сделай это")
        (result,) = results_told(model.requests[-1])
        assert expected in result
        assert answer.response == f"Ладно {number}."
    assert "cancelled" in ClumsySubagent.seen
    await team.until_on_timeline("subagent_completion", 3)
    failed = [
        SubagentCompletion.model_validate(event.envelope.data)
        for event in await team.timeline(topics=("subagent",))
        if event.name == "subagent_completion"
    ]
    assert [each.is_error for each in failed] == [True] * 3


async def test_tools_that_fail_or_say_too_much_do_not_stop_a_sub_agent(
    team: Runtime, model: LlmServer, vhost_url: str, tmp_path: Path
) -> None:
    long = "строка отчёта\n" * (2 * MB // 26)
    async with open_artifacts(team.bus, dialogue_settings(vhost_url, tmp_path)) as artifacts:
        about: dict[str, Any] = {"artifact_type": "note", "content_type": "text/plain", "trace": "conv_anna"}
        put = await artifacts.put(long.encode(), **about)
        table = await artifacts.put("регион,сумма\nюг,10\nсевер,2.5\nюг,1".encode(), **about)
        above = {"column": "сумма", "is": ">", "value": 0}
        wanted = {"operation": "sum", "column": "сумма", "group_by": "регион", "where": [above]}
        model.script.extend(
            [
                delegates("Разберись."),
                called("compute", artifact_id="art_missing", operation="sum", column="x"),
                called("no_such_tool", "call_1"),
                called("compute", "call_2", artifact_id=table.ref.artifact_id, **wanted),
                called("read_artifact", "call_3", artifact_id=put.ref.artifact_id),
                Says("Разобрался."),
                Says("Вот."),
            ]
        )
        answer = await team.say("anna", "Разберись")
        steps = await told(team, subagent_key("analytic", "anna"))
        pointer = steps[-2].ref
        assert pointer is not None
        assert (await artifacts.get(pointer.artifact_id, trace="conv_anna")).decode() == long

    assert answer.response == "Вот."
    assert [each.role for each in steps] == ["user", *["assistant", "tool"] * 4, "assistant"]
    results = [each.content or "" for each in steps if each.role == "tool"]
    assert "cannot be read" in results[0]
    assert "there is no tool 'no_such_tool'" in results[1]
    assert results[2] == "sum of сумма by регион:\nсевер: 2.5\nюг: 11"
    assert len(results[3]) <= MAX_SHOWN_CHARS
    assert results[3].endswith(f"[… {len(long)} characters in all: artifact {pointer.artifact_id}]")
    await is_told_by_pointer(team, pointer)


async def is_told_by_pointer(team: Runtime, pointer: ArtifactRef) -> None:
    """What happened is told in order, each event once; what is long is not in it."""
    await team.until_on_timeline("subagent_completion", trace_id="conv_anna")
    events = await team.timeline(topics=("subagent",), trace_id="conv_anna")
    assert [(event.envelope.data or {})["position"] for event in events] == list(range(len(events)))
    last = [each for each in events if each.name == "subagent_tool_result"][-1]
    assert SubagentToolResult.model_validate(last.envelope.data).ref == pointer
    assert all(len(event.model_dump_json()) < 20_000 for event in events)


async def test_a_loop_of_delegations_has_an_end(team: Runtime, model: LlmServer) -> None:
    def endless(request: Request) -> Reply:
        is_analyst = "You are an analyst" in request.body["messages"][0]["content"]
        return Says("Спросите ещё раз.") if is_analyst else delegates("И снова?")

    model.otherwise = endless
    answer = await team.say("anna", "Спрашивай без конца")

    assert len(asked_of_analyst(model)) == 3
    assert answer.response.startswith("Обращений к подагентам было 3, но конца нет.")
    assert answer.response.endswith("Спросите ещё раз.")
    assert len(await with_subagent(team, "anna")) == 6


async def test_a_model_that_does_not_delegate_what_it_is_told_to_is_helped(team: Runtime, model: LlmServer) -> None:
    model.script.extend([Says("Хорошо, спрошу."), Says("Запомнил."), Says("Алия."), Says("Вас зовут Алия.")])
    answer = await team.say("anna", "Скажи подагенту моё имя Алия, а потом спроси у него")

    assert answer.response == "Вас зовут Алия."
    assert [(each.task, each.response) for each in answer.delegations] == [
        ("Моё имя Алия.", "Запомнил."),
        ("Как меня зовут?", "Алия."),
    ]


async def test_a_repeated_call_and_a_call_written_as_text_end_an_explicit_delegation(
    team: Runtime, model: LlmServer
) -> None:
    written = '```json\n{"name": "delegate_to_analytic", "arguments": {"task": "It rains."}}\n```'
    model.script.extend([delegates("It rains."), Says("Noted."), delegates("It rains."), Says(written)])
    answer = await team.say("anna", "Tell the sub-agent that it rains")

    assert answer.response == "Noted."
    assert [each.task for each in answer.delegations] == ["It rains."]


async def test_a_fragment_of_the_users_words_becomes_their_sentence(team: Runtime, model: LlmServer) -> None:
    model.script.extend([delegates("Алия"), Says("Да."), delegates("Как зовут Алию?"), Says("Алия."), Says("Готово.")])
    answer = await team.say("anna", "Скажи подагенту, что меня зовут Алия, а потом спроси, как меня зовут")

    assert [each.task for each in answer.delegations] == ["Меня зовут Алия.", "Как зовут Алию?"]


async def test_a_sub_agent_that_only_repeats_its_task_is_no_answer(team: Runtime, model: LlmServer) -> None:
    """As small models have it: they hand on whatever the user says, and say it back."""
    said = "The weather is awful today."
    model.script.extend([delegates(said), Says("the weather is awful today"), Says("Stay inside, then.")])
    answer = await team.say("anna", said)

    assert answer.response == "Stay inside, then."
    assert model.requests[-1].body["messages"][-1]["content"].startswith("The sub-agent analytic has only repeated")


async def test_a_model_that_gives_a_tool_its_own_result_has_to_answer(team: Runtime, model: LlmServer) -> None:
    def going_round(request: Request) -> Reply:
        if "tools" not in request.body:
            return Says("Запомнил: 4417.")
        last = request.body["messages"][-1]
        return called("complete_task", task=last["content"] if last["role"] == "tool" else "Запомни")

    model.otherwise = going_round
    answer = await team.say("anna", "Код от двери 4417, запомни.")

    assert answer.response == "Запомнил: 4417."
    last = model.requests[-1].body["messages"][-1]
    assert last["content"] == "Это не задача, а ответ инструмента. Ответьте пользователю."
    assert len(model.requests) == 3
