"""An answer that breaks off is restarted, continued or given up, within one budget of calls."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from agents.dialogue.agent import DialogueAgent
from agents.dialogue.delegation import delegation_tool
from agents.dialogue.generation import RetryBudget, asks_again, unavailable_message
from agents.dialogue.task_tools import TASK_TOOLS
from agents.models.answer_guards import spoken
from agents.models.answer_text import ThoughtFilter
from agents.models.conversation import chat_prompt
from agents.models.errors import AnswerCutOff, ModelUnavailable
from agents.models.explicit_requests import ExplicitRequestModel
from agents.models.language_model import Chunk, Completion, ModelMessage, Tool, ToolCall, tool_call
from agents.models.openai_compatible import OpenAICompatible
from agents.models.prompt import with_present
from agents.present import Present
from bus_schema.message_parts import is_cut_off
from bus_schema.replies import restarts
from tests.llm_server import Drips, Fails, HangsUp, LlmServer, Reply, Says
from tests.scripted_model import ScriptedModel


@asynccontextmanager
async def asked(*script: Reply) -> AsyncIterator[tuple[DialogueAgent, LlmServer]]:
    async with LlmServer(*script) as server:
        timeout = timedelta(seconds=5)
        model = OpenAICompatible(base_url=server.base_url, model="small", api_key=None, timeout=timeout, retries=0)
        try:
            yield DialogueAgent(model, budget=lambda: RetryBudget(first_wait_s=0.001)), server
        finally:
            await model.aclose()


async def pieces_of(agent: DialogueAgent, question: str = "How are things?") -> list[str]:
    return [piece async for piece in agent.answer([ModelMessage(role="user", content=question)])]


def as_read(pieces: list[str]) -> str:
    """The text that a reader has who honours restarts."""
    text = ""
    for piece in pieces:
        text = piece if restarts(piece) else text + piece
    return text


async def test_a_stream_that_breaks_begins_again_and_the_reader_is_told() -> None:
    async with asked(HangsUp(after_pieces=3), Says("All is well.")) as (agent, server):
        pieces = await pieces_of(agent)

    assert "".join(pieces).startswith("word")
    assert [restarts(piece) for piece in pieces].count(True) == 1
    assert as_read(pieces) == "All is well."
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<think>\nHm, how are things? I had better look.\n</think>\n\nAll is well.", "All is well."),
        ("\n<Thinking>Hm.</thinking>All is well.", "All is well."),
        ("<b>All</b> is well. <think> is a tag.", "<b>All</b> is well. <think> is a tag."),
    ],
)
@pytest.mark.parametrize("size", [1, 24])
async def test_what_a_model_thinks_aloud_is_not_shown(raw: str, shown: str, size: int) -> None:
    thoughts = ThoughtFilter()
    assert "".join(thoughts.take(raw[at : at + size]) for at in range(0, len(raw), size)) == shown
    async with asked(Says(raw)) as (agent, _server):
        assert as_read(await pieces_of(agent)).strip() == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Hm, how are things?\nI had better look.\n</think>\n\nAll is well.", "All is well."),
        ("It ends with\n</think> in a line.", "It ends with\n</think> in a line."),
        ("So:\n<think>\nHm.\n</think>\nThat is how.", "So:\n<think>\nHm.\n</think>\nThat is how."),
        ("Hm.\n</think>\nIt ends with\n</think>\nalone.", "It ends with\n</think>\nalone."),
    ],
)
async def test_thoughts_that_only_end_are_taken_back_at_their_end(raw: str, shown: str) -> None:
    async with asked(Drips(0.0, raw)) as (agent, _server):
        pieces = await pieces_of(agent)
    assert as_read(pieces) == shown
    assert [restarts(piece) for piece in pieces].count(True) == (shown != raw)


async def test_thoughts_that_were_left_out_have_no_second_end() -> None:
    answer = "It ends with\n</think>\nalone."
    async with asked(Drips(0.0, f"<think>Hm.</think>{answer}")) as (agent, _server):
        pieces = await pieces_of(agent)
    assert "".join(pieces) == answer


async def test_thoughts_before_a_continuation_leave_the_first_half() -> None:
    cut_off = ("Hm.\n</think>\nThe first half, ", "Hm, yes.\n</think>\nthe second ")
    halves = (Says(text, finish_reason="length") for text in cut_off)
    async with asked(*halves, Says("Hm.\n</think>\nhalf.")) as (agent, _server):
        assert as_read(await pieces_of(agent)) == "The first half, the second half."


async def test_an_answer_that_goes_round_in_circles_is_shown_without_them() -> None:
    circle = "- Who answers in January?\n- Who answers in February?\n"
    async with asked(Drips(0.0, "All is well.\n" + circle * 2_000)) as (agent, server):
        pieces = await pieces_of(agent)

    assert as_read(pieces) == "All is well.\n" + circle.rstrip()
    assert len(server.requests) == 1


async def test_a_message_costs_four_failing_calls_at_most() -> None:
    async with asked(*[Fails(500)] * 9) as (agent, server):
        with pytest.raises(ModelUnavailable, match="HTTP 500"):
            await pieces_of(agent)

    assert len(server.requests) == 4


async def test_a_stream_that_breaks_every_time_leaves_nothing_shown() -> None:
    pieces: list[str] = []

    async def read(agent: DialogueAgent) -> None:
        async for piece in agent.answer([ModelMessage(role="user", content="?")]):
            pieces.append(piece)  # kept when the generator raises

    async with asked(*[HangsUp(after_pieces=3)] * 9) as (agent, server):
        with pytest.raises(ModelUnavailable):
            await read(agent)

    assert pieces
    assert as_read(pieces) == ""
    assert len(server.requests) == 4


async def test_an_endpoint_that_asks_for_a_long_pause_is_called_once() -> None:
    async with asked(*[Fails.busy(429, retry_after_s=60)] * 2) as (agent, server):
        with pytest.raises(ModelUnavailable):
            await pieces_of(agent)

    assert len(server.requests) == 1


async def test_an_answer_at_the_token_limit_goes_on_where_it_stopped() -> None:
    async with asked(Says("The first half, ", finish_reason="length"), Says("the second half.")) as (agent, server):
        pieces = await pieces_of(agent)

    assert as_read(pieces) == "The first half, the second half."
    assert server.requests[1].messages[-2].content == "The first half, "
    assert "Continue" in server.requests[1].messages[-1].content


async def test_an_answer_without_end_is_kept_and_marked() -> None:
    async with asked(*[Says("и ещё ", finish_reason="length")] * 9) as (agent, server):
        text = as_read(await pieces_of(agent, "Расскажи всё"))

    assert text == "и ещё и ещё и ещё и ещё … [ответ оборван]"
    assert is_cut_off(text)
    assert len(server.requests) == 4


async def test_a_continuation_that_breaks_leaves_what_came_before_it() -> None:
    broken = [HangsUp(after_pieces=3)] * 9
    async with asked(Says("The first half,", finish_reason="length"), *broken) as (agent, _):
        text = as_read(await pieces_of(agent))

    assert text == "The first half,… [cut off]"


async def test_a_limit_before_the_first_word_is_an_error() -> None:
    async with asked(Says("", finish_reason="length")) as (agent, _):
        with pytest.raises(AnswerCutOff):
            await pieces_of(agent)


@pytest.mark.parametrize(
    "text", ["да", "Да!", "давай, повтори", "попробуй ещё раз", "повтори, пожалуйста", "yes", "Try again", "ok, retry"]
)
def test_requests_to_try_again(text: str) -> None:
    assert asks_again(text)


@pytest.mark.parametrize(
    "text", ["дай отчёт", "да, Марат заболел", "повтори отчёт Ольге", "yes, the launch moved", "try the new build", ""]
)
def test_other_messages_are_no_requests_to_try_again(text: str) -> None:
    assert not asks_again(text)


def test_the_reason_is_told_in_the_language_of_the_question() -> None:
    assert "Вопрос сохранён" in unavailable_message("Какой сегодня день?")
    assert "is kept" in unavailable_message("What day is it?")


async def test_a_model_that_talks_to_its_limit_instead_of_delegating_delegates_all_the_same() -> None:
    model = ExplicitRequestModel(ScriptedModel(AnswerCutOff()))
    said = [ModelMessage(role="user", content="Скажи подагенту analytic моё имя Алия")]

    chunks = [chunk async for chunk in model.stream(said, tools=[delegation_tool("analytic", "Counts.")])]

    completion = chunks[-1].completion
    assert completion is not None
    assert [call.name for call in completion.tool_calls] == ["delegate_to_analytic"]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("Код от боковой двери — 4471.", "Вас зовут Алия."),
        ("Подагент знает: вас зовут Алия.", "Подагент знает: вас зовут Алия."),
    ],
)
async def test_a_sub_agents_answer_goes_before_what_the_model_remembers(answer: str, shown: str) -> None:
    tools = [delegation_tool("analytic", "Counts.")]
    asked = [ModelMessage(role="user", content="Скажи подагенту моё имя Алия, а потом спроси у него")]
    for place, result in enumerate(("Буду помнить: вас зовут Алия.", "Вас зовут Алия.")):
        call = tool_call("delegate_to_analytic", f"call_{place}", task="…")
        asked += [
            ModelMessage(role="assistant", content="", tool_calls=(call,)),
            ModelMessage(role="tool", content=result, tool_call_id=call.id, name=call.name),
        ]

    chunks = [chunk async for chunk in ExplicitRequestModel(ScriptedModel(answer)).stream(asked, tools=tools)]

    assert "".join(chunk.text for chunk in chunks).strip() == shown


async def test_a_call_that_a_model_repeats_of_its_own_accord_ends_its_calls() -> None:
    call = tool_call("delegate_to_analytic", task="What is the code?")
    made = [
        ModelMessage(role="user", content="By the way, the code of the door is 4815."),
        ModelMessage(role="assistant", content="", tool_calls=(call,)),
        ModelMessage(role="tool", content="It has not answered.", tool_call_id=call.id, name=call.name),
    ]
    model = ExplicitRequestModel(ScriptedModel(calls(call), "Noted."))

    chunks = [chunk async for chunk in model.stream(made, tools=[delegation_tool("analytic", "Counts.")])]

    assert "".join(chunk.text for chunk in chunks).strip() == "Noted."
    assert not any(chunk.completion and chunk.completion.tool_calls for chunk in chunks)


NOW = Present(datetime(2026, 11, 23, 9, tzinfo=UTC), "UTC", "anna")


async def called(answer: str | Completion, question: str, tools: Sequence[Tool] = TASK_TOOLS) -> list[tuple[str, str]]:
    """The calls of a model that gives this answer: tool, and the task that is meant."""
    prompt = with_present(chat_prompt("Help.", [ModelMessage(role="user", content=question)]), NOW)
    model = ExplicitRequestModel(ScriptedModel(answer))
    chunks = [chunk async for chunk in model.stream(prompt, tools=tools)]
    assert chunks[-1].completion is not None
    return [(call.name, json.loads(call.arguments).get("task", "")) for call in chunks[-1].completion.tool_calls]


def calls(*tool_calls: ToolCall) -> Completion:
    return Completion(text="", tool_calls=tool_calls, finish_reason="tool_calls", model_name="m", took=timedelta())


@pytest.mark.parametrize(
    ("question", "name", "task"),
    [
        ("What is due today?", "list_tasks", ""),
        ("Перенеси созвон на четверг", "move_task", "созвон"),
        ("Cancel the dentist", "cancel_task", "dentist"),
        ("Удали задачу отчёт", "cancel_task", "отчёт"),
        ("Mark the report as done", "complete_task", "report"),
    ],
)
async def test_a_model_that_talks_about_a_task_calls_its_tool_all_the_same(question: str, name: str, task: str) -> None:
    assert await called("It is done.", question) == [(name, task)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("No open task fits “4815”.", "Noted, the door code is 4815."),
        ("Shall I add a task for it?", "Shall I add a task for it?"),
        ('{"name": "ask_subagent", "arguments": {"text": "4815"}}', "Noted, the door code is 4815."),
    ],
)
async def test_a_call_that_has_met_no_task_is_no_answer_to_what_was_said(answer: str, said: str) -> None:
    statement = ModelMessage(role="user", content="By the way, the code of the door is 4815.")
    called = [
        ModelMessage(role="assistant", content="", tool_calls=(tool_call("complete_task", task="4815"),)),
        ModelMessage(
            role="tool", content="No open task fits “4815”.", tool_call_id="call_complete_task", name="complete_task"
        ),
    ]
    model = ExplicitRequestModel(ScriptedModel(answer, "Noted, the door code is 4815."))

    prompt = with_present(chat_prompt("Help.", [statement, *called]), NOW)
    chunks = [chunk async for chunk in model.stream(prompt, tools=TASK_TOOLS)]

    assert "".join(chunk.text for chunk in chunks).strip() == said


@pytest.mark.parametrize(
    ("said", "is_offered"),
    [
        ("Код от двери подъезда 4417, запомни.", False),
        ("The weather is awful today.", False),
        ("What is the door code?", False),
        ("Мы с Борисом решили: релиз переносим на 4 декабря.", False),
        ("Что мне осталось сделать?", True),
        ("Мне надо будет заехать в банк.", True),
        ("Is anything left on my plate for this week? What is due?", True),
        ("I have to send the report by Friday.", True),
    ],
)
async def test_task_tools_are_offered_where_the_words_may_be_about_work(said: str, is_offered: bool) -> None:
    """A real model has called them for the weather."""
    model = ScriptedModel("Noted.")
    prompt = with_present(chat_prompt("Help.", [ModelMessage(role="user", content=said)]), NOW)
    other = Tool(name="delegate_to_analytic", description="Asks the analyst.", parameters={"type": "object"})
    [_ async for _ in ExplicitRequestModel(model).stream(prompt, tools=[other, *TASK_TOOLS])]

    assert model.offered[-1] == {other.name, *((tool.name for tool in TASK_TOOLS) if is_offered else ())}


async def test_a_model_that_goes_on_calling_for_nothing_answers_without_tools() -> None:
    """As a real model has called them, eight times, for a decision that was told to it."""
    told = ModelMessage(role="user", content="We decided to move the release to Friday.")
    made = [tool_call("complete_task", task="release"), tool_call("list_tasks", due="week")]
    results = ["No open task fits “release”.", "No tasks in the next seven days."]
    since = [
        each
        for call, result in zip(made, results, strict=True)
        for each in (
            ModelMessage(role="assistant", content="", tool_calls=(call,)),
            ModelMessage(role="tool", content=result, tool_call_id=call.id, name=call.name),
        )
    ]
    model = ExplicitRequestModel(ScriptedModel(calls(made[1]), "Friday it is."))

    prompt = with_present(chat_prompt("Help.", [told, *since]), NOW)
    chunks = [chunk async for chunk in model.stream(prompt, tools=TASK_TOOLS)]

    assert "".join(chunk.text for chunk in chunks).strip() == "Friday it is."


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("Moved: “Call with the client”.", "Moved: “Call with the client”."),
        ("No open task fits “call”.", "There is no such task."),
    ],
)
async def test_what_became_of_a_task_that_the_user_asked_for_is_told_as_it_is(result: str, said: str) -> None:
    question = ModelMessage(role="user", content="Move the call to Thursday")
    moved = [
        ModelMessage(role="assistant", content="", tool_calls=(tool_call("move_task", task="call", due="Thursday"),)),
        ModelMessage(role="tool", content=result, tool_call_id="call_move_task", name="move_task"),
    ]
    prompt = with_present(chat_prompt("Help.", [question, *moved]), NOW)
    model = ExplicitRequestModel(ScriptedModel("There is no such task."))

    chunks = [chunk async for chunk in model.stream(prompt, tools=TASK_TOOLS)]

    completion = chunks[-1].completion
    assert completion is not None
    assert (completion.text, completion.tool_calls) == (said, ())
    assert "".join(chunk.text for chunk in chunks).strip() == said


@pytest.mark.parametrize(
    "said",
    [
        "I've done the report",
        "How was your week?",
        "She asked me to cancel everything",
        "My cat is ill, what should I do?",
        "Кот заболел, что мне делать?",
        "Delete the last paragraph",
        "Удали последний абзац",
        "Cancel the dentist. Then tell me a joke.",
    ],
)
async def test_what_may_be_no_request_about_a_task_is_left_to_the_model(said: str) -> None:
    assert await called("All right.", said) == []


async def test_a_sub_agent_is_told_of_tasks_instead_of_the_users_being_listed() -> None:
    tools = [delegation_tool("analytic", "Counts."), *TASK_TOOLS]

    assert await called("All right.", "Tell the analyst to list my tasks", tools) == [
        ("delegate_to_analytic", "List my tasks.")
    ]


async def test_a_needless_call_of_a_task_takes_no_delegation_away() -> None:
    """As a real model of 1.5 billion parameters has called it, for a name."""
    tools = [delegation_tool("analytic", "Counts."), *TASK_TOOLS]
    request = "Tell the subagent that my name is Anna, then ask it what my name is."
    needless = tool_call("complete_task", task="Anna")

    assert await called(calls(needless), request, tools) == [
        ("delegate_to_analytic", "My name is Anna."),
        ("delegate_to_analytic", "What is my name?"),
    ]
    since = [
        ModelMessage(role="user", content=request),
        ModelMessage(role="assistant", content="", tool_calls=(needless,)),
        ModelMessage(role="tool", content="No open task fits “Anna”.", tool_call_id=needless.id, name=needless.name),
    ]
    model = ExplicitRequestModel(ScriptedModel("All right."))
    chunks = [chunk async for chunk in model.stream(since, tools=tools)]
    assert chunks[-1].completion is not None
    assert len(chunks[-1].completion.tool_calls) == 2


@pytest.mark.parametrize("answer", ["```python\nprint(1)", '{"a": ' + "1" * 300, "`ls` lists files"])
async def test_code_that_is_no_call_is_shown_while_it_comes(answer: str) -> None:
    async def pieces() -> AsyncIterator[Chunk]:
        yield Chunk(text=answer)
        raise AssertionError("it was held back")

    assert (await anext(spoken(pieces()))).text == answer


WRITTEN = '```json\n{"name": "%s", "arguments": {"task": "What is due?"}}\n```'


async def test_a_call_written_as_text_is_made_where_there_is_such_a_tool() -> None:
    tools = [delegation_tool("analytic", "Counts.")]

    made = await called(WRITTEN % "delegate_to_analytic", "Could somebody count it?", tools)

    assert made == [("delegate_to_analytic", "What is due?")]


@pytest.mark.parametrize("written", [WRITTEN % "ask_subagent", '{"a": {}, "name": "x", "arguments": oops'])
async def test_a_call_of_no_tool_is_not_shown_as_an_answer(written: str) -> None:
    model = ExplicitRequestModel(ScriptedModel(written, "It is 40."))
    asked = [ModelMessage(role="user", content="Could somebody count it?")]

    chunks = [chunk async for chunk in model.stream(asked, tools=[delegation_tool("analytic", "Counts.")])]

    assert "".join(chunk.text for chunk in chunks).strip() == "It is 40."


async def test_a_task_that_runs_into_the_next_one_is_what_the_user_wanted_told() -> None:
    tools = [delegation_tool("analytic", "Counts.")]
    request = "Tell the analyst that my name is Anna, then ask what my name is"
    both = calls(tool_call("delegate_to_analytic", task="my name is Anna, then ask what my name is"))

    assert await called(both, request, tools) == [("delegate_to_analytic", "My name is Anna.")]
