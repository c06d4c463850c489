"""CONTRIBUTING's "Add a command", pasted block by block into a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
_LOCAL = shutil.ignore_patterns(".git", ".venv", ".data", ".*_cache", "__pycache__", "dist", "build")


def blocks() -> list[str]:
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Add a command")[1].split("\n## ")[0]
    return [dedent(block) for block in re.findall(r"( *)```sh\n(.*?)\n *```", section, re.S) for block in [block[1]]]


def test_a_command_is_added_by_copy_and_paste(tmp_path: Path) -> None:
    copy = tmp_path / "mindbus"
    shutil.copytree(ROOT, copy, ignore=_LOCAL)
    (copy / ".venv" / "bin").mkdir(parents=True)
    for program in ("python", "pytest", "mindbus"):
        module = {"python": "", "pytest": "-m pytest -p no:cacheprovider", "mindbus": "-m mindbus.cli.main"}[program]
        path = copy / ".venv" / "bin" / program
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        path.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(copy)}

    assert len(blocks()) == 4
    for block in blocks():
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block], cwd=copy, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, f"{block}\n{result.stdout}{result.stderr}"
    linted = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=copy, capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout
