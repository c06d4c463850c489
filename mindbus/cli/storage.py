"""The commands `storage`: garbage collection, audit, rebuild, statistics, and their reports as text."""

from typing import Annotated, Any

import typer
from rich.filesize import decimal

from bus_schema.replies import Code
from bus_schema.storage_maintenance import (
    Amount,
    Audit,
    AuditPage,
    CollectGarbage,
    GarbageReport,
    GetStorageStats,
    Rebuild,
    RebuildPage,
    StorageStats,
)
from mindbus.cli.console import say, show_result, show_table
from mindbus.cli.errors import CommandError
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import WITHIN_S, all_pages, answer_to, run
from mindbus.errors import ReplyError

_KINDS = {
    "expired": ("artifacts whose retention is over", "cannot be read any more"),
    "unused": ("contents that no artifact has", "to the orphans"),
    "unknown": ("objects unknown to the database, or outdated", "to the orphans"),
    "unregistered": ("uploads that never became an artifact", "to the orphans"),
    "deleted": ("orphans older than seven days", "deleted"),
    "claims": ("data of large messages, older than thirty days", "deleted"),
}
_FINDINGS = ("missing", "damaged", "restored")


def show_garbage(report: GarbageReport) -> None:
    """Show the result of a collection, or of its dry run, with examples."""
    tallies = [(kind, *_KINDS[kind], getattr(report, kind)) for kind in _KINDS]
    show_table(
        ("kind", "what", "what becomes of it", "how many", "size"),
        ((kind, what, fate, tally.count, decimal(tally.size_bytes)) for kind, what, fate, tally in tallies),
        title="Nothing has been done: a dry run" if report.dry_run else "Garbage collected",
    )
    examples = [(kind, e.key, e.reason, decimal(e.size_bytes)) for kind, *_, tally in tallies for e in tally.examples]
    if examples:
        show_table(("kind", "key", "reason", "size"), examples, title="For example")
    say(f"{report.artifacts} artifacts, {report.objects} objects looked at; {report.temporary} leftovers swept")
    if report.resumed:
        say(f"{report.resumed} removals of an earlier run, which was interrupted, have been ended")
    if report.pending:
        say(f"{report.pending} could not be moved just now: the next run tries again, the log says why")
    if report.refusal:
        say(f"the real run would be refused: {report.refusal}")
    if not report.is_complete:
        say("there is more than one run takes: run it again")


def show_audit(result: dict[str, Any]) -> None:
    problems = [(kind, x.artifact_id, x.key, x.problem) for kind in _FINDINGS for x in result[kind]]
    if problems:
        show_table(("", "artifact", "key", "problem"), problems)
    problem_count = len(result["missing"]) + len(result["damaged"])
    say(
        f"{result['checked']} artifacts checked, {decimal(result['hashed_bytes'])} read: "
        f"{len(result['missing'])} missing, {len(result['damaged'])} damaged, {len(result['restored'])} restored"
    )
    if result["copies_written"]:
        say(f"{result['copies_written']} copies of manifests were missing and have been written")
    if problem_count:
        say("restore their bytes from a backup of the store, then audit again; no manifest has been removed")


def show_rebuild(result: dict[str, Any]) -> None:
    if result["lost"]:
        show_table(("lost", "reason"), ((lost.key, lost.reason) for lost in result["lost"]))
    done = "would be restored" if result["dry_run"] else "restored"
    say(
        f"{result['present']} manifests were there, {result['restored']} {done} from their copies, "
        f"{result['recovered']} from what objects say of themselves, {len(result['lost'])} lost"
    )


def show_stats(stats: StorageStats) -> None:
    rows = [
        ("artifacts", stats.artifacts),
        ("expired", stats.expired),
        *((f"contents {state}", amount) for state, amount in stats.by_state.items()),
        ("staging", stats.staging),
        ("orphans", stats.orphans),
    ]
    show_table(("", "how many", "size"), ((name, *_row(amount)) for name, amount in rows))
    for title, amounts in (("type", stats.by_type), ("owner", stats.by_owner)):
        if amounts:
            show_table((title, "artifacts", "size"), ((name, *_row(amount)) for name, amount in amounts.items()))
    waiting = {
        "uploads to be removed": stats.spent_uploads,
        "removals under way": stats.removals,
        "events to be told": stats.notices,
        "traces that run": stats.open_traces,
        "oldest upload in staging": stats.oldest_staged or "none",
        "last collected": stats.collected_at or "never",
        "last audited": stats.audited_at or "never",
        "events in the timeline": stats.events,
        "oldest event": stats.oldest_event or "none",
    }
    show_table(("", ""), waiting.items())
    kept = ((name, "for ever" if days is None else f"{days:g} days") for name, days in stats.kept_days.items())
    show_table(("", "kept"), kept)


