"""What a process of the storage benchmark is told, line by line, with what it answers."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel

Store = Literal["files", "s3"]
Database = Literal["sqlite", "postgresql"]
DATABASES: tuple[Database, ...] = ("sqlite", "postgresql")
STORES: tuple[Store, ...] = ("files", "s3")


class Large(BaseModel):
    """Bring one large file there or back; `name` is what to call it there."""

    do: Literal["put", "get"]
    path: Path
    name: str


class Small(BaseModel):
    """Put many small artifacts, some agents side by side, each one after the other, or as many at once.

    `a_run_each` is for MLflow.
    """

    do: Literal["small"] = "small"
    artifacts: int
    agents: int
    at_once: int = 1
    a_run_each: bool = False
    content_bytes: int = 2048


class Took(BaseModel):
    """How long a large file took, what is known of it afterwards."""

    seconds: float
    sha256: str


class TookEach(BaseModel):
    """How long all took together; how long each `put` took, and its registration within it.

    `cpu_s` is the CPU time of the agents and of storage meanwhile.
    """

    seconds: float
    artifacts: int = 0
    cpu_s: dict[str, float] = {}
    put_ms: list[float]
    register_ms: list[float]
