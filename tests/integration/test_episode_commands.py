"""`mindbus episodes` and its like over HTTP, on a long-term memory of one's own, as somebody at a shell has them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.command_line import Shell

pytestmark = [pytest.mark.rabbit, pytest.mark.slow, pytest.mark.timeout(300)]

RUSSIAN = (
    "Доброе утро! Мы ездили за город, погода чудесная, шашлыки удались, дети довольны и совсем не хотели обратно.",
    "Рад слышать! Чем помочь сегодня?",
    "«Полярис» прислал смету на 4,2 млн тенге, срок макета 28 ноября. Они уже один раз сорвали.",
    "Понимаю беспокойство. Давайте разберём по пунктам, что входит в смету и где можно сэкономить.",
    "Решили: аванс 30 %, остальное после монтажа. Марат Жумабеков держит контакт запасного подрядчика.",
    "Записал: аванс 30 %, остальное после монтажа.",
)
ENGLISH = (
    "Morning! We looked at three fonts for the catalogue yesterday, it took us all afternoon and two pots of coffee.",
    "Which one did the team like best?",
    "We decided to use Inter for the text because it has Cyrillic. Anna Berg prefers Lora for headings.",
    "Noted: Inter for the text, Lora for headings.",
    "The printer needs the files by 20 March. It rains all day here, by the way, and the tram is late again.",
    "I will remind you a week before.",
)
LATER = "2026-12-01T00:00:00Z"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[Shell]:
    settings = fleet_settings | {"MINDBUS_GATEWAY_PORT": "0", "MINDBUS_PACKER_INTERVAL_S": "0"}
    fleet = Shell(tmp_path_factory.mktemp("episodes") / "data", settings=settings)
    try:
        fleet.ok("up", "-d", "--workers", "storage,lsm,packer,gateway", spawned=True)
        yield fleet
    finally:
        fleet.ok("down")


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [
        {
            "chat_id": chat,
            "role": ("user", "assistant")[place % 2],
            "content": content,
            "time": f"2026-01-10T12:{place:02}:00+05:00",
        }
        for chat, talk in (("aliya", RUSSIAN), ("boris", ENGLISH))
        for place, content in enumerate(talk)
    ]
    file = tmp_path_factory.mktemp("chats") / "chats.jsonl"
    file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def known(shell: Shell, chats: Path) -> dict[str, str]:
    """Which episode is whose."""
    assert shell.json("episodes", "import", str(chats)) == {"messages": 12, "new": 12, "chats": 2}
    return {head["chat_id"]: head["id"] for head in shell.json("episodes", "ls")}


def refused(shell: Shell, *arguments: str) -> dict[str, Any]:
    ended = shell.run(*arguments, "--json")
    assert ended.returncode in (1, 2)
    return dict(json.loads(ended.stdout)) | {"exit": ended.returncode}


def found(shell: Shell, query: str, chat: str, *options: str) -> dict[str, Any]:
    return dict(shell.json("episodes", "search", query, "--chat", chat, "--at", LATER, "--no-touch", *options))


def test_an_imported_chat_is_found_with_its_times(shell: Shell, known: dict[str, str], chats: Path) -> None:
    assert shell.json("episodes", "import", str(chats))["new"] == 0
    assert "12 of them new" not in shell.ok("episodes", "import", str(chats))

    answer = found(shell, "какой аванс", "aliya", "--budget-words", "60", "--explain")
    assert answer.keys() >= {"confidence", "unpacked", "episodes"}
    assert answer["confidence"] in ("found", "weak")
    assert not answer["unpacked"]
    episode = answer["episodes"][0]
    assert (episode["episode_id"], episode["layer"]) == (known["aliya"], "hot")
    turn = next(turn for turn in episode["turns"] if turn["content"] == RUSSIAN[4])
    assert turn.keys() >= {"raw_log_id", "role", "content", "time"}
    assert (turn["role"], turn["time"]) == ("user", "2026-01-10T07:04:00Z")
    assert sum(len(turn["content"].split()) for turn in episode["turns"]) <= 60
    (newest,) = found(shell, "какой аванс", "aliya", "--newest-first")["episodes"]
    times = [turn["time"] for turn in newest["turns"]]
    assert len(times) > 1
    assert times == sorted(times, reverse=True)
    assert RUSSIAN[4] in shell.ok("episodes", "search", "какой аванс", "--chat", "aliya", "--no-touch")


def test_what_was_packed_is_unpacked_for_a_question_then_by_hand(shell: Shell, known: dict[str, str]) -> None:
    first = shell.json("episodes", "pack", "--at", "2026-02-01T00:00:00Z")
    assert (first["warm"], first["refused"], first["is_done"]) == (2, 0, True)
    warm = shell.json("episodes", "show", known["aliya"])
    assert (warm["layer"], warm["content"]["layer"]) == ("warm", "warm")
    assert "Полярис" in {entity["name"] for entity in warm["content"]["entities"]}
    assert "number" in {note["kind"] for note in warm["notes"]}
    shown = shell.ok("episodes", "show", known["aliya"])
    assert "аванс 30 %" in shown
    assert "(number)" in shown
    assert shell.json("episodes", "pack", "--at", LATER)["cold"] == 2
    assert shell.json("episodes", "pack", "--at", LATER) == shell.json("episodes", "pack", "--at", LATER)
    assert {head["layer"] for head in shell.json("episodes", "ls", "--layer", "cold")} == {"cold"}
    assert known["boris"] in shell.ok("episodes", "ls", "--chat", "boris")

    for chat, query, said in (("aliya", "какой аванс", RUSSIAN[4]), ("boris", "which font for the text", ENGLISH[2])):
        answer = found(shell, query, chat)
        assert answer["unpacked"]
        assert said in {turn["content"] for episode in answer["episodes"] for turn in episode["turns"]}

    content = shell.json("episodes", "unpack", known["boris"])
    assert [turn["content"] for turn in content["raw_messages"]] == list(ENGLISH)
    assert shell.json("episodes", "show", known["boris"])["layer"] == "hot"
    one = shell.json("episodes", "pack", known["boris"])
    assert (one["outcome"], one["layer"], one["verified"]) == ("packed", "warm", True)


def test_an_anchor_is_set_and_taken_away(shell: Shell, known: dict[str, str]) -> None:
    head = shell.json("episodes", "anchor", known["boris"], "--reason", "project")
    assert (head["is_anchor"], head["anchor_reason"]) == (True, "project")
    assert [each["id"] for each in shell.json("episodes", "ls", "--anchors")] == [known["boris"]]
    assert shell.json("episodes", "stats", "--chat", "boris")["anchors"] == 1
    assert "no anchor" in shell.ok("episodes", "anchor", known["boris"], "--off")
    assert refused(shell, "episodes", "anchor", known["boris"], "--off", "--reason", "profile")["exit"] == 2


def test_measures_are_told(shell: Shell, known: dict[str, str]) -> None:
    stats = shell.json("episodes", "stats")
    assert (stats["chats"], stats["turns"], stats["episodes"]) == (2, 12, len(known))
    assert stats["layers"].keys() == {"hot", "warm", "cold"}
    assert stats["sizes"]["texts"] > 0
    shown = shell.ok("episodes", "stats")
    assert [row for row in ("packs", "in the database", "in artifacts", "search indexes") if row not in shown] == []
    assert not shell.json("episodes", "tune")["applied"]


def test_what_cannot_be_done_is_told_with_its_reason(shell: Shell, known: dict[str, str], tmp_path: Path) -> None:
    for command in ("show", "unpack", "anchor", "pack"):
        assert refused(shell, "episodes", command, "ep_none")["code"] == "not_found"
    assert refused(shell, "episodes", "show", "anna")["code"] == "invalid"
    assert refused(shell, "episodes", "pack", "--to", "cold")["exit"] == 2
    for wrong in (("--budget-words", "-1"), ("--at", "2026-12-01"), ("--layer", "tepid")):
        assert shell.run("episodes", "search", "x", "--chat", "aliya", *wrong).returncode == 2
    (tmp_path / "said.jsonl").write_text('{"chat_id": "aliya"}\n', encoding="utf-8")
    assert ":1: " in refused(shell, "episodes", "import", str(tmp_path / "said.jsonl"))["error"]


def test_the_same_is_there_over_http(shell: Shell, known: dict[str, str]) -> None:
    url = json.loads((shell.data_dir / "run" / "up.json").read_text(encoding="utf-8"))["gateway_url"]
    at = "/api/episodes"
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        page = client.get(at, params={"chat": "aliya"}).json()
        assert [head["id"] for head in page["items"]] == [known["aliya"]]
        explained = client.get(f"{at}/{known['aliya']}", params={"at": LATER}).json()
        assert [turn["content"] for turn in explained["turns"]] == list(RUSSIAN)
        assert explained["report"]["verified"]
        assert client.get(f"{at}/stats").json()["episodes"] == len(known)
        points = client.get(f"{at}/history", params={"chat": "aliya", "until": LATER, "steps": 10}).json()["points"]
        assert (points[0]["words"]["hot"], points[-1]["words"]["hot"]) == (points[0]["raw_words"], 0)
        answer = client.get(f"{at}/search", params={"q": "какой аванс", "chat": "aliya", "at": LATER}).json()
        assert answer["episodes"][0]["episode_id"] == known["aliya"]
        assert client.post(f"{at}/{known['aliya']}/anchor", json={"reason": "project"}).json()["is_anchor"]
        assert client.post(f"{at}/{known['aliya']}/unpack").json()["raw_messages"]
        assert client.post(f"{at}/{known['aliya']}/pack", json={"to": "warm"}).json()["layer"] == "warm"
        assert client.get(f"{at}/ep_none").status_code == 404
        assert client.get(f"{at}/search", params={"q": "x", "chat": "aliya", "budget_words": -1}).status_code == 422
