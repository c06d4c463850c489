"""Whoever waits at a terminal sees how far it has come; nobody else is bothered."""

import pytest

from mindbus.cli.artifact_download import progress_bar

MIB = 1024 * 1024


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes its standard error for one."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("terminal")
def test_something_long_has_a_bar_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar(is_wanted=True) as tell:
        tell("receive", 20 * MIB, 40 * MIB)
        tell("receive", 40 * MIB, 40 * MIB)
        tell("register", 0, 40 * MIB)
        tell("register", 40 * MIB, 40 * MIB)

    seen = capfd.readouterr()
    assert "keeping it here" in seen.err
    assert "storage checks it" in seen.err
    assert seen.out == ""


@pytest.mark.usefixtures("terminal")
def test_bytes_without_a_known_end_have_one_once_they_are_many(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar(is_wanted=True) as tell:
        tell("receive", 1 * MIB, None)
        assert capfd.readouterr().err == ""
        tell("receive", 9 * MIB, None)

    assert "keeping it here" in capfd.readouterr().err


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("size_bytes", "is_wanted"), [(1000, True), (100 * MIB, False)])
def test_something_short_or_a_program_that_reads_json_has_none(
    capfd: pytest.CaptureFixture[str], size_bytes: int, is_wanted: bool
) -> None:
    with progress_bar(is_wanted=is_wanted) as tell:
        tell("read", size_bytes, size_bytes)

    assert capfd.readouterr().err == ""


def test_without_a_terminal_there_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar(is_wanted=True) as tell:
        tell("read", 100 * MIB, 100 * MIB)

    assert capfd.readouterr().err == ""
