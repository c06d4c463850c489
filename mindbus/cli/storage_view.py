"""Reports of storage maintenance as tables."""

from typing import Any

from rich.filesize import decimal

from bus_schema.storage_maintenance import Amount, GarbageReport, StorageStats
from mindbus.cli.console import say, show_table

_KINDS = {
    "expired": ("artifacts whose retention is over", "cannot be read any more"),
    "unused": ("contents that no artifact has", "to the orphans"),
    "unknown": ("objects unknown to the database, or outdated", "to the orphans"),
    "unregistered": ("uploads that never became an artifact", "to the orphans"),
    "deleted": ("orphans older than seven days", "deleted"),
    "claims": ("data of large messages, older than thirty days", "deleted"),
}


def show_garbage(report: GarbageReport) -> None:
    """What a collection did, or would do, with examples."""
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


def show_audit(found: dict[str, Any]) -> None:
    """What an audit found wrong, or that nothing is."""
    troubles = [
        (kind, x.artifact_id, x.key, x.problem) for kind in ("missing", "damaged", "restored") for x in found[kind]
    ]
    if troubles:
        show_table(("", "artifact", "key", "problem"), troubles)
    wrong = len(found["missing"]) + len(found["damaged"])
    say(
        f"{found['checked']} artifacts checked, {decimal(found['hashed_bytes'])} read: "
        f"{len(found['missing'])} missing, {len(found['damaged'])} damaged, {len(found['restored'])} restored"
    )
    if found["copies_written"]:
        say(f"{found['copies_written']} copies of manifests were missing and have been written")
    if wrong:
        say("restore their bytes from a backup of the store, then audit again; no manifest has been removed")


def show_rebuild(found: dict[str, Any]) -> None:
    """What a rebuild brought back."""
    if found["lost"]:
        show_table(("lost", "reason"), ((lost.key, lost.reason) for lost in found["lost"]))
    done = "would be restored" if found["dry_run"] else "restored"
    say(
        f"{found['present']} manifests were there, {found['restored']} {done} from their copies, "
        f"{found['recovered']} from what objects say of themselves, {len(found['lost'])} lost"
    )


def show_stats(found: StorageStats) -> None:
    """How much there is."""
    rows = [
        ("artifacts", found.artifacts),
        ("expired", found.expired),
        *((f"contents {state}", amount) for state, amount in found.by_state.items()),
        ("staging", found.staging),
        ("orphans", found.orphans),
    ]
    show_table(("", "how many", "size"), ((name, *_row(amount)) for name, amount in rows))
    for title, amounts in (("type", found.by_type), ("owner", found.by_owner)):
        if amounts:
            show_table((title, "artifacts", "size"), ((name, *_row(amount)) for name, amount in amounts.items()))
    waiting = {
        "uploads to be removed": found.spent_uploads,
        "removals under way": found.removals,
        "events to be told": found.notices,
        "traces that run": found.open_traces,
        "oldest upload in staging": found.oldest_staged or "none",
        "last collected": found.collected_at or "never",
        "last audited": found.audited_at or "never",
    }
    show_table(("", ""), waiting.items())


def _row(amount: Amount) -> tuple[int, str]:
    return amount.count, decimal(amount.size_bytes)
