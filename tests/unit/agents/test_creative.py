"""A role's loop: draft, self-critique, revision; what has been paid for is never paid for again."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langsmith import tracing_context
from langsmith.utils import tracing_is_enabled

from agents.configuration.prompts import Role, shipped_role
from agents.creative.assignment import Assignment
from agents.creative.loop import CreativeLoop
from agents.creative.loop_work import LoopState
from agents.creative.misbehaviour import ModelMisbehaviour
from agents.models.errors import AnswerCutOff, ModelUnavailable, PromptTooLong
from agents.models.language_model import Chunk, LanguageModel
from agents.models.offline.model import OfflineModel
from agents.models.prompt import Material, Verdict
from bus_schema.runs import Misbehaviour, MisbehaviourKind
from language.words import Language, language_of
from tests.assignments import an_assignment, an_input
from tests.scripted_model import ScriptedModel
from tests.writers import CountingModel, Killed
from workers.checkpoints import open_checkpoints

Memory = BaseCheckpointSaver[Any]


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path / 'pushkin.db'}"


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    async with open_checkpoints(database, "pushkin") as saver:
        yield saver


def pushkin(max_rounds: int = 2) -> Role:
    return shipped_role("pushkin").model_copy(update={"max_rounds": max_rounds})


class Progress(list[str]):
    async def __call__(self, note: str) -> None:
        self.append(note)


async def thought_by(
    model: LanguageModel, memory: Memory, assignment: Assignment | None = None, max_rounds: int = 2
) -> LoopState:
    return await CreativeLoop(pushkin(max_rounds), model, memory).run(assignment or an_assignment(), Progress())


async def test_a_role_writes_criticises_itself_and_revises_until_it_is_content(memory: Memory) -> None:
    model, progress = CountingModel(rounds=1), Progress()

    thought = await CreativeLoop(pushkin(), model, memory).run(an_assignment(), progress)

    assert model.asked == ["write", "self-critique", "revise", "self-critique"]
    assert thought["text"] == "Text 3: revise"
    assert thought["rounds"] == 1
    assert (thought["calls"], thought["prompt_tokens"], thought["completion_tokens"]) == (4, 40, 8)
    assert progress[0].startswith("first version written")
    assert progress[-1] == "content with it"


async def test_nothing_of_it_goes_to_langsmith_where_graphs_of_ones_own_are_traced(memory: Memory) -> None:
    traced: list[object] = []
    with tracing_context(enabled=True):
        await thought_by(CountingModel(before=lambda _number: traced.append(tracing_is_enabled())), memory)
        assert tracing_is_enabled()

    assert traced == [False] * 4


async def test_rounds_are_bounded_and_no_critique_is_paid_for_that_nothing_can_follow(memory: Memory) -> None:
    model = CountingModel(rounds=99)

    await thought_by(model, memory, max_rounds=2)

    assert model.asked == ["write", "self-critique", "revise", "self-critique", "revise"]


async def test_without_rounds_the_first_version_stands(memory: Memory) -> None:
    model = CountingModel()

    await thought_by(model, memory, max_rounds=0)

    assert model.asked == ["write"]


async def test_the_roles_parameters_reach_the_model(memory: Memory) -> None:
    model = CountingModel(rounds=0)

    await thought_by(model, memory)

    assert {params.temperature for params in model.params} == {0.7}


async def test_the_attempt_and_the_remarks_are_shown_as_material(memory: Memory) -> None:
    model = CountingModel(rounds=1)

    await thought_by(model, memory)

    revision = model.prompts[2][1].content
    assert '<material id="attempt" type="draft">\nText 1: write\n</material>' in revision
    assert "- Короче!" in revision


@pytest.mark.parametrize("dies_at", [1, 2, 3, 4])
async def test_after_a_crash_no_finished_model_call_is_repeated(database: str, dies_at: int) -> None:
    def die(number: int) -> None:
        if number == dies_at:
            raise Killed

    whole, broken = CountingModel(rounds=1), CountingModel(rounds=1, before=die)
    async with open_checkpoints(database, "pushkin") as memory:
        with pytest.raises(Killed):
            await thought_by(broken, memory)
    heir = CountingModel(rounds=1 - broken.asked.count("self-critique"))

    async with open_checkpoints(database, "pushkin") as memory:
        thought = await thought_by(heir, memory)

    await whole_run(whole, database)
    assert broken.asked + heir.asked == whole.asked
    assert thought["calls"] == len(whole.asked)


async def whole_run(model: CountingModel, database: str) -> None:
    async with open_checkpoints(database.replace("pushkin.db", "whole.db"), "pushkin") as memory:
        await thought_by(model, memory)


async def test_a_finished_thought_is_found_again_without_a_call(memory: Memory) -> None:
    first = await thought_by(CountingModel(), memory)
    model = CountingModel()

    again = await thought_by(model, memory)

    assert again == first
    assert model.asked == []


async def test_a_new_attempt_goes_on_where_the_last_one_stopped(memory: Memory) -> None:
    def be_away(number: int) -> None:
        if number == 3:
            raise ModelUnavailable("busy")

    with pytest.raises(ModelUnavailable):
        await thought_by(CountingModel(rounds=1, before=be_away), memory)
    third = CountingModel(rounds=0)

    thought = await thought_by(third, memory, an_assignment(attempt=3))

    assert third.asked == ["revise", "self-critique"]
    assert thought["calls"] == 4


async def test_a_fenced_old_attempt_cannot_write_into_the_new_one(memory: Memory) -> None:
    def be_away(number: int) -> None:
        if number == 2:
            raise ModelUnavailable("busy")

    with pytest.raises(ModelUnavailable):
        await thought_by(CountingModel(before=be_away), memory)
    new = await thought_by(CountingModel(rounds=0), memory, an_assignment(attempt=2))

    await thought_by(CountingModel(rounds=1), memory, an_assignment(attempt=1))

    model = CountingModel()
    assert await thought_by(model, memory, an_assignment(attempt=2)) == new
    assert model.asked == []


@pytest.mark.parametrize(
    "changed",
    [
        an_assignment(attempt=2, instructions="Write something else."),
        an_assignment(an_input("Another brief."), attempt=2),
        an_assignment(attempt=2, params={"tone": "dry"}),
    ],
)
async def test_thoughts_on_something_else_are_not_gone_on_with(memory: Memory, changed: Assignment) -> None:
    await thought_by(CountingModel(rounds=0), memory)
    model = CountingModel(rounds=0)

    await thought_by(model, memory, changed)

    assert model.asked == ["write", "self-critique"]


async def test_another_prompt_begins_anew_even_within_an_attempt(memory: Memory) -> None:
    await thought_by(CountingModel(rounds=0), memory)
    model = CountingModel(rounds=0)
    newer = pushkin().model_copy(update={"prompt_version": "9.0.0"})

    await CreativeLoop(newer, model, memory).run(an_assignment(), Progress())

    assert model.asked == ["write", "self-critique"]


async def test_all_of_memory_that_was_ever_shown_is_named_even_if_another_attempt_is_shown_other_units(
    memory: Memory,
) -> None:
    first = replace(an_assignment(), memory=(Material("kem_1", "memory", "Релиз 24 марта."),))
    second = replace(an_assignment(attempt=2), memory=(Material("kem_2", "memory", "Бюджет 42 тысячи."),))

    def dies(number: int) -> None:
        if number == 2:
            raise Killed

    with pytest.raises(Killed):
        await thought_by(CountingModel(rounds=1, before=dies), memory, first)

    model = CountingModel(rounds=1)
    thought = await thought_by(model, memory, second)

    assert model.asked == ["self-critique", "revise", "self-critique"]
    assert thought["recalled"] == ["kem_1", "kem_2"]


async def test_checkpoints_hold_the_text_but_never_the_material(database: str, tmp_path: Path) -> None:
    secret = "Только в материале: 9f8e7d. " * 2000
    async with open_checkpoints(database, "pushkin") as memory:
        await thought_by(CountingModel(rounds=1), memory, an_assignment(an_input(secret)))

    stored = _bytes_of(tmp_path)
    assert b"Text 3: revise" in stored
    assert b"9f8e7d" not in stored
    assert len(stored) < 300_000


def _bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("pushkin.db*"))


async def test_what_is_safe_is_forgotten_with_all_its_attempts(memory: Memory) -> None:
    loop = CreativeLoop(pushkin(), CountingModel(), memory)
    await loop.run(an_assignment(attempt=1), Progress())
    await loop.run(an_assignment(attempt=2), Progress())

    await loop.forget(an_assignment(attempt=2))

    assert [found async for found in memory.alist(None)] == []


async def test_an_empty_answer_is_no_text(memory: Memory) -> None:
    class Mute(CountingModel):
        async def complete(self, *args: Any, **kwargs: Any) -> Any:
            answer = await super().complete(*args, **kwargs)
            return answer.model_copy(update={"text": " \n"})

    with pytest.raises(ModelMisbehaviour, match="answered nothing"):
        await thought_by(Mute(), memory)


@pytest.mark.parametrize("role", ["researcher", "ideator", "critic", "editor", "pushkin"])
async def test_every_role_can_be_played_by_the_offline_model(memory: Memory, role: str) -> None:
    played = shipped_role(role)
    for artifact_type in played.produces:
        assignment = an_assignment(produces=artifact_type, step_id=artifact_type)

        thought = await CreativeLoop(played, OfflineModel(), memory).run(assignment, Progress())

        assert language_of(thought["text"]) is Language.RUSSIAN
        assert thought["calls"] >= 1


async def test_a_verdict_that_cannot_be_read_keeps_the_draft_and_is_told(memory: Memory) -> None:
    told: list[Misbehaviour] = []

    async def tell(misbehaviour: Misbehaviour) -> None:
        told.append(misbehaviour)

    model = ScriptedModel("A draft.", "Rather good.", "Rather good, I said.")

    thought = await CreativeLoop(pushkin(), model, memory).run(an_assignment(), Progress(), report_misbehaviour=tell)

    assert thought["text"] == "A draft."
    assert [(each.kind, each.call, each.words) for each in told] == [
        (MisbehaviourKind.UNREADABLE, "self-critique", "Rather good, I said.")
    ]


async def test_a_revision_that_is_a_refusal_leaves_the_draft_as_it_was(memory: Memory) -> None:
    remark = Verdict(satisfied=False, remarks=["Shorter."])
    model = ScriptedModel("Черновик о трамвае №12.", remark, "As an AI language model I cannot help with that.")

    thought = await thought_by(model, memory)

    assert thought["text"] == "Черновик о трамвае №12."


async def test_a_refusal_fails_the_attempt_and_the_next_one_asks_again(memory: Memory) -> None:
    refusing = ScriptedModel("I'm sorry, but I can't help with that.")
    with pytest.raises(ModelMisbehaviour, match="refused the task"):
        await thought_by(refusing, memory)
    with pytest.raises(ModelMisbehaviour, match="refused the task"):
        await thought_by(refusing, memory)
    assert len(refusing.asked) == 1, "a repeated order pays for nothing twice"

    thought = await thought_by(ScriptedModel("A draft."), memory, an_assignment(attempt=2), max_rounds=0)

    assert thought["text"] == "A draft."


async def test_an_answer_without_end_is_given_up_after_some_continuations(memory: Memory) -> None:
    class Endless(ScriptedModel):
        async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Chunk]:
            self.asked.append(messages)
            yield Chunk(text=f"word {len(self.asked)} ")
            raise AnswerCutOff

    model = Endless("")
    with pytest.raises(ModelMisbehaviour, match="did not come to an end in 5 answers"):
        await thought_by(model, memory)

    assert model.asked[-1][-2].content == "word 1 word 2 word 3 word 4 "
    assert (await thought_by(ScriptedModel("Whole."), memory, an_assignment(attempt=2), 0))["text"] == "Whole."


async def test_a_revision_that_the_model_has_no_room_for_leaves_the_draft_as_it_was(memory: Memory) -> None:
    remark = Verdict(satisfied=False, remarks=["Shorter."])

    for revision in ([PromptTooLong()], [AnswerCutOff(text="The rev"), PromptTooLong()]):
        model = ScriptedModel("A draft.", remark, *revision)
        thought = await thought_by(model, memory, an_assignment(step_id=f"draft{len(revision)}"))

        assert thought["text"] == "A draft."
        assert len(model.asked) == 2 + len(revision)


async def test_an_answer_that_the_model_has_no_room_to_end_is_given_up(memory: Memory) -> None:
    with pytest.raises(ModelMisbehaviour, match="did not come to an end"):
        await thought_by(ScriptedModel(AnswerCutOff(text="The dra"), PromptTooLong()), memory)
    with pytest.raises(PromptTooLong, match="longer than what the model takes in"):
        await thought_by(ScriptedModel(PromptTooLong()), memory, an_assignment(step_id="other"))


async def test_what_had_come_by_the_deadline_is_gone_on_with_by_the_next_attempt(memory: Memory) -> None:
    class Slow(ScriptedModel):
        async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Chunk]:
            yield Chunk(text="The first half, ")
            await asyncio.Event().wait()

    until = asyncio.get_running_loop().time() + 2
    with pytest.raises(TimeoutError):
        await CreativeLoop(pushkin(0), Slow(""), memory).run(an_assignment(), Progress(), until=until)

    heir = ScriptedModel("and the second.")
    thought = await thought_by(heir, memory, an_assignment(attempt=2), max_rounds=0)

    assert thought["text"] == "The first half, and the second."
    assert heir.asked[0][-2].content == "The first half, "
