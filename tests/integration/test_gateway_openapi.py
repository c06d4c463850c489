"""The gateway keeps what its OpenAPI description says, whatever it is sent: requests made up by Schemathesis."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok

from tests.brokers import Broker
from tests.gateways import gateway_settings, serving
from tests.installed import FLEET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # The services beside it, in the loop's thread, may draw at random meanwhile.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance, status_code_conformance]
WORKERS = (
    *("storage", "history", "dialogue", "context", "context_manager", "task_manager", "orchestrator", "tracker"),
    *("swm", "glm", "lsm", "packer", "sim"),
)
EXAMPLES = 4


def endless(operation: Any) -> bool:
    """Whether it streams events until the client goes."""
    contents = [each.get("content", {}) for each in operation.definition.raw["responses"].values()]
    return any("text/event-stream" in content for content in contents)


def operations(document: dict[str, Any]) -> Iterator[Any]:
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if not endless(operation):
            yield operation


def ask_anything(operation: Any, url: str, told: list[str]) -> None:
    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        try:
            case.validate_response(case.call(base_url=url, timeout=30), checks=CHECKS)
        except BaseExceptionGroup as failures:
            # All operations are to be told of.
            told.append(f"{operation.label}: {failures}")

    ask()


async def test_no_request_meets_a_server_error_or_an_answer_that_is_not_described(
    broker: Broker, vhost_url: str, tmp_path: Path
) -> None:
    options = gateway_settings(broker, vhost_url, tmp_path, gateway_requests_per_minute=100_000)
    told: list[str] = []
    async with serving(*(FLEET[name] for name in WORKERS), settings=options) as gateway:
        document = await gateway.ok("GET", "/api/openapi.json")
        found = [*operations(document)]
        assert len(found) > 30
        for operation in found:
            await asyncio.to_thread(ask_anything, operation, str(gateway.worker.url), told)

        blank = await gateway.no("POST", "/api/tasks", json={"user": "anna", "text": "\x1c"})

    assert not told, "\n\n".join(told)
    # Found by a longer search.
    assert blank[:2] == (422, "invalid")
