"""Whether this machine is fit to run MindBus, whether what runs here is well."""

from collections import Counter

import typer
from rich.text import Text

from mindbus.cli.console import say, show_json, show_table
from mindbus.cli.environment import read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import run
from mindbus_fleet.cli.checks import examine
from mindbus_fleet.cli.finding import Finding

app = typer.Typer()

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check this machine and what runs on it; exit 1 on a failure, 0 on mere warnings.

    [bold]Example[/bold]

    mindbus doctor
    """
    findings = run(examine(read_settings()))
    counts = Counter(finding.status for finding in findings)
    if as_json:
        show_json({"ok": not counts["failed"], "checks": findings})
    else:
        show_table(("check", "status", "finding"), (_row(finding) for finding in findings))
        say(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failed']} failed")
    if counts["failed"]:
        raise typer.Exit(1)


def _row(finding: Finding) -> tuple[object, ...]:
    return finding.check, Text(finding.status, style=_STYLES[finding.status]), finding.detail
