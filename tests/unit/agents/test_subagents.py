"""What sub-agents reckon and use; what the offline model makes of words that ask for one."""

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from agents.configuration.prompts import shipped_guide
from agents.models.conversation import MOST_AT_ONCE, normalise_calls
from agents.models.errors import EmptyAnswer
from agents.models.explicit_calls import next_tool
from agents.models.explicit_delegation import content_for, delegations
from agents.models.language_model import Completion, ModelMessage, Tool, ToolCall
from agents.models.offline.replies import asks_name, introduced_name
from agents.subagents.loop import BoundTool, Toolbox, ToolFailed, ToolLoop
from agents.subagents.tables import InvalidTable, TableQuery, number_of, read_table, run_query
from tests.scripted_model import ScriptedModel

CSV = "регион;сумма;дата\nюг;1 200,50;2026-01-02\nсевер;800;2026-02-03\nюг;—;2026-03-01\n"
JSON = json.dumps([{"region": "south", "amount": 10}, {"region": "north", "amount": 2.5}, {"region": "south"}])
NAMES = ["analytic", "weather"]


def reckoned(content: str, **wanted: Any) -> str:
    return run_query(read_table(content.encode()), TableQuery.model_validate(wanted))


@pytest.mark.parametrize(
    ("content", "wanted", "result"),
    [
        (CSV, {"operation": "sum", "column": "сумма"}, "= 2000.5 (1 values that are no numbers left out)"),
        (CSV, {"operation": "count"}, "count of rows = 3"),
        (CSV, {"operation": "max", "column": "сумма", "group_by": "регион"}, "север: 800\nюг: 1200.5"),
        (
            CSV,
            {"operation": "count", "where": [{"column": "дата", "is": ">=", "value": "2026-02-01"}]},
            "= 2 (2 of 3 rows)",
        ),
        (CSV, {"operation": "min", "column": "сумма", "where": [{"column": "регион", "value": "ЮГ"}]}, "= 1200.5"),
        (JSON, {"operation": "mean", "column": "amount"}, "= 6.25"),
        (JSON, {"operation": "count", "column": "amount"}, "= 2"),
        (JSON, {"operation": "sum", "column": "region"}, "no numbers"),
        (f'{{"rows": {JSON}}}', {"operation": "sum", "column": "amount"}, "= 12.5"),
    ],
)
def test_a_table_is_reckoned_with_exactly(content: str, wanted: dict[str, Any], result: str) -> None:
    assert result in reckoned(content, **wanted)


@pytest.mark.parametrize(
    ("content", "column", "why"),
    [
        ("", "a", "empty"),
        ("[1, 2]", "a", "no list of objects"),
        ('[{"a": 1', "a", "no JSON"),
        ("a,b", "a", "no rows"),
        ("a,b\n1,2", "__class__", "no column '__class__'; its columns are: a, b"),
        ("[" * 200_000, "a", "no JSON"),
    ],
)
def test_what_is_no_table_is_refused_in_words(content: str, column: str, why: str) -> None:
    with pytest.raises(InvalidTable, match=why):
        reckoned(content, operation="sum", column=column)


@pytest.mark.parametrize(
    ("written", "number"),
    [
        *[("1 200,50", 1200.5), ("1,200.50", 1200.5), ("1.200,50", 1200.5), ("-1.200.300,5", -1_200_300.5)],
        *[("1,200,000", 1_200_000), ("1.200.000", 1_200_000), ("3,5", 3.5), ("3.5", 3.5), ("nan", None), ("—", None)],
    ],
)
def test_numbers_are_read_as_people_write_them(written: str, number: float | None) -> None:
    assert number_of(written) == number


class Question(BaseModel):
    """What a tool is asked."""

    about: str