def _row(amount: Amount) -> tuple[int, str]:
    return amount.count, decimal(amount.size_bytes)


app = typer.Typer(no_args_is_help=True, help="Maintain the store: garbage, audit, rebuild, numbers.")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@app.command()
def gc(
    dry_run: DryRun = False,
    max_objects: Annotated[
        int | None,
        typer.Option("--max-objects", min=0, help="Let this run remove this many, whatever the settings say."),
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Collect garbage: what nothing needs is kept with the orphans for seven days, then deleted.

    [bold]Examples[/bold]

    mindbus storage gc --dry-run

    mindbus storage gc

    mindbus storage gc --max-objects 50000
    """
    try:
        report = answer_to(
            lambda: CollectGarbage(dry_run=dry_run, max_objects=max_objects), acting, longer_by_s=WITHIN_S
        )
    except ReplyError as error:
        if error.code is not Code.CONFLICT:
            raise
        numbers = ", ".join(f"{name} {value}" for name, value in error.details.items())
        raise CommandError(f"{translate(error.message)} {translate('Here:')} {numbers}", error.code) from error
    show_result(report, show_garbage, as_json=as_json)


@app.command()
def audit(
    rehash: Annotated[
        bool, typer.Option("--rehash/--no-rehash", help="Read all bytes again, or only compare sizes.")
    ] = True,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Check that every artifact has its bytes; exit code 1 if any are missing or damaged.

    [bold]Examples[/bold]

    mindbus storage audit

    mindbus storage audit --no-rehash --json
    """
    pages = run(all_pages("audit", lambda cursor: Audit(cursor=cursor, rehash=rehash), _audit_totals, acting))
    result = {
        "checked": sum(page.checked for page in pages),
        "hashed_bytes": sum(page.hashed_bytes for page in pages),
        **{kind: [item for page in pages for item in getattr(page, kind)] for kind in _FINDINGS},
        "copies_written": sum(page.copies_written for page in pages),
    }
    show_result(result, show_audit, as_json=as_json)
    if result["missing"] or result["damaged"]:
        raise typer.Exit(1)


@app.command()
def rebuild(
    dry_run: DryRun = False,
    deep: Annotated[bool, typer.Option("--deep", help="Read the bytes of what is restored again.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Bring back the manifests that the store remembers but the database does not; exit code 1 if any are lost.

    [bold]Examples[/bold]

    mindbus storage rebuild --dry-run

    mindbus storage rebuild --deep
    """
    pages = run(
        all_pages("rebuild", lambda cursor: Rebuild(cursor=cursor, dry_run=dry_run, deep=deep), _rebuilt, acting)
    )
    result = {
        "dry_run": dry_run,
        **{kind: sum(getattr(page, kind) for page in pages) for kind in ("present", "restored", "recovered")},
        # A manifest that others depend on is told by the page of each of them.
        "lost": list({lost.key: lost for page in pages for lost in page.lost}.values()),
    }
    show_result(result, show_rebuild, as_json=as_json)
    if result["lost"]:
        raise typer.Exit(1)


@app.command()
def stats(acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Count what there is: by state, type and owner, with staging and orphans; and say how long it is kept.

    [bold]Example[/bold]

    mindbus stats
    """
    show_result(answer_to(GetStorageStats, acting, longer_by_s=WITHIN_S), show_stats, as_json=as_json)


def _audit_totals(pages: list[AuditPage]) -> tuple[int, int]:
    return sum(page.checked for page in pages), pages[-1].total


def _rebuilt(pages: list[RebuildPage]) -> tuple[int, int]:
    return pages[-1].done, pages[-1].total
