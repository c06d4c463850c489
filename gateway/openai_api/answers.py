"""Answers of the chosen model: pieces of text as they come, then the whole with what it has cost."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta

from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.client_tools import ClientTools
from bus_schema.dialogue import Answered
from bus_schema.history import HistoryToolCall
from bus_schema.ids import mint
from bus_schema.process import GetProcess, StartProcess
from bus_schema.replies import Code, restarts
from bus_schema.runs import Run, RunStatus
from bus_schema.subagent import ExecuteTask, service_of
from gateway.api.dialogues import answer_to, cancel_answer, send_message
from gateway.backend import Backend
from gateway.openai_api.client_tools import shown_call
from gateway.openai_api.conversation import ClientMessage, last_words, whole_talk
from gateway.openai_api.models import DIALOGUE, ROLE, SUBAGENT, craft_of, require_model
from mindbus.errors import Rejected

_LOOK_S = 0.3
_OVER = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
_STEP = "answer"
_INSTRUCTIONS = "Do what the brief asks for."


@dataclass(frozen=True)
class Answer:
    """A whole answer; `is_cut_off` where the model did not finish. Tokens are 0 where no model was asked.

    With `calls` of the client's tools it goes on once their results are there.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_cut_off: bool = False
    calls: tuple[HistoryToolCall, ...] = ()


Pieces = AsyncGenerator[str | Answer]


@dataclass(frozen=True)
class Question:
    """Question to a model, for a person; asked again under the same `id`, it is the same question."""

    model: str
    messages: Sequence[ClientMessage]
    user_id: str
    id: str
    tools: ClientTools | None = None


def answer(backend: Backend, question: Question) -> Pieces:
    """The answer as it comes. Raises Rejected, NotYours, BudgetSpent, ReplyError, BusUnavailable."""
    require_model(question.model)
    if question.model == DIALOGUE:
        return _of_dialogue(backend, question)
    kind = _of_role if question.model.startswith(ROLE) else _of_subagent
    return kind(backend, question)


def cancel(backend: Backend, question: Question) -> None:
    """Have the model called no more for a question that nobody waits for. Runs of roles go on."""
    if question.model == DIALOGUE:
        cancel_answer(backend, question.user_id, question.id)


async def whole_answer(backend: Backend, question: Question) -> Answer:
    """The answer as a whole. Raises as `answer` does."""
    if question.model == DIALOGUE:
        said = last_words(question.messages)
        return _of_answered(await answer_to(backend, question.user_id, said, question.id, client_tools=question.tools))
    pieces = answer(backend, question)
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                return piece
    raise AssertionError("unreachable: an answer ends with the whole of it")


async def _of_dialogue(backend: Backend, question: Question) -> Pieces:
    said = last_words(question.messages)
    shown = ""
    restarted: str | None = None
    chunks = send_message(backend, question.user_id, said, question.id, client_tools=question.tools)
    async with aclosing(chunks):
        async for chunk in chunks:
            if isinstance(chunk, Answered):
                if rest := _unsaid(chunk.response, shown):
                    yield rest
                yield _of_answered(chunk)
                return
            if restarts(chunk) and shown:
                restarted = ""
            if restarted is None:
                shown += chunk
                yield chunk
                continue
            # A client can take nothing back: of the answer's new beginning it is told what it does not have yet.
            restarted += chunk
            if restarted.startswith(shown):
                yield restarted.removeprefix(shown)
                shown, restarted = restarted, None


def _of_answered(answered: Answered) -> Answer:
    used = answered.model_use
    tokens = (used.prompt_tokens, used.completion_tokens) if used else (0, 0)
    calls = tuple(shown_call(call, answered.message_id) for call in answered.tool_calls)
    text = answered.response.rstrip() if calls else answered.response
    return Answer(text, tokens[0], tokens[1], answered.cut_off, calls)


def _unsaid(response: str, shown: str) -> str:
    """The rest of the answer, which has not been shown; all of it, below a line, where it has become another one."""
    return response.removeprefix(shown) if response.startswith(shown) else f"\n\n---\n\n{response}"


async def _of_role(backend: Backend, question: Question) -> Pieces:
    """A run with one step, which goes on whatever becomes of the client."""
    backend.require_budget()
    role = question.model.removeprefix(ROLE)
    run_id = f"run_{question.id.removeprefix('msg_')}"
    async with backend.own_artifacts() as artifacts:
        text = whole_talk(question.messages)
        put = await artifacts.put(text.encode(), artifact_type=BRIEF, trace=run_id, content_type="text/markdown")
        step = CardStep(id=_STEP, role=role, instructions=_INSTRUCTIONS, produces=craft_of(role))
        card = Card(name=role.replace(".", "-"), steps=(step,), result=_STEP)
        await backend.bus.request(StartProcess(run_id=run_id, card=card, inputs=(put.ref,)), trace=run_id)
        run = await _end_of(backend, run_id)
        if run.result is None:
            raise Rejected(Code.UNAVAILABLE, run.reason or f"the run {run_id} is {run.status.value}")
        content = (await artifacts.get(run.result.artifact_id, trace=run_id)).decode(errors="replace")
    yield content
    yield Answer(content, run.spent.prompt_tokens, run.spent.completion_tokens)


async def _end_of(backend: Backend, run_id: str) -> Run:
    while True:
        run = await backend.bus.request(GetProcess(run_id=run_id), trace=run_id)
        if run.status in _OVER:
            return run
        await asyncio.sleep(_LOOK_S)


async def _of_subagent(backend: Backend, question: Question) -> Pieces:
    name = question.model.removeprefix(SUBAGENT)
    within_s = backend.settings.subagent_timeout_s
    task = ExecuteTask(
        task=whole_talk(question.messages),
        chat_id=question.user_id,
        delegation_id=mint("dlg"),
        deadline=backend.clock() + timedelta(seconds=within_s),
    )
    with backend.asking(question.user_id) as bus:
        done = await bus.request(task, to=service_of(name), timeout_s=within_s + backend.settings.request_timeout_s)
    yield done.response
    yield Answer(done.response)