async def stumble(_: Question) -> str:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("nothing", "{}"), "there is no tool 'nothing'; there are: stumble"),
        (("stumble", '{"about": '), "are not JSON"),
        (("stumble", '{"what": 1}'), "about: Field required"),
        (("stumble", '{"about": "x"}'), r"stumble has failed \(ZeroDivisionError\); go on without it"),
    ],
)
async def test_whatever_goes_wrong_with_a_tool_is_said_in_words(call: tuple[str, str], why: str) -> None:
    toolbox = Toolbox([BoundTool("stumble", "Fails.", Question, stumble)])
    with pytest.raises(ToolFailed, match=why):
        await toolbox.use(ToolCall(id="1", name=call[0], arguments=call[1]))


async def look_up(question: Question) -> str:
    return f"{question.about}: 12 tables"


class Silent:
    """Sees the work of a loop, and has room for all of it."""

    has_room = True

    async def called(self, _text: str, _calls: Sequence[ToolCall]) -> None: ...

    async def working(self, _call: ToolCall) -> None: ...

    async def answered(self, _call: ToolCall, content: str, *, is_error: bool) -> str:
        return f"no: {content}" if is_error else content


TOOLS = [
    BoundTool("look_up", "Looks it up.", Question, look_up),
    BoundTool("read", "Reads it.", Question, look_up, re.compile(r"\bart_\w+")),
]
WRITTEN = '```json\n{"name": "look_up", "arguments": {"about": "hall"}}\n```'


def call_for(about: str) -> Completion:
    calls = (ToolCall(id="1", name="look_up", arguments=json.dumps({"about": about})),)
    return Completion(text="", tool_calls=calls, finish_reason="tool_calls", model_name="m", took=timedelta())


async def answer_of(model: ScriptedModel, task: str = "What is in the hall?") -> str:
    loop = ToolLoop(shipped_guide("dialogue"), model)
    return await loop.answer([ModelMessage(role="user", content=task)], [], Toolbox(TOOLS), Silent())


@pytest.mark.parametrize("lost", [call_for("hall"), WRITTEN])
async def test_a_model_that_goes_on_calling_is_shown_what_its_calls_have_found(lost: Completion | str) -> None:
    model = ScriptedModel(call_for("hall"), lost, "Twelve tables.")

    assert await answer_of(model) == "Twelve tables."
    last = model.asked[-1]
    assert [message.role for message in last] == ["system", "user"]
    assert "hall: 12 tables" in last[-1].content


async def test_a_call_written_as_text_is_no_answer() -> None:
    assert "hall: 12 tables" in await answer_of(ScriptedModel(call_for("hall"), WRITTEN))
    with pytest.raises(EmptyAnswer):
        await answer_of(ScriptedModel(WRITTEN))


@pytest.mark.parametrize(
    ("talk", "names"), [("What is in the hall?", ["look_up"]), ("Read art_1.", ["look_up", "read"])]
)
def test_a_tool_is_offered_once_the_talk_has_what_it_needs(talk: str, names: list[str]) -> None:
    messages = [ModelMessage(role="system", content="Such as art_0."), ModelMessage(role="user", content=talk)]

    assert [tool.name for tool in Toolbox(TOOLS).tools_for(messages)] == names


def test_calls_without_ids_of_their_own_get_some() -> None:
    calls = [ToolCall(id="", name="a b", arguments="{}"), *[ToolCall(id="x", name="", arguments="{}")] * 30]
    made = normalise_calls(calls, "call_0")

    assert [call.id for call in made[:3]] == ["call_0_0", "x", "call_0_2"]
    assert [call.name for call in made[:2]] == ["a_b", "unnamed"]
    assert len({call.id for call in made}) == len(made) == MOST_AT_ONCE


