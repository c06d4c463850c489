"""The command `demo`: a private fleet that turns a brief into an article, then stops."""

import os
import shlex
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bus_schema.runs import Run, RunStatus
from bus_schema.storage import GetLineage, Lineage
from config.settings import FleetSettings
from mindbus.cli.console import note, say, say_data, show, show_json
from mindbus.cli.errors import INTERRUPTED, UsageError, read_settings
from mindbus.cli.language import language, translate
from mindbus.cli.lineage_view import lineage_tree
from mindbus.cli.options import LOCAL_USER, Json
from mindbus.cli.session import on_the_bus, run
from mindbus.registry import WorkerRegistry, installed_workers
from mindbus.sdk.artifacts import open_artifacts
from mindbus.tasks import run_until_stopped
from mindbus_fleet.cli.background import require_free, say_stopping
from mindbus_fleet.cli.fleet import groups_of, login_of
from mindbus_fleet.cli.process_run import Progress, RunRequest, follow, start, step_table
from mindbus_fleet.cli.recorded_run import show_recorded
from mindbus_fleet.supervision.run_folder import RunFolder
from mindbus_fleet.supervision.supervisor import Supervisor, fleet_up

app = typer.Typer()

_CARD = "article"
# Where a fleet of yours keeps what it has: a demo must neither read nor change it.
_ELSEWHERE = (
    *("tenant", "secrets_dir", "amqp_url", "management_url", "queue_nodes", "partitions", "partition"),
    *("artifacts_url", "artifacts_access", "s3_endpoint_url", "s3_public_endpoint_url"),
    *("database_url", "storage_database_url", "glm_database_url", "pgvector", "qdrant_url", "qdrant_api_key"),
    *("vectors_dir", "redis_url", "cache_redis_url", "metrics_port", "gateway_public_url"),
)
_NEXT = (
    ("make demo BRIEF=my-brief.md", "the same with a text of your own"),
    ("make up", "a fleet that stays; `mindbus open` shows the web app, `mindbus down` stops it"),
    ("mindbus chat --user anna", "talk to the assistant of that fleet"),
    ("docs/tutorial.md", "a team of your own in half an hour"),
)


@dataclass(frozen=True)
class DemoOutcome:
    """Result of the demo."""

    run: Run
    article: Path | None
    lineage: Lineage | None


@app.command()
def demo(
    brief: Annotated[
        Path | None, typer.Option("--brief", exists=True, dir_okay=False, help="Your own, Markdown or text.")
    ] = None,
    recorded: Annotated[bool, typer.Option("--recorded", help="Show a run that a real model has written.")] = False,
    full: Annotated[bool, typer.Option("--full", help="With --recorded: every call of the model as well.")] = False,
    as_json: Json = False,
) -> None:
    """Start a broker and the team in a folder of their own, turn a brief into an article, stop everything.

    Without a model of yours the team is offline: it only selects and arranges sentences of the brief. What a model
    makes of the same brief is shown by --recorded, which starts nothing.

    [bold]Examples[/bold]

    mindbus demo

    mindbus demo --brief my-brief.md

    mindbus demo --recorded
    """
    if recorded:
        if brief is not None:
            raise UsageError("--recorded shows a run that has ended: leave out --brief")
        show_recorded(as_json=as_json, with_calls=full)
        return
    if full:
        raise UsageError("--full shows the calls of the recorded run: give --recorded as well")
    settings = demo_settings(read_settings(FleetSettings))
    if brief is None:
        with resources.as_file(resources.files("config") / "briefs" / "en.md") as shipped:
            order = RunRequest.read(_CARD, [shipped], {})
    else:
        order = RunRequest.read(_CARD, [brief], {})
    require_free(settings)
    outcome = run(run_until_stopped(_perform(order, settings, is_silent=as_json), say_stopping))
    if outcome is None:
        note("The demo is over; nothing of it is still running.")
        raise typer.Exit(INTERRUPTED)
    _show(outcome, as_json=as_json)
    if outcome.run.status is not RunStatus.COMPLETED:
        raise typer.Exit(1)
    if not as_json:
        _say_next()
        if _is_watched() and typer.confirm(translate("Leave a fleet running, with the web app open on this run?")):
            _leave_running(settings, outcome.run.run_id)


def _is_watched() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _say_next() -> None:
    say("")
    say("What next:")
    for command, meaning in _NEXT:
        say(f"  {command:<34} {translate(meaning)}")


def _leave_running(settings: FleetSettings, run_id: str) -> NoReturn:
    """Become a shell that starts a fleet on what the demo has made, in the background, and opens the run.

    Another process could not: this one holds the lock of the data folder until its end.
    """
    mindbus = f"{shlex.quote(sys.executable)} -m mindbus.cli.main --lang {language()}"
    say(f"Stop it with: MINDBUS_DATA_DIR={settings.data_dir.absolute()} mindbus down")
    sys.stdout.flush()
    commands = f"{mindbus} up -d && {mindbus} open /runs/{run_id}"
    os.execve("/bin/sh", ["sh", "-c", commands], settings.environment())


def demo_settings(settings: FleetSettings) -> FleetSettings:
    """Those of a demo: a folder, a broker and databases of its own, whatever is set; only the models are as set."""
    fields = FleetSettings.model_fields
    return settings.model_copy(
        update={"data_dir": settings.data_dir / "demo"} | {name: fields[name].default for name in _ELSEWHERE}
    )


def _is_offline(run: Run) -> bool:
    models = {step.context.model_name for step in run.steps if step.context is not None}
    return all((model or "").startswith("offline") for model in models)


async def _perform(order: RunRequest, settings: FleetSettings, *, is_silent: bool) -> DemoOutcome:
    # Nobody opens a page of what ends by itself.
    fleet = WorkerRegistry(installed_workers().without("gateway").own)
    groups, _ = groups_of(fleet, None, isolate=False)
    supervisor = Supervisor(settings, groups, {}, RunFolder(settings).logs)
    if not is_silent:
        note(f"Starting RabbitMQ and {len(fleet.entries)} workers …")
    async with fleet_up(supervisor) as state:
        if not is_silent:
            note(f"RabbitMQ UI {state.management_url}{login_of(state)}")
        async with on_the_bus(LOCAL_USER, settings) as bus:
            async with open_artifacts(bus, settings) as artifacts:
                await start(order, bus, artifacts)
                with Progress(is_silent=is_silent) as progress:
                    ended = await follow(order.run_id, bus, progress)
                if ended.result is None:
                    return DemoOutcome(ended, None, None)
                article = settings.data_dir / "article.md"
                await artifacts.save(ended.result.artifact_id, article, trace=ended.run_id)
            query = GetLineage(artifact_id=ended.result.artifact_id)
            return DemoOutcome(ended, article, await bus.request(query, trace=ended.run_id))


def _show(outcome: DemoOutcome, *, as_json: bool) -> None:
    if as_json:
        show_json({"run": outcome.run, "article": str(outcome.article), "lineage": outcome.lineage})
        return
    show(step_table(outcome.run))
    if outcome.run.reason:
        say_data(f"{translate('reason:')} {outcome.run.reason}")
    if outcome.run.result is not None and outcome.lineage is not None:
        say(f"\nThe article: {outcome.article}")
        if _is_offline(outcome.run):
            say("No language model is set: the team has only chosen and arranged sentences of the brief.")
            say("What a real model makes of it: mindbus demo --recorded")
        say("\nMade from:")
        show(lineage_tree(outcome.lineage, outcome.run.result.artifact_id, "up"))
