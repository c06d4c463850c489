"""Every test has secrets in its settings, and what looks for them would find them."""

from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus.logs import configure_logs, logger
from tests.canaries import GUARDED, require_none, require_none_in_files
from tests.command_line import Shell

SECRET = GUARDED["MINDBUS_EMBEDDING_API_KEY"]


def test_every_test_and_every_command_has_them(tmp_path: Path) -> None:
    settings = FleetSettings()

    assert [settings.embedding_api_key, settings.oidc_client_secret] == [*GUARDED.values()]
    assert Shell(tmp_path).environment().items() >= GUARDED.items()


def test_one_that_is_shown_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    log = tmp_path / "folder" / "log"
    log.write_bytes(b"\x00 key=" + SECRET.encode())

    with pytest.raises(AssertionError, match="log"):
        require_none_in_files(tmp_path)
    with pytest.raises(AssertionError, match="a reply"):
        require_none(f"no such key: {SECRET}", "a reply")
    log.unlink()


def test_a_log_masks_one(capsys: pytest.CaptureFixture[str]) -> None:
    FleetSettings()
    configure_logs("INFO", "console")

    logger().info("refused", reason=f"Incorrect key: {SECRET}")

    said = capsys.readouterr()
    assert "Incorrect key: ***" in said.out + said.err
