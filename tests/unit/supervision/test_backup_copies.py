"""Copies of databases that are being written: of one instant, whole, and found damaged where they are."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus.files.store import open_files
from mindbus_fleet.backup.copies import Copies
from mindbus_fleet.backup.errors import BackupFailed
from mindbus_fleet.backup.postgresql import databases_of
from mindbus_fleet.backup.sqlite_copies import check, copy_together, count_rows, databases_in, forget_sending
from tests.damaged_files import damage
from tests.seaweed import ObjectServer


def a_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE counts (number INTEGER)")
    return path


def count_in(path: Path) -> int:
    return count_rows(path)["counts"]


def test_copies_are_of_one_instant_while_others_write(tmp_path: Path) -> None:
    first, second = a_database(tmp_path / "a.db"), a_database(tmp_path / "b.db")
    stop = threading.Event()

    def write_one_after_the_other() -> None:
        with closing(sqlite3.connect(first)) as a, closing(sqlite3.connect(second)) as b:
            number = 0
            while not stop.is_set():
                for connection in (a, b):
                    with connection:
                        connection.execute("INSERT INTO counts VALUES (?)", [number])
                number += 1

    writer = threading.Thread(target=write_one_after_the_other)
    writer.start()
    try:
        for turn in range(20):
            copies = {first: tmp_path / f"a{turn}.copy", second: tmp_path / f"b{turn}.copy"}
            copy_together(copies)
            # At most the one write between the two is missing.
            assert count_in(copies[first]) - count_in(copies[second]) in (0, 1)
            assert check(copies[first]) == check(copies[second]) == ""
    finally:
        stop.set()
        writer.join()


def test_a_file_that_is_no_database_is_left_out(tmp_path: Path) -> None:
    a_database(tmp_path / "a.db")
    (tmp_path / "a.db.writer").write_bytes(b"")
    (tmp_path / "note.db").write_text("a note", encoding="utf-8")

    assert databases_in(tmp_path) == [tmp_path / "a.db"]


def test_a_locked_database_is_told(tmp_path: Path) -> None:
    path = a_database(tmp_path / "a.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackupFailed, match=r"a\.db cannot be copied: database is locked"):
            copy_together({path: tmp_path / "copy"}, locked_within_s=0.05)


def test_a_damaged_copy_is_found(tmp_path: Path) -> None:
    path = a_database(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO counts VALUES (?)", [[number] for number in range(50_000)])
    copy_together({path: tmp_path / "copy"})
    damage(tmp_path / "copy")

    assert check(tmp_path / "copy")


def test_what_was_sent_lately_is_sent_again_and_what_led_to_nothing_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    rows = [
        ("old", "[1]", "2026-11-26 09:59:59.0"),
        ("new", "[1]", "2026-11-26 10:00:01.0"),
        ("empty", "[]", "2026-11-26 10:00:01.0"),
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE inbox (message_id TEXT, outcome TEXT, handled_at TEXT, published INTEGER)")
        connection.executemany("INSERT INTO inbox VALUES (?, ?, ?, 1)", rows)

    assert forget_sending([path, a_database(tmp_path / "b.db")], "2026-11-26 10:00:00.000000") == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT message_id FROM inbox WHERE NOT published").fetchall() == [("new",)]


def silent(_text: str) -> None:
    pass


def test_a_folder_that_is_a_link_is_backed_up_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "big disk").mkdir()
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "artifacts").symlink_to(tmp_path / "big disk")
    copies = Copies(FleetSettings(data_dir=data_dir / ".." / "data"), silent)

    manifest = copies.make()

    assert manifest.folders["artifacts"] == str(tmp_path / "big disk")
    assert copies.paths(manifest) == [data_dir / "backup", tmp_path / "big disk"]


def test_a_database_outside_of_the_data_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    elsewhere = a_database(tmp_path / "srv" / "storage.db")
    settings = FleetSettings(data_dir=tmp_path, storage_database_url=f"sqlite+aiosqlite:///{elsewhere}")

    with pytest.raises(BackupFailed, match=r"MINDBUS_STORAGE_DATABASE_URL names .*storage\.db; .*move it into"):
        Copies(settings, silent).make()


def test_an_object_that_is_removed_while_others_are_fetched_is_left_out(
    tmp_path: Path, object_server: ObjectServer
) -> None:
    settings = object_server.place().settings(data_dir=tmp_path)
    store = open_files(settings)
    for name in ("a", "b"):
        store.put(f"staging/{name}", b"x")
    root = settings.files_url.partition("://")[2]
    store.fs.invalidate_cache()
    copies = Copies(settings, lambda text: store.fs.rm_file(f"{root}/staging/a") if "fetching" in text else None)

    assert copies.make().objects == 1
    assert [each.name for each in (tmp_path / "backup" / "objects").rglob("*") if each.is_file()] == ["b"]


def test_databases_of_servers_are_named_by_their_settings() -> None:
    main, large = "postgresql+psycopg://z.example/mindbus", "postgresql+psycopg://a.example/storage"

    def named(**urls: str) -> dict[str, str | None]:
        return {name: url.host for name, url in databases_of(FleetSettings.model_validate(urls)).items()}

    assert named(database_url=main, storage_database_url=large, glm_database_url=main) == {
        "database_url": "z.example",
        "storage_database_url": "a.example",
    }
