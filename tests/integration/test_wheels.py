"""The two wheels: the library needs little and adds two names, the fleet hides its packages behind one."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from mindbus.version import __version__

ROOT = Path(__file__).parents[2]
UV = (sys.executable, "-m", "uv")
# Extras, and what only the fleet has.
HEAVY = ("agents", "alembic", "botocore", "fastapi", "langgraph", "nicegui", "psycopg", "qdrant_client", "sqlalchemy")
LATE = ("aio_pika", "fsspec", "httpx", "rich", "structlog")
IMPORT_ALL = """
import importlib, pkgutil, bus_schema, mindbus
for package in (bus_schema, mindbus):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith(("mindbus.integrations.", "mindbus.mypy", "mindbus.sql", "mindbus.files.s3_")):
            importlib.import_module(module.name)
"""

pytestmark = pytest.mark.slow


def run(*command: str | Path, expected: int = 0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=240)
    assert done.returncode == expected, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "mindbus_fleet"):
        run(*UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", folder, project)
    return folder


@pytest.fixture(scope="module")
def library(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty virtual environment with the wheel `mindbus` and what it requires; returns its `bin`."""
    venv = tmp_path_factory.mktemp("library") / "venv"
    run(*UV, "venv", "--quiet", "--python", sys.executable, venv)
    locked = ("--constraint", ROOT / "requirements.txt")
    wheel = next(wheels.glob("mindbus-*.whl"))
    run(*UV, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *locked, wheel)
    return venv / "bin"


def names_in(wheel: Path) -> set[str]:
    names = {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist()}
    return {name for name in names if not name.endswith(".dist-info")}


def test_each_wheel_adds_its_own_names_only(wheels: Path) -> None:
    library, fleet = next(wheels.glob("mindbus-*.whl")), next(wheels.glob("mindbus_fleet-*.whl"))

    assert names_in(library) == {"mindbus", "bus_schema"}
    assert names_in(fleet) == {"mindbus_fleet"}
    assert {"mindbus/py.typed", "bus_schema/py.typed"} <= set(zipfile.ZipFile(library).namelist())


def test_both_have_one_version_and_the_library_requires_little(wheels: Path) -> None:
    library, fleet = (
        tomllib.loads((ROOT / file).read_text())["project"]
        for file in ("pyproject.toml", "mindbus_fleet/pyproject.toml")
    )

    assert {wheel.name.split("-")[1] for wheel in wheels.glob("*.whl")} == {__version__}
    assert f"mindbus[mcp,otel,s3,sql]=={__version__}" in fleet["dependencies"]
    assert len(library["dependencies"]) <= 14
    extras = {"crewai", "langgraph", "mcp", "openai-agents", "otel", "s3", "sql"}
    assert set(library["optional-dependencies"]) == extras


def test_the_library_works_alone(library: Path) -> None:
    run(library / "python", "-c", IMPORT_ALL)
    loaded = run(
        library / "python", "-c", "import sys; from mindbus import connect, Worker, on_command; print(*sys.modules)"
    )

    assert not {*HEAVY, *LATE} & set(loaded.split())
    assert "send" in run(library / "mindbus", "--help")


def test_the_import_is_small(library: Path) -> None:
    # The peak of this program alone: what getrusage says includes the process that forked it.
    peak = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
    measure = f"import time; print(time.process_time(), {peak})"

    run(library / "python", "-c", IMPORT_ALL)
    begin = f"from mindbus import connect, Worker, on_command; {measure}"
    runs = [run(library / "python", "-c", begin).split() for _ in range(5)]

    # 0.2 s on an idle machine; others may be using this one.
    assert min(float(seconds) for seconds, _kib in runs) < 0.8
    assert min(int(kib) for _seconds, kib in runs) < 50 * 1024


def test_without_the_fleet_its_commands_say_what_to_install(library: Path) -> None:
    assert "pip install mindbus-fleet" in run(library / "mindbus", "up", expected=2)
    assert "pip install mindbus-fleet" in run(library / "mindbus", "worker", "storage", expected=2)


def test_a_message_of_ones_own_is_read_before_any_package_of_the_fleet(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import sys\n"
        "from mindbus import Query\n"
        "assert not {'agents', 'config', 'workers'} & set(sys.modules)\n"
        "class Ask(Query[None], domain='own', action='ask'):\n"
        "    'A query.'\n"
    )
    # A setting of the fleet's in the environment would be looked up there.
    clean = "[os.environ.pop(name) for name in [*os.environ] if name.startswith('MINDBUS_')]"
    called = "sys.argv[1:] = ['send', 'own:Ask', 'nonsense']"
    begin = f"import os, sys; os.chdir({str(tmp_path)!r}); {clean}; {called}; "

    refused = run(sys.executable, "-c", begin + "from mindbus.cli.main import main; main()", expected=2)

    assert "'nonsense' is not key=value" in refused


def test_the_fleet_uses_its_own_packages_or_says_that_another_is_in_the_way(wheels: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(next(wheels.glob("mindbus_fleet-*.whl"))).extractall(tmp_path)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").touch()
    begin = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "

    ours = run(sys.executable, "-c", begin + "import mindbus_fleet, agents; print(agents.__file__)")
    taken = run(sys.executable, "-c", begin + "import agents, mindbus_fleet", expected=1)

    assert ours.strip() == str(tmp_path / "mindbus_fleet" / "packages" / "agents" / "__init__.py")
    assert "virtual environment of its own" in taken
