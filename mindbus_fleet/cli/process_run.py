"""One run of a process card, from the brief to its end, and its display."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agents.configuration.prompts import crafts_of_roles
from agents.processes.cards import card_from_file, shipped_card
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF, Card
from bus_schema.envelope import Envelope
from bus_schema.ids import mint
from bus_schema.process import MOST_INPUTS, GetProcess, StartProcess
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from mindbus.bus.client import Client
from mindbus.bus.subscriptions import EventSubscription
from mindbus.cli.artifact_upload import put_or_fail
from mindbus.cli.console import errors, note, say, say_data, show, show_result, table
from mindbus.cli.errors import UsageError
from mindbus.cli.language import translate
from mindbus.cli.session import answer_if_there
from mindbus.errors import ReplyError, SubscriptionRefused
from mindbus.sdk.artifacts import Artifacts
from mindbus.tasks import end
from mindbus_fleet.cli.briefs import content_type_of_brief, read_brief, read_document
from workers.importer import ImporterWorker

_COLOURS = {
    StepStatus.RUNNING: "cyan",
    StepStatus.COMPLETED: "green",
    StepStatus.PENDING_STORAGE: "yellow",
    StepStatus.FAILED: "red",
    StepStatus.CANCELLED: "red",
}
Set = Annotated[
    list[str] | None, typer.Option("--set", "--param", metavar="K=V", help="A parameter of the card; may be repeated.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return once it has started.")]
# Where the state of the run itself is remembered, beside those of its steps.
_RUN = ""
OVER = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


def step_table(run: Run, notes: Mapping[str, str] | None = None) -> Table:
    """A run as a table: step, role, status, model, seconds, artifact, digest."""
    why = f": {run.reason}" if run.status is RunStatus.PAUSED else ""
    title = f"{run.run_id}  {run.card_name}  {run.status.value}{why}"
    columns = ("step", "role", "status", "model", "seconds", "artifact", "sha256")
    if notes is None:
        return table(columns, (_row(step) for step in run.steps_in_order), title)
    rows = ((*_row(step)[:5], notes.get(step.step_id, "")) for step in run.steps_in_order)
    return table((*columns[:5], "note"), rows, title)


def misbehaviour_lines(run: Run) -> Iterator[str]:
    """Answers of models that were no result, one a line."""
    for step in run.steps_in_order:
        for each in step.misbehaviours:
            words = f": “{each.words}”" if each.words else ""
            kind = each.kind.value.replace("_", " ")
            yield f"{step.step_id}, attempt {each.attempt}, {each.call}: {kind} by {each.model_name}{words}"


def show_run(found: Run) -> None:
    show(step_table(found))
    for line in misbehaviour_lines(found):
        say(line)
    if found.reason:
        say_data(f"{translate('reason:')} {found.reason}")
    if found.result is not None:
        say(f"result: {found.result.artifact_id}   (mindbus artifacts get {found.result.artifact_id} -o FILE)")
    for step in waiting_for_people(found):
        say(f"{step.step_id} waits for an answer: mindbus process approve {found.run_id} {step.step_id}")
    if found.status is RunStatus.PAUSED:
        say(f"let it go on: mindbus process resume {found.run_id}")
    if found.status in (RunStatus.FAILED, RunStatus.CANCELLED):
        say(f"go on with what is there: mindbus process retry {found.run_id}")


def waiting_for_people(found: Run) -> list[Step]:
    """Steps that wait for an approval; one with a time waits for that."""
    return [step for step in found.steps if step.status is StepStatus.WAITING and step.due_at is None]


def finish(ended: Run, *, as_json: bool, no_wait: bool) -> None:
    """Show a run; exit 1 unless it has completed, or nobody waited for that."""
    show_result(ended, show_run, as_json=as_json)
    if not no_wait and ended.status is not RunStatus.COMPLETED:
        raise typer.Exit(1)


def params_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Parameters by name. Raises UsageError."""
    params: dict[str, str] = {}
    for each in texts or ():
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {each!r} is not K=V; write it as --set tone=dry")
        params[key] = value
    return params


def _row(step: Step) -> tuple[object, ...]:
    status = Text(step.status.value, style=_COLOURS.get(step.status, "dim"))
    if step.attempt > 1:
        status.append(f" (attempt {step.attempt})")
    model = step.context.model_name if step.context else None
    artifact = step.artifact
    return (
        step.step_id,
        step.role,
        status,
        model or "",
        _seconds(step),
        artifact.artifact_id if artifact else step.reason,
        artifact.sha256 if artifact else "",
    )


def _seconds(step: Step) -> str:
    if step.context is not None and step.context.execution_time_ms is not None:
        return f"{step.context.execution_time_ms / 1000:.1f}"
    if step.started_at is not None and step.finished_at is not None:
        return f"{(step.finished_at - step.started_at).total_seconds():.1f}"
    return ""


# Events tell at once; asking is for those that are told while the connection is lost.
_ASK_EVERY_S = 1.0
_ASK_WITHIN_S = 5.0
_TRIES_TO_START = 3


