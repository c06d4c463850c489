"""The article card with an endpoint that misbehaves in fifteen ways: it completes, or fails with a plain sentence."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

import config
from bus_schema.cards import BRIEF
from bus_schema.ids import mint
from bus_schema.process import GetProcess, StartProcess
from bus_schema.runs import MisbehaviourKind, Run, RunStatus
from bus_schema.storage import SearchArtifacts
from mindbus import Client
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.testing.deliver import running
from mindbus.testing.wait import until
from tests.fleets import settings_for
from tests.installed import FLEET
from tests.llm_server import LlmServer
from tests.misbehaving_model import CASES, REFUSAL, MisbehavingModel

BRIEF_FILE = Path(config.__file__).parent / "briefs" / "en.md"
TEAM = ("storage", "orchestrator", "researcher", "ideator", "critic", "editor", "pushkin")
# What no attempt can mend, with the sentence that says so.
HOPELESS = {
    "empty": "the model answered nothing",
    "refusal": f"the model refused the task: “{REFUSAL}”",
    "offtopic": "the model wrote about something else than its inputs",
    "language": "the model wrote Chinese instead of English",
}
TOLD = {
    "prose": MisbehaviourKind.UNREADABLE,
    "empty": MisbehaviourKind.EMPTY,
    "refusal": MisbehaviourKind.REFUSAL,
    "offtopic": MisbehaviourKind.OFF_TOPIC,
    "language": MisbehaviourKind.WRONG_LANGUAGE,
    "length": MisbehaviourKind.CUT_OFF,
    "stall": MisbehaviourKind.STALLED,
    "circles": MisbehaviourKind.ENDLESS,
}


@dataclass
class Outcome:
    """A run of a case that is over, with the texts of its artifacts and its calls by task and step."""

    run: Run
    texts: list[str]
    calls: dict[tuple[str, str], int]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return asyncio.run(outcomes_in(tmp_path_factory.mktemp("misbehaving")))


async def outcomes_in(folder: Path) -> dict[str, Outcome]:
    """Every case in one fleet, at the same time."""
    model = MisbehavingModel()
    async with LlmServer(otherwise=model) as server:
        settings = settings_for(
            f"memory://{folder}",
            folder,
            llm_base_url=server.base_url,
            llm_model="small",
            llm_concurrency=8,
            llm_idle_s=1.5,
        )
        workers = (FLEET[name] for name in TEAM)
        async with running(*workers, settings=settings) as bus, open_artifacts(bus, settings) as artifacts:
            runs = await asyncio.gather(*(run_of(case, bus, artifacts) for case in CASES))
            texts = [await texts_of(run, bus, artifacts) for run in runs]
    return {
        case: Outcome(run, made, {(task, step): n for (of, task, step), n in model.calls.items() if of == case})
        for case, run, made in zip(CASES, runs, texts, strict=True)
    }


async def run_of(case: str, bus: Client, artifacts: Artifacts) -> Run:
    run_id = mint("run")
    text = f"{BRIEF_FILE.read_text().partition('## The people')[0]}\n\nReference: case-{case}.\n"
    put = await artifacts.put(text.encode(), artifact_type=BRIEF, trace=run_id, content_type="text/markdown")
    await bus.request(StartProcess(run_id=run_id, card_name="article", inputs=(put.ref,)), trace=run_id)

    async def over() -> Run | None:
        run = await bus.request(GetProcess(run_id=run_id), trace=run_id)
        return run if run.finished_at else None

    found: Run | None = await until(over, 90, f"the end of {case}")
    assert found is not None
    return found


async def texts_of(run: Run, bus: Client, artifacts: Artifacts) -> list[str]:
    page = await bus.request(SearchArtifacts(trace_id=run.run_id, limit=200), trace=run.run_id)
    made = [each.id for each in page.items if each.artifact_type != BRIEF]
    return [(await artifacts.get(each, trace=run.run_id)).decode() for each in made]


def test_there_are_fifteen_of_them() -> None:
    assert len(CASES) == 15


@pytest.mark.parametrize("case", sorted(set(CASES) - set(HOPELESS)))
def test_what_can_be_mended_ends_in_an_article(outcomes: dict[str, Outcome], case: str) -> None:
    outcome = outcomes[case]

    assert outcome.run.status is RunStatus.COMPLETED, outcome.run.reason
    assert len(outcome.texts) == 6
    assert {step.attempt for step in outcome.run.steps} == {1}


@pytest.mark.parametrize("case", HOPELESS)
def test_what_cannot_be_mended_fails_with_a_plain_sentence_after_all_attempts(
    outcomes: dict[str, Outcome], case: str
) -> None:
    run = outcomes[case].run

    assert run.status is RunStatus.FAILED
    assert f"step research failed: {HOPELESS[case]}" in run.reason
    assert "try another model" in run.reason
    assert run.steps[0].attempt == 3
    assert outcomes[case].calls == {("research_report", "write"): 3}
    assert outcomes[case].texts == []


@pytest.mark.parametrize("case", TOLD)
def test_the_run_shows_what_the_model_did(outcomes: dict[str, Outcome], case: str) -> None:
    misbehaviours = [each for step in outcomes[case].run.steps for each in step.misbehaviours]

    assert {each.kind for each in misbehaviours} >= {TOLD[case]}
    assert {each.model_name for each in misbehaviours} == {"small"}


@pytest.mark.parametrize("case", CASES)
def test_no_refusal_no_fence_and_no_thought_is_ever_an_artifact(outcomes: dict[str, Outcome], case: str) -> None:
    for text in outcomes[case].texts:
        assert REFUSAL not in text
        assert "```" not in text
        assert "<think>" not in text
        assert text.strip()


def test_a_text_that_broke_off_is_whole_and_paid_once(outcomes: dict[str, Outcome]) -> None:
    plain = {each.splitlines()[0]: each.replace("case-key", "") for each in outcomes["key"].texts}
    for case in ("length", "stall"):
        texts = {each.splitlines()[0]: each.replace(f"case-{case}", "") for each in outcomes[case].texts}
        assert outcomes[case].calls["final", "write"] == 2
        assert {title: len(text) for title, text in texts.items()} == {
            title: len(text) for title, text in plain.items()
        }


def test_a_text_that_goes_round_in_circles_ends_where_it_begins_to(outcomes: dict[str, Outcome]) -> None:
    assert max(text.count("answer in May?") for text in outcomes["circles"].texts) == 1