@pytest.mark.parametrize(
    ("said", "tasks"),
    [
        (
            "Скажи подагенту что меня зовут Алия, а потом спроси как меня зовут",
            [("analytic", "Меня зовут Алия."), ("analytic", "Как меня зовут?")],
        ),
        (
            "Tell the sub-agent that my name is Bob, then ask it what my name is.",
            [("analytic", "My name is Bob."), ("analytic", "What is my name?")],
        ),
        (
            "Сообщи weather, что идёт дождь, затем узнай у него прогноз; потом спроси analytic, сколько продано",
            [("weather", "Идёт дождь."), ("weather", "Прогноз?"), ("analytic", "Сколько продано?")],
        ),
        ("Please ask the subagent weather: will it rain?", [("weather", "Will it rain?")]),
        (
            "Скажи подагенту моё имя Алия, а потом спроси у него",
            [("analytic", "Моё имя Алия."), ("analytic", "Как меня зовут?")],
        ),
        (
            "Сообщи аналитику, что офис переехал на Лесную, и спроси у него",
            [("analytic", "Офис переехал на Лесную."), ("analytic", "Что известно об этом: Офис переехал на Лесную?")],
        ),
        ("Сообщи аналитику: выручка за март 40 000", [("analytic", "Выручка за март 40 000.")]),
        ("Спроси у нашего аналитика, сколько мы продали", [("analytic", "Сколько мы продали?")]),
        (
            "Tell the analyst that my name is Bob and ask it what my name is",
            [("analytic", "My name is Bob."), ("analytic", "What is my name?")],
        ),
        ("Ask Weather if it rains. Ask it again", [("weather", "If it rains?"), ("weather", "Again?")]),
        ("Сообщи Анне, что аналитика готова", []),
        ("Скажи, как дела, а потом спроси", []),
        ("Tell me a story, then ask me about it", []),
        ("Я потом скажу подагенту сам", []),
    ],
)
def test_without_a_model_tasks_are_read_off_the_words(said: str, tasks: list[tuple[str, str]]) -> None:
    assert delegations(said, NAMES) == tasks


@pytest.mark.parametrize(
    ("task", "content"),
    [
        ("Скажи подагенту, что меня зовут Алия", "Меня зовут Алия."),
        ("Скажи подагенту моё имя Алия, а потом спроси у него", "Моё имя Алия. Как меня зовут?"),
        ("Ask the sub-agent analytic: how much did we sell?", "How much did we sell?"),
        ("Tell weather that it rains", "Tell weather that it rains"),
        ("Меня зовут Алия", "Меня зовут Алия"),
    ],
)
def test_a_task_that_still_addresses_its_sub_agent_is_reduced_to_its_content(task: str, content: str) -> None:
    assert content_for("analytic", task) == content


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Меня зовут Жан-Поль Бельмондо, я актёр", "Жан-Поль Бельмондо"),
        ("my name is bob", "bob"),
        ("Пользователя зовут Алия.", "Алия"),
        ("Моё имя — Анна.", "Анна"),
        ("Как меня зовут?", None),
        ("Мою кошку зовут Мурка", None),
    ],
)
def test_names_are_known_by_how_they_are_told(told: str, name: str | None) -> None:
    assert introduced_name([told]) == name


@pytest.mark.parametrize("question", ["Как меня зовут?", "кто я", "Who am I?", "what's my name", "Моё имя?"])
def test_people_ask_who_they_are_in_many_words(question: str) -> None:
    assert asks_name(question)


def test_without_a_model_a_tool_is_used_once_where_the_task_names_what_it_takes() -> None:
    tools = [Tool(name=name, description="", parameters={}) for name in ("search_memory", "read_artifact", "compute")]
    reckoning = next_tool("Sum of amount by region in art_7?", [], tools, is_known=lambda: False)

    assert reckoning is not None
    assert json.loads(reckoning.arguments) == {
        "artifact_id": "art_7",
        "operation": "sum",
        "column": "amount",
        "group_by": "region",
    }
    used = [ModelMessage(role="assistant", content="", tool_calls=(reckoning,))]
    assert next_tool("Sum of amount by region in art_7?", used, tools, is_known=lambda: False) is None
    assert next_tool("Какой бюджет?", [], tools, is_known=lambda: True) is None
