"""The OpenAI-compatible model against a real HTTP server on loopback."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from agents.models.errors import (
    AnswerCutOff,
    AnswerStalled,
    ModelFailure,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    SchemaMismatch,
)
from agents.models.language_model import (
    Completion,
    LanguageModel,
    MeteredModel,
    ModelMessage,
    ModelParams,
    TokenUsage,
    Tool,
    ToolCall,
    complete_as,
)
from agents.models.openai_compatible import OpenAICompatible, StreamLimits
from agents.models.prompt import Verdict
from agents.models.recorded import FinishedCall, RecordedModel
from mindbus.logs import configure_logs
from mindbus.testing.wait import until
from tests.llm_server import NAME, Drips, Fails, HangsUp, LlmServer, Reply, Says, Sends, Stalls

ASK = [ModelMessage(role="system", content="Be brief."), ModelMessage(role="user", content="the secret question")]
WEATHER = Tool(name="weather", description="Now", parameters={"type": "object", "properties": {}})
CALLS = (
    ToolCall(id="c1", name="weather", arguments='{"city": "Пермь"}'),
    ToolCall(id="c2", name="weather", arguments='{"city": "Oulu"}'),
)


@asynccontextmanager
async def endpoint(
    *script: Reply, timeout_s: float = 5, retries: int = 2, limits: StreamLimits | None = None
) -> AsyncIterator[tuple[LanguageModel, LlmServer]]:
    async with LlmServer(*script) as server:
        model = OpenAICompatible(
            base_url=server.base_url,
            model="small",
            api_key="sk-secret-key",
            timeout=timedelta(seconds=timeout_s),
            retries=retries,
            limits=limits,
        )
        try:
            yield model, server
        finally:
            await model.aclose()


async def streamed(model: LanguageModel, **options: object) -> tuple[list[str], Completion | None]:
    texts: list[str] = []
    last: Completion | None = None
    async for chunk in model.stream(ASK, **options):  # type: ignore[arg-type]
        texts.append(chunk.text)
        last = chunk.completion
    return texts, last


async def test_a_question_comes_back_answered_with_its_cost() -> None:
    async with endpoint(Says("Forty two, я думаю.")) as (model, _):
        completion = await model.complete(ASK)

    assert completion.text == "Forty two, я думаю."
    assert completion.finish_reason == "stop"
    assert completion.usage == TokenUsage(prompt_tokens=7, completion_tokens=4)
    assert completion.model_name == NAME
    assert completion.took > timedelta(0)


async def test_the_request_carries_model_key_messages_params_tools() -> None:
    history = [
        *ASK,
        ModelMessage(role="assistant", content="", tool_calls=CALLS[:1]),
        ModelMessage(role="tool", content="-3", tool_call_id="c1"),
    ]
    async with endpoint(Says("cold")) as (model, server):
        await model.complete(history, tools=[WEATHER], params=ModelParams(temperature=0, max_tokens=90, seed=1))

    [request] = server.requests
    assert model.name == request.body["model"] == "small"
    assert request.headers["authorization"] == "Bearer sk-secret-key"
    assert (request.body["temperature"], request.body["max_tokens"], request.body["seed"]) == (0, 90, 1)
    assert request.body["tools"] == [{"type": "function", "function": WEATHER.model_dump()}]
    assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert request.body["messages"][2]["tool_calls"][0]["function"] == {
        "name": "weather",
        "arguments": '{"city": "Пермь"}',
    }
    assert request.body["messages"][3] == {"role": "tool", "content": "-3", "tool_call_id": "c1"}


async def test_what_is_not_set_is_left_to_the_endpoint() -> None:
    async with endpoint(Says("ok")) as (model, server):
        await model.complete(ASK)

    assert set(server.requests[0].body) == {"model", "messages"}


async def test_tool_calls_come_whole() -> None:
    async with endpoint(Says(tool_calls=CALLS)) as (model, _):
        completion = await model.complete(ASK, tools=[WEATHER])

    assert completion.tool_calls == CALLS
    assert completion.finish_reason == "tool_calls"


async def test_a_stream_comes_in_pieces_that_make_up_the_answer() -> None:
    text = "A longer answer that does not fit into one piece. И по-русски тоже."
    async with endpoint(Says(text)) as (model, server):
        texts, completion = await streamed(model)

    assert len(texts) > 3
    assert completion is not None
    assert "".join(texts) == completion.text == text
    assert completion.usage == TokenUsage(prompt_tokens=7, completion_tokens=len(text.split()))
    assert completion.model_name == NAME
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


async def test_streamed_fragments_of_tool_calls_are_merged_by_their_index() -> None:
    async with endpoint(Says("Let me look.", tool_calls=CALLS)) as (model, _):
        _, completion = await streamed(model, tools=[WEATHER])

    assert completion is not None
    assert completion.tool_calls == CALLS
    assert completion.finish_reason == "tool_calls"
    assert completion.text == "Let me look."


@pytest.mark.parametrize("indexes", [(0, 0), (None, None)], ids=["the same index", "no index"])
async def test_calls_that_servers_number_alike_are_two(indexes: tuple[int | None, ...]) -> None:
    def fragment(index: int | None, call: ToolCall) -> str:
        called = {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
        numbered = called if index is None else called | {"index": index}
        choice = {"index": 0, "delta": {"tool_calls": [numbered]}, "finish_reason": "tool_calls"}
        return json.dumps(
            {"object": "chat.completion.chunk", "id": "1", "created": 0, "model": "m", "choices": [choice]}
        )

    bodies = [fragment(index, call) for index, call in zip(indexes, CALLS, strict=True)]
    async with endpoint(Sends((*bodies, "[DONE]"))) as (model, _):
        _, completion = await streamed(model, tools=[WEATHER])

    assert completion is not None
    assert completion.tool_calls == CALLS


@pytest.mark.parametrize(
    ("refused", "words", "left"),
    [
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            "max_completion_tokens",
        ),
        ("temperature", "Unsupported value: 'temperature' does not support 0.3 with this model.", None),
        ("stream_options", "extra_forbidden stream_options: Extra inputs are not permitted", None),
    ],
)
async def test_a_parameter_that_an_endpoint_does_not_take_is_sent_otherwise(
    refused: str, words: str, left: str | None
) -> None:
    params = ModelParams(temperature=0.3, max_tokens=90)
    async with endpoint(Fails(400, words), Says("one"), Says("two")) as (model, server):
        for _ in range(2):
            await streamed(model, params=params)

    first, *others = [request.body for request in server.requests]
    assert refused in first
    assert [refused in body for body in others] == [False, False]
    assert left is None or [body[left] for body in others] == [90, 90]


async def test_a_limit_that_a_prompt_exceeds_is_no_parameter_that_is_not_taken() -> None:
    words = "This model's maximum context length is 4096 tokens; reduce max_tokens, larger ones are not supported"
    async with endpoint(Fails(400, words)) as (model, server):
        with pytest.raises(PromptTooLong):
            await model.complete(ASK, params=ModelParams(max_tokens=90))

    assert len(server.requests) == 1


async def test_no_two_calls_of_a_request_have_the_same_id() -> None:
    def turn(*ids: str) -> list[ModelMessage]:
        calls = tuple(ToolCall(id=each, name="weather", arguments="{}") for each in ids)
        said = [ModelMessage(role="assistant", content="", tool_calls=calls)]
        return said + [ModelMessage(role="tool", content="-3", tool_call_id=each) for each in ids]

    async with endpoint(Says("cold")) as (model, server):
        await model.complete([*ASK, *turn("call_0"), *turn("call_0", "c1"), *turn("c1")], tools=[WEATHER])

    [request] = server.requests
    called = [call["id"] for each in request.body["messages"] for call in each.get("tool_calls", ())]
    results = [each["tool_call_id"] for each in request.body["messages"] if each["role"] == "tool"]
    assert called == results
    assert len(set(called)) == 4
    assert called[2] == "c1"
    assert all(re.fullmatch("[a-z0-9]{9}", each) for each in (called[0], called[1], called[3]))


async def test_an_endpoint_that_counts_no_tokens_is_no_error() -> None:
    async with endpoint(Says("a", counts_tokens=False), Says("b", counts_tokens=False)) as (model, _):
        whole = await model.complete(ASK)
        _, last = await streamed(model)

    assert last is not None
    assert whole.usage == last.usage == TokenUsage()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_endpoint_is_asked_again_after_the_time_it_named(status: int) -> None:
    async with endpoint(Fails.busy(status), Fails.busy(status), Says("at last")) as (model, server):
        completion = await model.complete(ASK)

    assert completion.text == "at last"
    assert len(server.requests) == 3


async def test_a_dropped_connection_is_tried_again() -> None:
    async with endpoint(HangsUp(), Says("back")) as (model, server):
        assert (await model.complete(ASK)).text == "back"

    assert len(server.requests) == 2


async def test_an_endpoint_that_stays_busy_is_unavailable_and_worth_a_later_try() -> None:
    async with endpoint(*[Fails.busy(429)] * 3) as (model, server):
        with pytest.raises(ModelUnavailable, match="HTTP 429") as caught:
            await model.complete(ASK)

    assert caught.value.retryable
    assert caught.value.delay is None
    assert len(server.requests) == 3


async def test_a_wait_longer_than_a_retry_may_take_is_handed_to_the_caller() -> None:
    async with endpoint(Fails.busy(429, retry_after_s=900)) as (model, server):
        with pytest.raises(ModelUnavailable) as caught:
            await model.complete(ASK)

    assert caught.value.delay == timedelta(minutes=15)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refused_request_is_not_repeated(status: int) -> None:
    async with endpoint(Fails(status, "model not found")) as (model, server):
        with pytest.raises(ModelRefused, match=f"HTTP {status}.*model not found") as caught:
            await model.complete(ASK)

    assert not caught.value.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "message",
    [
        "request (8227 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
async def test_a_prompt_that_does_not_fit_is_named_in_the_words_of_llama_cpp_openai_and_others(message: str) -> None:
    async with endpoint(Fails(400, message), Fails(400, message)) as (model, _):
        with pytest.raises(PromptTooLong, match="larger context"):
            await model.complete(ASK)
        with pytest.raises(PromptTooLong):
            await streamed(model)


async def test_a_slow_endpoint_is_given_up_after_the_timeout() -> None:
    async with endpoint(Stalls(), timeout_s=0.1, retries=0) as (model, _):
        with pytest.raises(ModelUnavailable, match="timed out"):
            await model.complete(ASK)


async def test_nobody_listening_is_unavailable() -> None:
    async with endpoint(retries=0) as (_, server):
        address = server.base_url
    model = OpenAICompatible(base_url=address, model="small", api_key=None, timeout=timedelta(seconds=1), retries=0)

    with pytest.raises(ModelUnavailable, match="no connection"):
        await model.complete(ASK)
    await model.aclose()


@pytest.mark.parametrize(
    "reply", [HangsUp(after_pieces=3), pytest.param(Stalls(after_pieces=3), marks=pytest.mark.slow)]
)
async def test_a_stream_that_breaks_is_unavailable_and_not_repeated(reply: Reply) -> None:
    async with endpoint(reply, timeout_s=1) as (model, server):
        with pytest.raises(ModelUnavailable):
            await streamed(model)

    assert len(server.requests) == 1


async def test_an_error_in_the_middle_of_a_stream_is_unavailable() -> None:
    async with endpoint(Sends(('{"error": {"message": "overloaded"}}',))) as (model, _):
        with pytest.raises(ModelUnavailable, match="overloaded"):
            await streamed(model)


async def test_a_busy_endpoint_is_asked_again_before_a_stream_begins() -> None:
    async with endpoint(Fails.busy(), Says("streamed")) as (model, server):
        texts, _ = await streamed(model)

    assert "".join(texts) == "streamed"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body", ['{"id": "x", "choices": []}', '{"choices": [{}]}', '"text"', "{}", "<html>proxy</html>"]
)
async def test_an_answer_without_an_answer_is_unavailable(body: str) -> None:
    async with endpoint(Sends((body,)), Sends((body,))) as (model, _):
        with pytest.raises(ModelUnavailable):
            await model.complete(ASK)
        with pytest.raises(ModelUnavailable):
            await streamed(model)


async def test_half_an_answer_is_a_failure_that_says_what_to_do() -> None:
    half = Says("The first half of", finish_reason="length")
    async with endpoint(half, half) as (model, _):
        with pytest.raises(AnswerCutOff, match="raise max_tokens"):
            await model.complete(ASK)
        with pytest.raises(AnswerCutOff):
            await streamed(model)


async def test_an_answer_that_goes_round_in_circles_is_ended_without_them() -> None:
    circle = "- What is the median in January?\n- What is the median in February?\n"
    async with endpoint(Drips(0.0, "Three days.\n" + circle * 2_000)) as (model, _):
        pieces, completion = await streamed(model)

    assert completion is not None
    assert completion.finish_reason == "repetition"
    assert completion.text == "Three days.\n" + circle.rstrip()
    assert len("".join(pieces)) < 2_000
    assert completion.usage.completion_tokens == len(pieces) - 1
    assert completion.usage.prompt_tokens > 0


async def test_an_object_that_goes_round_in_circles_is_cut_off() -> None:
    answer = '{"satisfied": false, "remarks": [' + '"Name the source of the figure",\n' * 2_000
    async with endpoint(Drips(0.0, answer), limits=StreamLimits(first_s=5, idle_s=5)) as (model, _):
        with pytest.raises(AnswerCutOff) as cut:
            await model.complete(ASK, schema=Verdict)

    assert len(cut.value.text) < 2_000


async def test_a_cut_off_json_answer_is_not_repaired_but_named() -> None:
    async with endpoint(Says('{"satisfied": fal', finish_reason="length")) as (model, server):
        with pytest.raises(AnswerCutOff):
            await complete_as(model, ASK, Verdict)

    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [Says("", refusal="I cannot"), Says("", finish_reason="content_filter")])
async def test_a_model_that_declines_has_refused(reply: Says) -> None:
    async with endpoint(reply) as (model, _):
        with pytest.raises(ModelRefused):
            await model.complete(ASK)


async def test_a_schema_is_sent_strict_and_its_answer_validated() -> None:
    async with endpoint(Says('{"satisfied": true, "remarks": []}')) as (model, server):
        verdict = await complete_as(model, ASK, Verdict)

    assert verdict == Verdict(satisfied=True, remarks=[])
    wanted = server.requests[0].body["response_format"]["json_schema"]
    assert (wanted["name"], wanted["strict"]) == ("Verdict", True)
    assert wanted["schema"]["additionalProperties"] is False
    assert wanted["schema"]["required"] == ["satisfied", "remarks"]


async def test_json_in_a_code_fence_is_taken_out_of_it() -> None:
    async with endpoint(Says('```json\n{"satisfied": false, "remarks": ["короче"]}\n```')) as (model, _):
        assert (await complete_as(model, ASK, Verdict)).remarks == ["короче"]


@pytest.mark.parametrize("misfit", ["{not json", '{"satisfied": "perhaps"}', ""])
async def test_a_misfit_is_repaired_once_by_showing_the_model_its_error(misfit: str) -> None:
    async with endpoint(Says(misfit), Says('{"satisfied": true, "remarks": []}')) as (model, server):
        assert (await complete_as(model, ASK, Verdict)).satisfied

    first, second = server.requests
    assert second.messages[:2] == first.messages
    assert second.messages[2].content == misfit
    assert "does not fit the schema" in second.messages[3].content


async def test_a_second_misfit_is_an_error_that_names_the_fields_and_not_the_answer() -> None:
    async with endpoint(Says('{"satisfied": "private"}'), Says('{"satisfied": "private"}')) as (model, server):
        with pytest.raises(SchemaMismatch, match=r"satisfied.*remarks") as caught:
            await complete_as(model, ASK, Verdict)

    assert "private" not in str(caught.value)
    assert len(server.requests) == 2


async def test_neither_prompt_nor_answer_nor_key_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    configure_logs("DEBUG", "console")
    with capture_logs() as ours:
        async with endpoint(Fails.busy(), Says("the secret answer"), Says("the secret answer")) as (model, _):
            await model.complete(ASK)
            await streamed(model)

    configure_logs("WARNING", "console")
    logged = caplog.text + repr(ours) + "".join(repr(vars(record)) for record in caplog.records)
    assert "secret" not in logged
    assert [entry["event"] for entry in ours] == ["model_answered", "model_answered"]
    assert ours[0]["completion_tokens"] == 3


async def test_a_meter_adds_up_what_a_piece_of_work_costs() -> None:
    async with endpoint(Says("one two"), Says("{}"), Says('{"satisfied": true, "remarks": []}'), Says("x y z")) as (
        model,
        _,
    ):
        meter = MeteredModel(model)
        await meter.complete(ASK)
        await complete_as(meter, ASK, Verdict)
        await streamed(meter)

        assert meter.name == "small"
        assert meter.calls == 4
        assert meter.usage == TokenUsage(prompt_tokens=28, completion_tokens=2 + 1 + 4 + 3)
        await meter.aclose()


async def test_what_was_cut_off_is_paid_for_as_well() -> None:
    half = Says("one two three", finish_reason="length")
    async with endpoint(half, half) as (model, _):
        meter = MeteredModel(model)
        with pytest.raises(AnswerCutOff):
            await meter.complete(ASK)
        with pytest.raises(AnswerCutOff):
            await streamed(meter)

        assert meter.calls == 2
        assert meter.usage == TokenUsage(prompt_tokens=14, completion_tokens=6)


class Unfit(BaseModel):
    """A schema that the scripted server does not know."""

    value: int


async def test_the_server_answers_creative_prompts_as_the_offline_model_does() -> None:
    async with endpoint() as (model, server):
        verdict = await complete_as(
            model, [ModelMessage(role="system", content="Task: draft\nStep: self-critique")], Verdict
        )
        with pytest.raises(ModelRefused, match="no such schema"):
            await complete_as(model, ASK, Unfit)

    assert verdict.satisfied
    assert (server.requests[0].prompt.task, server.requests[0].prompt.step) == ("draft", "self-critique")


async def test_with_limits_a_slow_answer_may_take_as_long_as_it_goes_on() -> None:
    async with endpoint(Drips(0.08, "word " * 60), limits=StreamLimits(first_s=30, idle_s=1)) as (model, server):
        completion = await model.complete(ASK)

    assert completion.text == "word " * 60
    assert completion.took > timedelta(seconds=1)
    assert server.requests[0].streams


@pytest.mark.parametrize("schema", [None, Verdict])
async def test_with_limits_a_silence_ends_an_answer_of_which_the_stream_has_shown_what_came(
    schema: type[BaseModel] | None,
) -> None:
    async with endpoint(Stalls(3), Stalls(3), limits=StreamLimits(first_s=5, idle_s=0.05)) as (model, _):
        shown: list[str] = []

        async def listen() -> None:
            async for chunk in model.stream(ASK):
                shown.append(chunk.text)

        with pytest.raises(AnswerStalled, match=r"nothing more within 0\.05 s"):
            await listen()
        with pytest.raises(AnswerStalled):
            await model.complete(ASK, schema=schema)

    assert "".join(shown) == ("word " * 500)[:48]


async def test_with_limits_the_first_word_may_take_longer_than_the_others() -> None:
    async with endpoint(Stalls(1), limits=StreamLimits(first_s=0.2, idle_s=0.01)) as (model, _):
        with pytest.raises(AnswerStalled, match=r"within 0\.2 s"):
            await model.complete(ASK)


async def test_an_endpoint_that_never_ends_is_taken_to_be_at_its_token_limit() -> None:
    async with endpoint(Drips(0.0), limits=StreamLimits(first_s=5, idle_s=5)) as (model, _):
        with pytest.raises(AnswerCutOff) as caught:
            await model.complete(ASK, params=ModelParams(max_tokens=5))

    assert caught.value.text.startswith("word word ")


class Calls:
    """A recorder that admits every call and keeps it."""

    def __init__(self) -> None:
        self.calls: list[FinishedCall] = []

    async def admit(self) -> None:
        pass

    async def record(self, done: FinishedCall) -> None:
        self.calls.append(done)


@pytest.mark.parametrize(
    ("script", "streams", "reported"),
    [
        ((Says("Forty two."),), False, ("Forty two.", "", 7, 2, 0)),
        ((Fails.busy(), Says("Forty two.")), False, ("Forty two.", "", 7, 2, 1)),
        ((Says("Forty two."),), True, ("Forty two.", "", 7, 2, 0)),
        ((Fails.busy(), Says("Forty two.")), True, ("Forty two.", "", 7, 2, 1)),
        ((Says("Forty", finish_reason="length"),), False, ("Forty", AnswerCutOff.__name__, 7, 1, 0)),
        ((HangsUp(),), True, ("", ModelUnavailable.__name__, 0, 0, 0)),
        ((Fails(400),), False, ("", ModelRefused.__name__, 0, 0, 0)),
    ],
)
async def test_every_call_is_recorded_with_what_it_has_cost(
    script: tuple[Reply, ...], streams: bool, reported: tuple[str, str, int, int, int]
) -> None:
    recorder, failure = Calls(), ""
    async with endpoint(*script) as (model, _):
        recorded = RecordedModel(model, recorder)
        try:
            await (streamed(recorded, tools=[WEATHER]) if streams else recorded.complete(ASK, tools=[WEATHER]))
        except ModelFailure as error:
            failure = type(error).__name__

    (call,) = recorder.calls
    text, expected_failure, *numbers = reported
    retries = call.completion.retries if call.completion else 0
    assert [call.usage.prompt_tokens, call.usage.completion_tokens, retries] == numbers
    assert (list(call.prompt), list(call.tools), failure) == (ASK, [WEATHER], expected_failure)
    assert bool(call.failure) == bool(expected_failure)
    assert call.text == text


async def test_an_answer_that_nobody_listens_to_any_more_has_cost_something() -> None:
    recorder = Calls()
    async with endpoint(Drips(0.001, "word " * 500)) as (model, _):
        pieces = RecordedModel(model, recorder).stream(ASK)
        assert isinstance(pieces, AsyncGenerator)
        begun = (await anext(pieces)).text
        await pieces.aclose()
        await until(lambda: bool(recorder.calls))

    (call,) = recorder.calls
    assert (call.text, call.failure.split(";")[0]) == (begun, "Nobody listens to the answer any more")
    assert call.is_stopped
    assert call.usage.prompt_tokens > 0
    assert call.usage.completion_tokens > 0


def test_certificates_that_are_not_there_are_told_by_the_variable_that_names_them(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "from retrieval.openai_client import certificates; certificates()"],
        env=os.environ | {"SSL_CERT_FILE": str(tmp_path / "gone.pem")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert ended.stderr.splitlines()[-1].startswith("retrieval.openai_client.UnreadableCertificates: ")
    assert f"correct or unset SSL_CERT_FILE. ({tmp_path}/gone.pem: " in ended.stderr
