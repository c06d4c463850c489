"""Packages of other people that bring a worker along, made up for a test."""

import textwrap
from pathlib import Path

ECHO = """
    import os

    from pydantic import BaseModel

    import mindbus


    class Heard(BaseModel):
        text: str
        pid: int


    class Say(mindbus.Command[Heard], domain="echo", action="say"):
        text: str
        times: int = 1
        tags: tuple[str, ...] = ()


    class Stumble(mindbus.Command[Heard], domain="echo", action="stumble"):
        unless: str


    class EchoWorker(mindbus.Worker):
        name = "echo"

        def __init__(self, context: mindbus.WorkerContext) -> None:
            self.context = context

        @mindbus.on_command
        async def stumble(self, command: Stumble) -> Heard:
            if not os.path.exists(command.unless):
                raise mindbus.PermanentFailure("there is nothing to hold on to")
            return Heard(text="steady", pid=os.getpid())

        @mindbus.on_command
        async def say(self, command: Say) -> Heard:
            return Heard(text=command.text * command.times, pid=os.getpid())
"""


def install(folder: Path, module: str, source: str, **workers: str) -> Path:
    """A package with the entry points `workers`; put the folder that is returned on the path."""
    site = folder / module
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    points = "".join(f"{name} = {value}\n" for name, value in workers.items())
    (info / "entry_points.txt").write_text(f"[mindbus.workers]\n{points}", encoding="utf-8")
    return site
