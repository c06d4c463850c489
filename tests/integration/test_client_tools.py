"""Tools of a client's own, called by the model of the dialogue: OpenAI's client, unmodified."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from agents.models.language_model import tool_call
from tests.brokers import Broker
from tests.gateways import Served
from tests.integration.test_openai_clients import TALK, client_of, said, talking
from tests.llm_server import Says

pytestmark = pytest.mark.rabbit
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def function(name: str) -> Any:
    declared = {"name": name, "description": "Made by the client.", "parameters": PLACE}
    return {"type": "function", "function": declared}


def result(call: Any, content: str) -> Any:
    return {"role": "tool", "tool_call_id": call.id, "content": content}


async def kept(gateway: Served, token: str) -> list[tuple[str, str]]:
    own = {"Authorization": f"Bearer {token}"}
    page = await gateway.ok("GET", "/api/dialogues/anna/messages?order=oldest", headers=own)
    return [(item["role"], item["content"]) for item in page["items"]]


async def test_the_model_calls_a_tool_of_the_client(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    weather = [tool_call("weather", city=city) for city in ("Oslo", "Bergen")]
    script = (
        Says("I look it up.", (weather[0].model_copy(update={"id": "a"}), weather[1].model_copy(update={"id": "b"}))),
        Says("Oslo 21, Bergen 12."),
        Says("You asked about two cities."),
    )
    async with (
        talking(broker, vhost_url, migrated_folder, *script) as (gateway, settings, model),
        client_of(gateway, settings) as client,
    ):
        talk = said("How warm is it in Oslo and Bergen?")
        asked = await client.chat.completions.create(model="dialogue", messages=talk, tools=[function("weather")])
        choice = asked.choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I look it up.")
        calls: Any = choice.message.tool_calls
        assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Oslo"}, {"city": "Bergen"}]

        talk += [choice.message, result(calls[1], "12 degrees"), result(calls[0], "21 degrees")]
        done = await client.chat.completions.create(model="dialogue", messages=talk, tools=[function("weather")])
        again = await client.chat.completions.create(model="dialogue", messages=talk, tools=[function("weather")])
        assert done.choices[0].message.content == again.choices[0].message.content == "Oslo 21, Bergen 12."
        assert done.choices[0].finish_reason == "stop"
        shown = model.requests[1].body["messages"]
        assert [each["role"] for each in shown[-4:]] == ["user", "assistant", "tool", "tool"]
        assert [each["content"] for each in shown[-3:]] == ["I look it up.", "21 degrees", "12 degrees"]
        assert [each["id"] for each in shown[-3]["tool_calls"]] == [each["tool_call_id"] for each in shown[-2:]]

        # A result is nobody's sentence: the talk has the question and its answer, the history the calls as well.
        talk += [done.choices[0].message, *said("What did I ask?")]
        await client.chat.completions.create(model="dialogue", messages=talk)
        roles = [each["role"] for each in model.requests[2].body["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
        assert str(model.requests[2].body["messages"]).count("How warm is it") == 1
        assert await kept(gateway, client.api_key) == [
            ("user", "How warm is it in Oslo and Bergen?"),
            ("assistant", "Oslo 21, Bergen 12."),
            ("user", "What did I ask?"),
            ("assistant", "You asked about two cities."),
        ]


async def test_beside_the_tools_of_the_dialogue(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    """A tool called as one of the dialogue's is shown to the model under another name, to its client under its own."""
    both = (tool_call("add_task", "a", text="Call the plumber"), tool_call("client_list_tasks", "b", city="Oslo"))
    script = (
        Says("", both),
        Says("", (tool_call("client_list_tasks", "a", city="Bergen"),)),
        Says("Added; the client has two."),
    )
    async with (
        talking(broker, vhost_url, migrated_folder, *script, workers=(*TALK, "task_manager")) as (
            gateway,
            settings,
            model,
        ),
        client_of(gateway, settings) as client,
    ):
        talk: list[Any] = said("Please note the plumber, then look at my other list.")
        tools = [function("list_tasks")]
        for content in ("", "two tasks"):
            async with client.chat.completions.stream(model="dialogue", messages=talk, tools=tools) as stream:
                [event async for event in stream]
            message = (await stream.get_final_completion()).choices[0].message
            calls: Any = message.tool_calls
            (call,) = calls
            assert call.function.name == "list_tasks"
            talk += [message, result(call, content)]
        last = await client.chat.completions.create(model="dialogue", messages=talk, tools=tools, stream=True)
        chunks = [chunk async for chunk in last]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Added; the client has two."
        assert chunks[-1].choices[0].finish_reason == "stop"

        offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
        assert offered.count("list_tasks") == offered.count("client_list_tasks") == 1
        results = [each["content"] for each in model.requests[2].body["messages"] if each["role"] == "tool"]
        assert results[1:] == ["", "two tasks"]
        own = {"Authorization": f"Bearer {client.api_key}"}
        tasks = await gateway.ok("GET", "/api/tasks?user=anna", headers=own)
        assert [task["text"] for task in tasks["items"]] == ["Call the plumber"]


