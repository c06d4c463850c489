"""The commands `artifacts failed` and `artifacts retry`: what could not be registered, on this machine's disk."""

from dataclasses import asdict
from typing import Annotated

import typer

from mindbus.cli.console import local_time, say, show_result, show_table
from mindbus.cli.errors import CommandError, UsageError, read_settings
from mindbus.cli.options import Json
from mindbus.sdk.failed_artifacts import FailedArtifact, failed_artifacts, put_back


def failed(as_json: Json = False) -> None:
    """List artifacts of this machine that storage has refused, with the reason; their bytes are kept.

    [bold]Example[/bold]

    mindbus artifacts failed
    """
    found = _found()
    show_result([_plain(each) for each in found], lambda _all: _show(found), as_json=as_json)


def retry(
    artifact_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Only these.")] = None,
    is_all: Annotated[bool, typer.Option("--all", help="All that `mindbus artifacts failed` lists.")] = False,
    as_json: Json = False,
) -> None:
    """Register artifacts that storage has refused again, once the cause is fixed.

    Their author does so when it next hears from storage: within seconds if it runs.

    [bold]Examples[/bold]

    mindbus artifacts retry art_0192…

    mindbus artifacts retry --all
    """
    if bool(artifact_ids) == is_all:
        raise UsageError("name the artifacts, or say --all; `mindbus artifacts failed` lists them")
    by_id = {each.artifact_id: each for each in _found()}
    if unknown := [each for each in artifact_ids or () if each not in by_id]:
        raise UsageError(f"{', '.join(unknown)} did not fail here; `mindbus artifacts failed` lists those that did")
    wanted = [by_id[each] for each in artifact_ids or by_id]
    outcomes = {each.artifact_id: put_back(each) for each in wanted}
    show_result(outcomes, lambda _outcomes: _show_put_back(wanted, outcomes), as_json=as_json)
    if damaged := [artifact_id for artifact_id, is_back in outcomes.items() if not is_back]:
        raise CommandError(f"the entries of {', '.join(damaged)} cannot be read: put the bytes again as new artifacts")


def _show_put_back(wanted: list[FailedArtifact], outcomes: dict[str, bool]) -> None:
    for each in wanted:
        if outcomes[each.artifact_id]:
            say(f"{each.artifact_id} waits in the buffer of {each.owner} again")


def _found() -> list[FailedArtifact]:
    return failed_artifacts(read_settings().data_dir / "buffer")


def _plain(each: FailedArtifact) -> dict[str, object]:
    return asdict(each) | {"set_aside_at": each.set_aside_at.isoformat(), "folder": str(each.folder)}


def _show(found: list[FailedArtifact]) -> None:
    if not found:
        say("No artifact has failed on this machine.")
        return
    show_table(
        ("artifact", "type", "of", "bytes", "since", "reason"),
        ((f.artifact_id, f.artifact_type, f.owner, f.size_bytes, local_time(f.set_aside_at), f.reason) for f in found),
    )
    say("Registered again with: mindbus artifacts retry ID")
