"""A whole fleet with its web app, and a browser."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from benchmarks.servers.browser import ARGUMENTS
from mindbus.testing.wait import PATIENCE
from tests.browser.pages import chromium
from tests.command_line import Shell

BRIEF = """# Каток, который греет бассейн

Линдвик — город на 23 000 жителей. С октября 2023 года труба под улицей соединяет каток с бассейном.
Работа стоила 1,46 миллиона евро; за первый год бассейн купил на 71 процент меньше газа.

> «Мы тридцать лет грели небо», — говорит начальница катка Анна Берг.
"""


@dataclass(frozen=True)
class App:
    """The app at its address, with the API behind it."""

    url: str
    amqp_url: str
    shell: Shell

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """What the API answers."""
        answer = httpx.request(method, f"{self.url}{path}", timeout=60, verify=False, trust_env=False, **options)
        assert answer.is_success, answer.text
        return answer.json()

    def say(self, user: str, message: str) -> Any:
        """As somebody else would."""
        return self.ask("POST", f"/api/dialogues/{user}/messages", json={"message": message})


def app_of(shell: Shell) -> App:
    """The app of a fleet that is up."""
    state = shell.json("status", "--show-secrets")
    return App(state["gateway_url"], state["amqp_url"], shell)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is here needs a browser."""
    for item in items:
        if "browser" in Path(item.path).parts:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.rabbit)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[App]:
    """Every worker there is, on the shared RabbitMQ, as `mindbus up -d` starts them."""
    chromium()
    settings = fleet_settings | {"MINDBUS_GATEWAY_PORT": "0", "MINDBUS_RECALL_TIMEOUT_S": "20"}
    shell = Shell(tmp_path_factory.mktemp("app") / "data", settings=settings)
    try:
        shell.ok("up", "-d", spawned=True)
        yield app_of(shell)
    finally:
        shell.ok("down", spawned=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests; each has a profile of its own."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=15_000 * PATIENCE)  # milliseconds; the machine may be busy with other tests
        found = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield found
        found.close()


@pytest.fixture(scope="module")
def run_id(app: App) -> str:
    """A run that goes on, or has ended."""
    started = app.ask("POST", "/api/runs", json={"card_name": "article", "briefs": [BRIEF]})
    return str(started["run_id"])
