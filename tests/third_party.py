"""Packages of other people that bring a worker along, made up for a test."""

import textwrap
from pathlib import Path

ECHO = """
    from pydantic import BaseModel

    import mindbus


    class Heard(BaseModel):
        text: str
        pid: int


    class Say(mindbus.Command[Heard], domain="echo", action="say"):
        text: str
        times: int = 1
        tags: tuple[str, ...] = ()


    class EchoWorker(mindbus.Worker):
        name = "echo"

        def __init__(self, kit: mindbus.Kit) -> None:
            self.kit = kit

        @mindbus.on_command
        async def say(self, command: Say) -> Heard:
            import os

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
