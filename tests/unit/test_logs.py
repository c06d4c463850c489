"""Logs of the library where the program that uses it has configured none."""

import json
import subprocess
import sys

import pytest
import structlog

from mindbus.logs import RepeatedErrors
from mindbus.testing.wait import until

BEGIN = "from mindbus.logs import configure_logs, logger\n"
EVENTS = "logger().debug('fine'); logger().info('connected'); logger().warning('lost', reason='no reply', tries=3)\n"
CLIENT = """
import asyncio
from mindbus import Settings, connect

async def main():
    async with connect("user.anna", settings=Settings(amqp_url="memory://silent")) as bus:
        async with bus.subscribe("#"):
            pass

asyncio.run(main())
"""


def printed_by(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_a_client_of_ones_own_prints_nothing() -> None:
    assert not printed_by(CLIENT)


def test_warnings_alone_are_shown_by_default() -> None:
    assert printed_by(BEGIN + EVENTS) == "lost reason='no reply' tries=3\n"


def test_a_program_gets_all_events_through_its_own_logging() -> None:
    assert "INFO:mindbus:connected\n" in printed_by(
        "import logging; logging.basicConfig(level='INFO')\n" + BEGIN + EVENTS
    )


def test_an_error_has_one_traceback() -> None:
    program = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    logger().exception('failed', step=1)\n"

    printed = printed_by(BEGIN + program)

    assert printed.startswith("failed step=1\nTraceback")
    assert printed.count("Traceback") == 1


@pytest.mark.parametrize("configure", ["configure_logs", "configure_logs_later"])
def test_logs_of_libraries_are_events_of_a_bounded_length(configure: str) -> None:
    program = f"""
import logging
from mcp.server.mcpserver.utilities.logging import configure_logging
from mindbus.logs import configure_logs, configure_logs_later

{configure}("INFO", "json")
configure_logging()
library = logging.getLogger("a2a.server")
library.info("asked")
library.warning("no method %s", "0" * 1_000_000)
library.log(35, "an odd %s", "level")
library.error("no number %d", "x")
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr

    long, odd, *mistake = printed.splitlines()
    assert json.loads(long)["event"] == f"no method {'0' * 1990}…"
    assert json.loads(odd).items() >= {"event": "an odd level", "level": "warning", "library": "a2a.server"}.items()
    assert "TypeError: %d format: a real number is required, not str" in mistake


def test_workers_and_commands_keep_their_logs() -> None:
    printed = printed_by(BEGIN + "configure_logs('INFO', 'console')\n" + EVENTS)

    assert "connected" in printed
    assert "lost" in printed


async def test_of_errors_that_are_equal_the_first_is_logged_then_their_number() -> None:
    with structlog.testing.capture_logs() as said:
        errors = RepeatedErrors("dead-lettered", within_s=0.05)
        for number in range(3000):
            errors.log({"id": f"msg_{number}"}, reason="malformed")
        errors.log({"id": "msg_other"}, reason="expired")
        await until(lambda: len(said) == 3)
        errors.log({"id": "msg_later"}, reason="malformed")

    assert [(line.get("id"), line["reason"], line.get("repeated")) for line in said] == [
        ("msg_0", "malformed", None),
        ("msg_other", "expired", None),
        (None, "malformed", 2999),
        ("msg_later", "malformed", None),
    ]


def test_a_full_disk_ends_nobody_who_logs() -> None:
    log = "import sys; sys.stderr = open('/dev/full', 'w')\n"
    configure = "configure_logs('INFO', 'console')\n"
    alive = "print('lives', flush=True)\nimport os\nos._exit(0)"
    assert printed_by(BEGIN + log + configure + EVENTS + alive) == "lives\n"
