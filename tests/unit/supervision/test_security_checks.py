"""What `doctor --security` says is open, and to whom."""

from pathlib import Path
from typing import Any

import pytest

from config.settings import FleetSettings
from mindbus.accounts import AccessRole, accounts_of
from mindbus.files.disk import keep_private
from mindbus_fleet.cli.security_checks import security


def found(data_dir: Path, **settings: Any) -> dict[str, tuple[str, str]]:
    checks = security(FleetSettings(data_dir=data_dir, **settings))
    return {each.check: (each.status, each.detail) for each in checks}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keep_private(tmp_path)
    return tmp_path


def test_as_up_leaves_it_nothing_is_open(folder: Path) -> None:
    accounts_of(FleetSettings(data_dir=folder)).add("olga", AccessRole.OPERATOR)
    checks = found(folder)

    assert {status for status, _ in checks.values()} == {"ok"}
    assert checks["Operators"][1] == "local, olga; accounts: 1"


def test_a_folder_that_others_may_enter_is_named_with_what_they_read(folder: Path) -> None:
    (folder / "storage.db").touch(mode=0o600)
    folder.chmod(0o755)
    assert found(folder)["Data folder"][0] == "warning"
    (folder / "glm.db").touch()
    (folder / "glm.db").chmod(0o644)

    status, detail = found(folder)["Data folder"]

    assert (status, "open are 1 files: glm.db" in detail, "chmod 700" in detail) == ("failed", True, True)


@pytest.mark.parametrize(
    ("settings", "check", "status", "word"),
    [
        ({"gateway_access": "open"}, "Web app and HTTP", "warning", "every account of this machine"),
        ({"gateway_host": "0.0.0.0"}, "Web app and HTTP", "warning", "without TLS"),
        (
            {"gateway_host": "0.0.0.0", "gateway_trusted_proxies": "10.0.0.1"},
            "Web app and HTTP",
            "ok",
            "behind a proxy",
        ),
        ({"gateway_host": "0.0.0.0", "gateway_tls_cert": "c.pem"}, "Web app and HTTP", "ok", "over TLS"),
        ({"amqp_url": "amqp://a:bcdefg@rabbit.example.org/"}, "Connections", "warning", "use amqps"),
        ({"amqp_url": "amqp://a:bcdefg@10.1.2.3/"}, "Connections", "ok", "nothing"),
        ({"amqp_url": "amqps://a:bcdefg@rabbit.example.org/"}, "Connections", "ok", "nothing"),
        ({"llm_base_url": "http://models.example.org/v1"}, "Connections", "warning", "MINDBUS_LLM_BASE_URL"),
        ({"amqp_url": "amqp://team:s3cret@rabbit/"}, "Users of RabbitMQ", "warning", "any can pose as any"),
        ({"amqp_url": "amqp://storage:s3cret@rabbit/"}, "Users of RabbitMQ", "ok", "this process is storage"),
        ({"amqp_url": "amqp://guest:guest@rabbit/"}, "Password of RabbitMQ", "failed", "known to everybody"),
        ({"oidc_issuer": "https://id.example", "oidc_client_id": "m"}, "OpenID provider", "ok", "id.example"),
    ],
)
def test_what_the_settings_open_is_said(
    folder: Path, settings: dict[str, Any], check: str, status: str, word: str
) -> None:
    told = found(folder, **settings)[check]

    assert told[0] == status
    assert word in told[1]
    assert "s3cret" not in told[1]