@dataclass
class RunRequest:
    """A run to start; read and validated completely before anything is written."""

    card: Card | None
    card_name: str | None
    briefs: Sequence[tuple[Path, bytes]]
    params: dict[str, str]
    run_id: str = field(default_factory=lambda: mint("run"))
    is_started: bool = False

    @classmethod
    def read(cls, card: str, briefs: Sequence[Path], params: Mapping[str, str]) -> "RunRequest":
        """Raises UnknownCard, InvalidCard, InvalidBrief."""
        if len(briefs) > MOST_INPUTS:
            raise UsageError(f"--input is given {len(briefs)} times; a run begins with {MOST_INPUTS} documents at most")
        is_file = card.endswith((".yaml", ".yml")) or "/" in card
        crafts = crafts_of_roles()
        found = card_from_file(Path(card), crafts) if is_file else shipped_card(card, crafts)
        read = read_document if _imports_brief(found) else read_brief
        contents = [(brief, read(brief)) for brief in briefs]
        return cls(found if is_file else None, None if is_file else card, contents, dict(params))


async def start(order: RunRequest, bus: Client, artifacts: Artifacts) -> None:
    """Register the briefs under the run's trace, then start it. Raises Failed, ReplyError."""
    refs = [await _register(order.run_id, brief, text, artifacts) for brief, text in order.briefs]
    command = StartProcess(
        run_id=order.run_id, card=order.card, card_name=order.card_name, inputs=tuple(refs), params=order.params
    )
    for tries_left in range(_TRIES_TO_START - 1, -1, -1):
        try:
            await bus.request(command, trace=order.run_id)
        except ReplyError as failed:
            # The same start twice is one run.
            if not tries_left or not failed.retryable:
                raise
        else:
            order.is_started = True
            return


async def follow(run_id: str, bus: Client, seen: Callable[[Run, Mapping[str, str]], None]) -> Run:
    """Tell of every change of a run until it is over."""
    notes: dict[str, str] = {}
    news = asyncio.Event()
    async with AsyncExitStack() as stack:
        # Whose login may not hear events asks every second.
        with suppress(SubscriptionRefused):
            events = await stack.enter_async_context(bus.subscribe("process.*", trace=run_id))
            stack.push_async_callback(end, asyncio.create_task(_hear(events, notes, news)))
        while True:
            run = await answer_if_there(bus, GetProcess(run_id=run_id), trace=run_id, timeout_s=_ASK_WITHIN_S)
            if run is not None:
                seen(run, notes)
                if run.status in OVER:
                    return run
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_EVERY_S):
                    await news.wait()
            news.clear()


async def end_of(run_id: str, bus: Client, *, as_json: bool) -> Run:
    """The run, once it is over; its progress is shown meanwhile."""
    with Progress(is_silent=as_json) as progress:
        return await follow(run_id, bus, progress)


class Progress:
    """Shows a run while it goes on: a live table on a terminal, else a line for each change."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_live = sys.stderr.isatty()
        self._is_silent = is_silent and not self._is_live
        self._live = Live(Table(), console=errors(), transient=True, refresh_per_second=8)
        self._said: dict[str, str] = {}

    def __enter__(self) -> "Progress":
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._is_live:
            self._live.stop()

    def __call__(self, run: Run, notes: Mapping[str, str]) -> None:
        if self._is_live:
            self._live.update(step_table(run, notes))
        elif not self._is_silent:
            self._say_changes(run)

    def _say_changes(self, run: Run) -> None:
        if run.status is RunStatus.PAUSED and self._said.get(_RUN) != run.reason:
            note(f"paused: {run.reason}: mindbus process resume {run.run_id}")
        self._said[_RUN] = run.reason if run.status is RunStatus.PAUSED else ""
        for step in run.steps:
            state = f"{step.status.value}" + (f" (attempt {step.attempt})" if step.attempt > 1 else "")
            if self._said.get(step.step_id, "pending") != state:
                self._said[step.step_id] = state
                is_asking = step in waiting_for_people(run)
                hint = f"mindbus process approve {run.run_id} {step.step_id}" if is_asking else step.reason
                reason = f": {hint}" if hint else ""
                note(f"{step.step_id:<12} {step.role:<12} {state}{reason}")


async def _register(run_id: str, brief: Path, text: bytes, artifacts: Artifacts) -> ArtifactRef:
    content_type = content_type_of_brief(brief)
    done = await put_or_fail(artifacts, text, {"artifact_type": BRIEF, "trace": run_id, "content_type": content_type})
    return done.ref


async def _hear(events: EventSubscription[Envelope], notes: dict[str, str], news: asyncio.Event) -> None:
    async for envelope in events:
        data = envelope.data or {}
        if "note" in data:
            notes[str(data.get("step_id"))] = str(data["note"])
        news.set()


def _imports_brief(card: Card) -> bool:
    """Whether the documents that the run starts with go to the role `importer` alone."""
    first = [step for step in card.steps if BRIEF in step.inputs]
    return all(step.role == ImporterWorker.name for step in first)
