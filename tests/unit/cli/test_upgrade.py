"""`mindbus upgrade plan`: what an upgrade changes, whether it can be done worker by worker, in which order."""

import ast
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection

from config.settings import FleetSettings
from mindbus.bus.topology_admin import Difference
from mindbus.cli.errors import CommandError
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseNewer
from mindbus.sql.migrations import Revision, config_of, revision_of, revisions, upgrade
from mindbus_fleet.cli.upgrade import DatabaseState, UpgradePlan, in_order, state_of
from storage_service.tables import MIGRATIONS
from tests.command_line import Shell
from tests.installed import FLEET

ROOT = Path(__file__).parents[3]
ADDS, DROPS = Revision("0016", "adds", contracts=False), Revision("0017", "drops", contracts=True)
PLAN = UpgradePlan("0.2.0", {"storage": {"0.1.0": 2}, "pushkin": {"0.1.0": 2}}, (), (), is_private=False)


def at(revision: str, folder: Path) -> Database:
    """A database of storage as older code has left it."""
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(f"sqlite+aiosqlite:///{folder / 'storage.db'}", "storage")

    database.run_on_admin_connection(partial(_upgraded, revision=revision))
    return database


def _upgraded(connection: Connection, revision: str) -> None:
    config = config_of(MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def test_what_older_code_has_left_is_listed_with_what_it_gets(tmp_path: Path) -> None:
    at("0013", tmp_path)

    found = json.loads(Shell(tmp_path).ok("upgrade", "plan", "--json"))

    (storage,) = [each for each in found["databases"] if each["service"] == "storage"]
    assert storage["revision"] == "0013"
    assert [each["number"] for each in storage["pending"]][:2] == ["0014", "0015"]
    assert found["workers"] == {}
    assert [each["command"] for each in found["steps"]][1:3] == ["mindbus down", "mindbus up -d"]
    assert "attachments" in Shell(tmp_path).ok("upgrade", "plan")


async def test_databases_of_a_server_are_read_each_in_its_schema(empty_postgres_url: str, tmp_path: Path) -> None:
    database = Database(empty_postgres_url, "storage")
    database.run_on_admin_connection(partial(_upgraded, revision="0013"))
    await database.dispose()
    settings = FleetSettings(data_dir=tmp_path, database_url=empty_postgres_url)
    storage, glm = [await state_of(name, MIGRATIONS, settings) for name in ("storage", "glm")]
    assert (storage.revision, storage.pending[0].number) == ("0013", "0014")
    assert glm.revision is None


async def test_a_database_that_is_away_says_what_to_do(tmp_path: Path) -> None:
    settings = FleetSettings(data_dir=tmp_path, database_url="postgresql+psycopg://nobody:none@127.0.0.1:9/none")
    with pytest.raises(CommandError, match=r"(?s)the database of storage cannot be read .*MINDBUS_DATABASE_URL"):
        await state_of("storage", MIGRATIONS, settings)


def test_receivers_are_replaced_before_senders_one_worker_after_the_other() -> None:
    steps = [each.command for each in PLAN.steps()]

    assert PLAN.is_rolling
    assert steps == ["mindbus backup PLACE", "mindbus health storage", "mindbus health pushkin", "mindbus upgrade plan"]
    order = in_order(FLEET)
    assert sorted(order) == sorted(FLEET)
    assert order[0] == "storage"
    assert order[-1] == "gateway"


def test_what_is_missing_on_the_broker_is_declared_first() -> None:
    plan = replace(
        PLAN, differences=(Difference("missing queue", "mb.q.new"), Difference("different policy", "mb.dead"))
    )
    assert plan.is_rolling
    assert [each.command for each in plan.steps()][1] == "mindbus topology apply"


def test_a_queue_that_has_to_be_rebuilt_stops_the_fleet() -> None:
    plan = replace(PLAN, differences=(Difference("different queue", "mb.q.storage", "x: 1 → 2"),))
    assert plan.obstacles == ["mb.q.storage has to be rebuilt"]
    assert not plan.is_rolling
    assert "mindbus topology migrate" in [each.command for each in plan.steps()]


@pytest.mark.parametrize(("pending", "rolls"), [((ADDS,), True), ((ADDS, DROPS), False)])
def test_a_database_that_drops_what_older_code_uses_stops_the_fleet(pending: tuple[Revision, ...], rolls: bool) -> None:
    assert replace(PLAN, databases=(DatabaseState("storage", "0015", pending),)).is_rolling is rolls
    assert replace(PLAN, databases=(DatabaseState("storage", None, pending),)).is_rolling


def test_a_revision_says_that_it_contracts(tmp_path: Path) -> None:
    versions = tmp_path / "versions"
    versions.mkdir()
    (versions / "0001_begin.py").write_text("revision = '0001'\n")
    (versions / "0002_drop_it.py").write_text("revision = '0002'\nPHASE = \"contract\"\n")
    assert revisions(tmp_path) == [
        Revision("0001", "begin", contracts=False),
        Revision("0002", "drop it", contracts=True),
    ]


@pytest.mark.parametrize(
    "file", sorted(ROOT.glob("*/migrations/*/versions/*.py")), ids=lambda file: "/".join(file.parts[-3:])
)
def test_a_migration_that_drops_or_renames_says_so(file: Path) -> None:
    tree = ast.parse(file.read_text())
    (forward,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "upgrade"]
    calls = [each for each in ast.walk(forward) if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)]
    narrowing = {"drop_table", "drop_column", "rename_table", "drop_constraint"}
    harms = [call for call in calls if call.func.attr in narrowing or _renames(call)]  # type: ignore[attr-defined]
    assert not harms or Revision.of(file).contracts


def _renames(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    changed = {keyword.arg for keyword in call.keywords}
    return call.func.attr == "alter_column" and bool(changed & {"new_column_name", "nullable"})


async def test_a_file_of_newer_code_is_refused(tmp_path: Path) -> None:
    database = at("head", tmp_path)
    await _make_newer(database)
    with pytest.raises(DatabaseNewer, match=r"revision 9999.*install the newer MindBus again"):
        await upgrade(database, MIGRATIONS)


async def test_a_process_of_older_code_goes_on_beside_newer_ones(empty_postgres_url: str) -> None:
    database = Database(empty_postgres_url, "storage")
    await upgrade(database, MIGRATIONS)
    await _make_newer(database)
    await upgrade(database, MIGRATIONS)
    found: list[str | None] = []
    database.run_on_admin_connection(lambda connection: found.append(revision_of(connection)))
    assert found == ["9999"]
    await database.dispose()


async def _make_newer(database: Database) -> None:
    database.run_on_admin_connection(
        lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    )
