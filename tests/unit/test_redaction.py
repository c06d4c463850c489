"""Redaction: secrets of settings, passwords in URLs, signed queries; in logs, tracebacks and error texts."""

import subprocess
import sys

import pytest

from agents.models.errors import ModelRefused
from config.settings import FleetSettings
from mindbus.redaction import without_secrets
from mindbus.settings import Settings

KEY = "sk-canary-5Rk2w8Zq"
URL = "postgresql+asyncpg://mindbus:canary%2F9x7Pq2@db.example/mindbus"
PROGRAM = f"""
import asyncio, logging, sys
from config.settings import FleetSettings
from mindbus.logs import configure_logs, logger
from mindbus.redaction import redact_tracebacks

configure_logs("DEBUG", sys.argv[1])
redact_tracebacks()
settings = FleetSettings(llm_api_key={KEY!r}, database_url={URL!r})
logger().info("model asked", key=settings.llm_api_key, database=settings.database_url)
logging.getLogger("uvicorn.error").error("no way to %s", settings.database_url)

async def fail():
    raise RuntimeError(f"refused: {{settings.llm_api_key}}")

async def main():
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    del task
    try:
        await fail()
    except RuntimeError:
        logger().exception("failed")

asyncio.run(main())
raise ValueError(settings)
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connect to amqp://mindbus:pa55@host:5672/v", "connect to amqp://mindbus:***@host:5672/v"),
        ("redis://:pa55@host/0 is away", "redis://:***@host/0 is away"),
        ("https://host:8040/users/@anna and a: b@c", "https://host:8040/users/@anna and a: b@c"),
        ("GET http://h/login?next=%2F&ticket=12.ab.cd HTTP/1.1", "GET http://h/login?next=%2F&ticket=*** HTTP/1.1"),
        ("Authorization: Bearer abcdefgh.ijkl==", "Authorization: Bearer ***"),
        ("as `Authorization: Bearer TOKEN`", "as `Authorization: Bearer TOKEN`"),
        ("put http://s3/b/k?X-Amz-Date=1&X-Amz-Signature=ab failed", "put http://s3/b/k?… failed"),
    ],
)
def test_what_is_secret_by_its_form_is_masked(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_a_long_row_of_question_marks_takes_no_minutes() -> None:
    text = "?" * 200_000

    assert without_secrets(text) == text


def test_values_of_secret_settings_are_masked_wherever_they_stand() -> None:
    settings = FleetSettings(llm_api_key=KEY, redis_url="redis://:canary%2F4w6Vn8@host", s3_secret_key="password")

    assert set(settings.secrets()) >= {KEY, "canary%2F4w6Vn8", "canary/4w6Vn8"}
    assert without_secrets(f"the key {KEY} of canary/4w6Vn8 is no password") == "the key *** of *** is no password"
    assert str(ModelRefused(f"Incorrect API key provided: {KEY}")).endswith("(Incorrect API key provided: ***)")


def test_settings_show_no_secret_not_even_where_they_are_wrong() -> None:
    settings = FleetSettings(llm_api_key=KEY, database_url=URL)

    assert KEY not in repr(settings)
    assert "postgresql+asyncpg://mindbus:***@db.example/mindbus" in repr(settings)
    with pytest.raises(ValueError, match="gateway_token") as wrong:
        FleetSettings(gateway_token="canary-short")
    assert "canary-short" not in str(wrong.value)


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_no_log_and_no_traceback_shows_a_secret(log_format: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, log_format], capture_output=True, text=True, check=False)

    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert said.count("refused: ***") >= 2
    assert "no way to postgresql+asyncpg://mindbus:***@db.example/mindbus" in said
    assert "ValueError" in said
    assert "canary" not in said


def test_every_setting_that_holds_a_secret_is_marked() -> None:
    named = {name for name in FleetSettings.model_fields if name.endswith(("_key", "_token", "_secret", "_password"))}

    assert {name for name in named if FleetSettings.model_fields[name].repr} == set()
    assert named >= {"llm_api_key", "gateway_token", "s3_secret_key"} & set(FleetSettings.model_fields)
    assert issubclass(FleetSettings, Settings)


SCHEMES = {"amqp_url": "amqp", "management_url": "http"}
SECRET_SETTINGS = [
    (name, "sk-canary-5Rk2w8Zq" if not field.repr else f"{SCHEMES.get(name, 'http')}://user:canary-7Qz3x@host/path")
    for name, field in FleetSettings.model_fields.items()
    if not field.repr or name.endswith("_url")
]


@pytest.mark.parametrize(("name", "value"), SECRET_SETTINGS)
def test_every_setting_that_is_or_holds_a_secret_is_masked(name: str, value: str) -> None:
    settings = FleetSettings.model_validate({name: value})

    assert "canary" not in f"{settings!r} {settings}"
    assert "canary" not in without_secrets(f"{name}={value}, which is {value.rpartition('@')[0] or value}")