async def test_a_choice_and_a_talk_begun_with_another_model(
    broker: Broker, vhost_url: str, migrated_folder: Path
) -> None:
    script = (Says("", (tool_call("weather", city="Oslo"),)), Says("It is 21."), Says("Rain."))
    async with (
        talking(broker, vhost_url, migrated_folder, *script) as (gateway, settings, model),
        client_of(gateway, settings) as client,
    ):
        create: Any = client.chat.completions.create
        # Answered from the clock, if no tool were asked for.
        await create(
            model="dialogue", messages=said("What day is it?"), tools=[function("weather")], tool_choice="required"
        )
        assert model.requests[0].body["tool_choice"] == "required"
        call = {"id": "call_of_others", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        talk = [*said("And in Oslo?"), {"role": "assistant", "content": None, "tool_calls": [call]}]
        talk += [{"role": "tool", "tool_call_id": "call_of_others", "content": "21"}]
        done = await create(model="dialogue", messages=talk)
        assert done.choices[0].message.content == "It is 21."
        assert [each["content"] for each in model.requests[1].body["messages"] if each["role"] == "tool"] == ["21"]
        await create(
            model="dialogue", messages=said("How is the weather?"), tools=[function("weather")], tool_choice="none"
        )
        assert "weather" not in [tool["function"]["name"] for tool in model.requests[2].body["tools"]]


async def test_responses(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    script = (
        Says("", (tool_call("weather", city="Oslo"),)),
        Says("", (tool_call("weather", city="Rome"),)),
        Says("Warm."),
    )
    tool: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}
    async with (
        talking(broker, vhost_url, migrated_folder, *script) as (gateway, settings, model),
        client_of(gateway, settings) as client,
    ):
        items: Any = said("How warm is it in Oslo and Rome?")
        asked = await client.responses.create(model="dialogue", input=items, tools=[tool])
        (call,) = (item for item in asked.output if item.type == "function_call")
        items += [*asked.output, {"type": "function_call_output", "call_id": call.call_id, "output": "21"}]
        async with client.responses.stream(model="dialogue", input=items, tools=[tool]) as stream:
            async for event in stream:
                assert event.type != "error"
            final = await stream.get_final_response()
        (again,) = (item for item in final.output if item.type == "function_call")
        assert json.loads(again.arguments) == {"city": "Rome"}
        items += [*final.output, {"type": "function_call_output", "call_id": again.call_id, "output": "28"}]
        done = await client.responses.create(model="dialogue", input=items, tools=[tool])
        assert done.output_text == "Warm."
        results = [each["content"] for each in model.requests[2].body["messages"] if each["role"] == "tool"]
        assert results == ["21", "28"]
        assert await kept(gateway, client.api_key) == [
            ("user", "How warm is it in Oslo and Rome?"),
            ("assistant", "Warm."),
        ]


async def test_tools_that_are_refused(broker: Broker, vhost_url: str, migrated_folder: Path) -> None:
    tool = function("f")
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = [*said("Hello"), {"role": "assistant", "tool_calls": [call]}]
    unknown = {"type": "function", "function": {"name": "g"}}
    async with (
        talking(broker, vhost_url, migrated_folder) as (gateway, settings, _),
        client_of(gateway, settings) as client,
    ):
        for words, asked in (
            ("only dialogue calls those of a client", {"model": "role/critic"}),
            ("two tools are called f", {"tools": [tool, tool]}),
            ("no web_search", {"tools": [{"type": "web_search"}]}),
            ("a function is an object", {"tools": [{"type": "function", "function": "weather"}]}),
            ("or a function by its name", {"tool_choice": {"type": "function", "function": "weather"}}),
            ("there is no tool g; there are f", {"tool_choice": unknown}),
            ("the call c1 has no result", {"messages": called}),
        ):
            fields: Any = {"model": "dialogue", "messages": said("Hello"), "tools": [tool], **asked}
            with pytest.raises(openai.UnprocessableEntityError, match=words):
                await client.chat.completions.create(**fields)
