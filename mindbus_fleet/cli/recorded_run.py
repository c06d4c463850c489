"""Display of the recorded run that ships with MindBus."""

from bus_schema.runs import Run
from config.recorded_runs import RecordedRun, RecordingLabel, shipped_recording
from mindbus.cli.console import say, say_data, show, show_json
from mindbus.cli.language import translate
from mindbus.cli.lineage_view import lineage_tree
from mindbus_fleet.cli.model_calls import show_full
from mindbus_fleet.cli.process_run import misbehaviour_lines, step_table


def show_recorded(*, as_json: bool, with_calls: bool) -> None:
    """The run, its article, what that was made from; with `with_calls` every call of the model as well."""
    label, recorded = shipped_recording()
    if as_json:
        about, lineage = label.model_dump(mode="json"), recorded.lineage
        show_json({"about": about, "run": recorded.run, "article": _article(recorded), "lineage": lineage})
        return
    _show_label(label, recorded.run)
    show(step_table(recorded.run))
    for line in misbehaviour_lines(recorded.run):
        say(line)
    say_data(f"\n{_article(recorded)}\n")
    if recorded.run.result is not None:
        say("Made from:")
        show(lineage_tree(recorded.lineage, recorded.run.result.artifact_id, "up"))
    if with_calls:
        show_full(recorded.calls)
    else:
        say(translate("Every prompt and answer: mindbus demo --recorded --full"))


def _show_label(label: RecordingLabel, run: Run) -> None:
    spent = run.spent
    say(f"{label.model} · {label.licence} · {run.started_at.date().isoformat()}")
    say(translate("A recording, word for word: nothing in it was edited, nothing runs."))
    say(label.settings)
    tokens = f"{spent.prompt_tokens} + {spent.completion_tokens}"
    say(f"{spent.model_calls} calls, {tokens} tokens, {spent.took_ms / 1000:.0f} s\n")


def _article(recorded: RecordedRun) -> str:
    manifest = recorded.manifest(recorded.run.result.artifact_id) if recorded.run.result else None
    return recorded.content(manifest).decode() if manifest else ""
