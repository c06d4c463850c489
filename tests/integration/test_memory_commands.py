"""`mindbus memory`, `glm`, `locks`, `counters` on a memory of one's own, as somebody at a shell has them."""

import json
import re
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from mindbus.testing.wait import eventually
from tests.command_line import Shell

pytestmark = [pytest.mark.rabbit, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[Shell]:
    memory = Shell(tmp_path_factory.mktemp("memory") / "data", settings=fleet_settings)
    try:
        memory.ok("up", "-d", "--workers", "storage,glm,swm", spawned=True)
        yield memory
    finally:
        memory.ok("down")


def added(shell: Shell, text: str, *options: str) -> str:
    answered = shell.json("memory", "add", "--text", text, *options)
    assert answered.keys() == {"kem_id"}
    return str(answered["kem_id"])


def refused(shell: Shell, *arguments: str) -> dict[str, Any]:
    ended = shell.run(*arguments, "--json")
    assert ended.returncode in (1, 2)
    return dict(json.loads(ended.stdout)) | {"exit": ended.returncode}


def test_a_unit_is_added_shown_changed_and_removed(shell: Shell) -> None:
    kem_id = added(shell, "Релиз в пятницу.", "--meta", "project_id=apollo", "--meta", "sprint:=3")

    kem = shell.json("memory", "get", kem_id)
    assert (kem["content"], kem["metadata"], kem["owner"]) == (
        "Релиз в пятницу.",
        {"project_id": "apollo", "sprint": 3},
        "user.local",
    )
    assert "Релиз в пятницу." in shell.ok("memory", "get", kem_id)

    changed = shell.json("memory", "update", kem_id, "--text", "Релиз в понедельник.", "--meta", "sprint:=null")
    assert (changed["content"], changed["metadata"], changed["version"]) == (
        "Релиз в понедельник.",
        {"project_id": "apollo"},
        2,
    )
    late = refused(shell, "memory", "update", kem_id, "--text", "x", "--expected-version", "1")
    assert (late["code"], late["exit"]) == ("conflict", 1)

    assert shell.json("memory", "rm", kem_id) == {"removed": [kem_id]}
    assert refused(shell, "memory", "get", kem_id)["code"] == "not_found"


def test_what_is_private_is_not_there_for_others(shell: Shell) -> None:
    before = shell.json("memory", "stats", "--as", "agent.critic")
    kem_id = added(shell, "secret", "--visibility", "private", "--as", "agent.researcher")

    for command in (("get", kem_id), ("rm", kem_id), ("update", kem_id, "--text", "mine")):
        assert refused(shell, "memory", *command, "--as", "agent.critic")["code"] == "not_found"
    assert shell.json("memory", "stats", "--as", "agent.critic") == before
    assert shell.json("memory", "stats", "--as", "agent.researcher")["own"] == 1


def test_changes_are_watched_by_a_filter(shell: Shell) -> None:
    heard: list[dict[str, Any]] = []

    def has_begun() -> bool:
        # Nobody hears what was told before the watch had begun.
        added(shell, "begin", "--meta", "project_id=watched", "--id", "begin")
        return bool(heard)

    with shell.start("memory", "watch", "--filter", "metadata.project_id=watched", "--json") as watching:
        reader = Thread(target=lambda: heard.extend(map(json.loads, watching.stdout or ())))
        reader.start()
        try:
            eventually(has_begun, 60, "the watch has begun")
            hidden = added(shell, "no", "--meta", "project_id=watched", "--visibility", "private", "--as", "agent.x")
            other = added(shell, "no", "--meta", "project_id=other")
            kem_id = added(shell, "yes", "--meta", "project_id=watched")
            shell.ok("memory", "rm", kem_id)
            eventually(lambda: heard[-1]["event"] == "deleted", 30, "the removal is heard of")
        finally:
            watching.kill()
            reader.join()
    assert [(each["event"], each["kem_id"]) for each in heard][-2:] == [("stored", kem_id), ("deleted", kem_id)]
    assert {hidden, other}.isdisjoint(each["kem_id"] for each in heard)


def test_a_unit_holds_until_another_supersedes_it(shell: Shell) -> None:
    only = ("--filter", "metadata.kind=opening")
    old = added(shell, "The shop opens at nine.", "--meta", "kind=opening", "--valid-from", "2026-01-01")
    new = added(shell, "Now at ten.", "--meta", "kind=opening", "--valid-from", "2026-03-01", "--supersedes", old)

    def found(*options: str) -> list[str]:
        return [each["kem_id"] for each in shell.json("memory", "search", "when does the shop open", *only, *options)]

    assert found() == [new, old]
    assert found("--as-of", "2026-02-01") == [old]
    assert found("--as-of", "2026-04-01") == [new]
    # Both were stored today.
    assert found("--known-at", "2026-04-01") == []
    assert shell.json("memory", "get", old)["superseded_by"] == new
    assert shell.json("memory", "update", new, "--valid-to", "2026-03-20")["valid_to"].startswith("2026-03-")
    assert found("--as-of", "2026-04-01") == []


def test_what_is_searched_for_is_found_with_its_reasons(shell: Shell) -> None:
    plan = added(shell, "Отпуск согласован с директором до конца марта.", "--meta", "kind=plan")
    added(shell, "The warehouse in Riga has a leaking roof.", "--meta", "kind=report")
    hidden = added(shell, "Отпуск директора.", "--meta", "kind=plan", "--visibility", "private", "--as", "agent.x")

    found = shell.json("memory", "search", "кто согласовал отпуск", "--top", "2", "--filter", "metadata.kind=plan")
    assert [each["kem_id"] for each in found] == [plan]
    assert found[0].keys() == {"kem_id", "score", "content", "metadata", "source"}
    assert (found[0]["content"], found[0]["metadata"]) == (
        "Отпуск согласован с директором до конца марта.",
        {"kind": "plan"},
    )

    explained = shell.json("memory", "search", "кто согласовал отпуск", "--explain")
    assert explained[0]["explain"].keys() == {"dense", "lexical", "words", "base", "by_words", "by_meaning"}
    assert hidden not in {each["kem_id"] for each in explained}
    table = shell.ok("memory", "search", "отпуск", "--explain")
    assert plan in table
    # What is shown adds up to what is shown, within its rounding.
    score, parts = re.search(rf"(\d\.\d+) +{plan}", table), re.findall(r"(?:base|words|meaning)\s+(-?\d\.\d+)", table)
    assert score is not None
    assert abs(sum(map(float, parts[:3])) - float(score[1])) <= 0.002


def test_units_that_say_something_else_of_the_same_name_each_other(shell: Shell) -> None:
    older, newer = (added(shell, f"Бюджет каталога {number} млн", "--meta", "kind=budget") for number in (2, 3))
    only = ("memory", "search", "бюджет каталога", "--filter", "metadata.kind=budget")

    marked = {each["kem_id"]: each["contradicts"] for each in shell.json(*only)}
    assert marked == {
        older: [{"kem_id": newer, "is_newer": True}],
        newer: [{"kem_id": older, "is_newer": False}],
    }
    assert "(newer)" in shell.ok(*only)


def test_rows_and_vectors_agree(shell: Shell) -> None:
    report = shell.json("glm", "check")

    assert report["clean"] is True
    assert {"kems", "with_vector", "vectors", "waiting", "missing", "stale", "surplus"} <= report.keys()


def test_memory_that_is_of_the_wanted_model_has_nowhere_to_go(shell: Shell) -> None:
    progress = shell.json("glm", "reindex")

    assert (progress["model"], progress["done"]) == ("multilingual-e5-small", progress["total"])
    assert refused(shell, "glm", "reindex", "another")["code"] == "conflict"


def test_the_index_is_not_made_anew_under_a_running_memory(shell: Shell) -> None:
    assert refused(shell, "glm", "rebuild")["code"] == "conflict"


def test_what_is_wrong_with_a_filter_is_shown_where_it_is(shell: Shell) -> None:
    wrong = refused(shell, "memory", "search", "x", "--filter", "metadata.a=1 AND AND metadata.b=2")

    assert (wrong["code"], wrong["exit"]) == ("invalid", 2)
    assert "At character 18" in wrong["error"]


def test_a_lock_outlives_the_command_that_took_it(shell: Shell) -> None:
    lock = shell.json("locks", "acquire", "report", "--as", "agent.editor", "--lease-ms", "60000")

    assert lock.keys() == {"token", "fencing", "expires"}
    assert lock["fencing"] == 1
    taken = refused(shell, "locks", "acquire", "report", "--as", "agent.critic", "--wait-ms", "200")
    assert taken["code"] == "conflict"
    info = shell.json("locks", "info", "report")
    assert info["holder"].startswith("agent.editor")
    assert info["waiting"] == 0

    assert refused(shell, "locks", "release", "report", "--token", "another")["code"] == "conflict"
    assert shell.json("locks", "release", "report", "--token", lock["token"]) == {"name": "report", "released": True}
    assert shell.json("locks", "acquire", "report", "--lease-ms", "100")["fencing"] == 2


def test_a_counter_adds_an_operation_once(shell: Shell) -> None:
    assert shell.json("counters", "incr", "drafts") == {"value": 1}
    assert shell.json("counters", "incr", "drafts", "--by", "5", "--operation", "import-7") == {"value": 6}
    assert shell.json("counters", "incr", "drafts", "--by", "5", "--operation", "import-7") == {"value": 6}
    assert shell.json("counters", "incr", "drafts", "--by", "-2") == {"value": 4}
    assert shell.json("counters", "get", "drafts") == {"value": 4}
    assert "drafts stands at 4" in shell.ok("counters", "get", "drafts")


def test_what_cannot_be_asked_is_said_at_once(shell: Shell) -> None:
    for wrong in (("locks", "acquire", "no name"), ("locks", "acquire", "a", "--lease-ms", "1")):
        done = shell.run(*wrong)
        assert done.returncode == 2


def test_vectors_are_made_anew_from_the_rows(shell: Shell) -> None:
    added(shell, "Ключ от склада лежит у охраны.")
    count = shell.json("glm", "check")["vectors"]
    shell.ok("down")
    for file in (shell.data_dir / "vectors").iterdir():
        file.unlink()

    assert "the next start of glm makes them from the rows" in shell.run("doctor").stdout
    assert shell.json("glm", "rebuild") == {"vectors": count}
