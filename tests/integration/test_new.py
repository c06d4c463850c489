"""What `mindbus new` writes works as it is: its tests pass, it runs beside a fleet."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import Shell

KINDS = ("worker", "agent", "card", "subagent")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    shell = Shell(folder / "data")
    for kind in KINDS:
        told = shell.json("new", kind, f"my_{kind}", "-o", str(folder))
        assert all(Path(file).exists() for file in told["files"])
        assert told["next"][0] == f"pytest {folder}/test_my_{kind}.py"
    return folder


@pytest.mark.slow
def test_its_tests_pass_as_they_are(written: Path) -> None:
    tests = [str(written / f"test_my_{kind}.py") for kind in KINDS]
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        "-p",
        "no:langsmith_plugin",
        "--rootdir",
        str(written),
    ]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=written, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
    assert f"{len(KINDS)} passed" in done.stdout


def test_nothing_is_written_over(written: Path) -> None:
    before = (written / "my_worker.py").read_text()
    refused = Shell(written / "data").run("new", "worker", "my_worker", "-o", str(written))

    assert (refused.returncode, "is there already" in refused.stderr) == (2, True)
    assert (written / "my_worker.py").read_text() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_stands_wherever_the_template_has_one(written: Path, kind: str) -> None:
    texts = [path.read_text() for path in written.rglob(f"*my_{kind}*") if path.is_file()]

    assert len(texts) == 2
    assert not [text for text in texts if "NAME" in text or "CLASS" in text]
