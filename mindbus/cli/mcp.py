"""The command `mcp`: memory, artifacts, runs and tasks for an MCP client, over standard input and output."""

from contextlib import nullcontext
from importlib.util import find_spec

import typer

from mindbus.cli.errors import UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, AsNamed
from mindbus.cli.session import on_the_bus, run_until_interrupted
from mindbus.sdk.artifacts import open_artifacts

app = typer.Typer()


@app.command()
def mcp(acting: AsNamed = LOCAL_USER) -> None:
    """Serve MCP over standard input and output, to Claude Desktop, an editor or any other client, which starts this.

    Over HTTP the gateway serves the same at /mcp, with a token of `mindbus users add NAME --role user`.

    [bold]Examples[/bold]

    mindbus mcp

    mindbus mcp --as anna
    """
    if find_spec("mcp") is None:
        raise UsageError("this needs MCP's library: pip install 'mindbus[mcp]'")
    run_until_interrupted(_serve(acting))


async def _serve(identity: str) -> None:
    # Imported here: the library is an extra, and takes a second.
    from mindbus.integrations.mcp.participant import Participant, of_one
    from mindbus.integrations.mcp.server import MindBusServer, cards_over

    settings = read_settings()
    answer_s = settings.llm_timeout_s + settings.subagent_timeout_s + settings.request_timeout_s
    async with (
        on_the_bus(identity, settings, goes_on=None, speaks=True) as bus,
        open_artifacts(bus, settings) as artifacts,
    ):
        participant = Participant(bus, lambda: nullcontext(artifacts), answer_s)
        await MindBusServer(of_one(participant), cards_over(bus)).run_stdio_async()
