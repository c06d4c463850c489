"""Artifacts, users and histories written over HTTP."""

from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus.accounts import AccessRole, accounts_of
from tests.brokers import Broker
from tests.gateways import gateway_settings, serving
from tests.installed import FLEET

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(120)]
TRACE = "conv_anna"
NOTES = b"# Notes\n\nThe code is 4711.\n"
FORM = {"type": "note", "trace": TRACE}
FILE = {"file": ("notes.md", NOTES)}


@pytest.fixture
def settings(broker: Broker, vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, migrated_folder)


async def test_a_file_becomes_an_artifact_once_and_then_its_next_version(settings: FleetSettings) -> None:
    async with serving(FLEET["storage"], settings=settings) as gateway:
        once = {"Idempotency-Key": "notes-1"}
        made = await gateway.ok("POST", "/api/artifacts", data=FORM, files=FILE, headers=once)
        again = await gateway.ok("POST", "/api/artifacts", data=FORM, files=FILE, headers=once)
        other = await gateway.no("POST", "/api/artifacts", data=FORM, files={"file": b"other"}, headers=once)
        next_form = FORM | {"supersedes": made["id"], "made_from": [made["id"]]}
        image = {"file": ("code.png", b"\x89PNG", "image/png")}
        newer = await gateway.ok("POST", "/api/artifacts", data=next_form, files=image)
        versions = await gateway.ok("GET", f"/api/artifacts/{made['id']}/versions", params={"trace": TRACE})
        wrong: list[dict[str, str]] = [
            {"trace": TRACE},
            FORM | {"type": "No Type!"},
            FORM | {"supersedes": "art_none1234"},
        ]
        refusals = [await gateway.no("POST", "/api/artifacts", data=form, files=FILE) for form in wrong]

    assert (made["content_type"], made["size_bytes"], made["visibility"]) == ("text/markdown", len(NOTES), "trace")
    assert again == made
    assert other[:2] == (409, "conflict")
    assert (newer["version"], newer["content_type"]) == (2, "image/png")
    assert newer["context"]["input_artifacts"] == [made["id"]]
    assert [each["id"] for each in versions["items"]] == [made["id"], newer["id"]]
    assert [refusal[:2] for refusal in refusals] == [(422, "invalid"), (422, "invalid"), (404, "not_found")]


async def test_its_bytes_are_read_whole_in_parts_and_from_a_signed_address(settings: FleetSettings) -> None:
    async with serving(FLEET["storage"], settings=settings) as gateway:
        made = await gateway.ok("POST", "/api/artifacts", data=FORM, files=FILE)
        path, within = f"/api/artifacts/{made['id']}", {"trace": TRACE}
        content = await gateway.http.get(f"{path}/content", params=within)
        part = await gateway.http.get(f"{path}/content", params=within, headers={"Range": "bytes=2-6"})
        signed = await gateway.ok("GET", path, params=within | {"presigned": "true"})
        plain = await gateway.ok("GET", path, params=within)
        outside = await gateway.http.get(signed["presigned_url"]["url"], headers={"Authorization": ""})

    assert (content.content, part.status_code, part.content) == (NOTES, 206, b"Notes")
    assert (outside.status_code, outside.content) == (200, NOTES)
    assert "presigned_url" not in plain
    assert "packed" not in signed


async def test_who_is_no_reader_of_an_artifact_gets_no_address_of_it(settings: FleetSettings) -> None:
    closed = settings.model_copy(update={"gateway_access": "token"})
    tokens = [accounts_of(closed).add(name, AccessRole.USER) for name in ("anna", "boris")]
    anna, boris = ({"Authorization": f"Bearer {token}"} for token in tokens)
    async with serving(FLEET["storage"], settings=closed) as gateway:
        form = FORM | {"visibility": "private"}
        made = await gateway.ok("POST", "/api/artifacts", data=form, files={"file": NOTES}, headers=anna)
        path, about = f"/api/artifacts/{made['id']}", {"trace": TRACE, "presigned": True}
        hers = await gateway.ok("GET", path, params=about, headers=anna)
        strangers = await gateway.no("GET", path, params=about, headers=boris)
        stolen = await gateway.no(
            "POST", "/api/artifacts", data=form | {"supersedes": made["id"]}, files={"file": b"x"}, headers=boris
        )

    assert (made["owner"], hers["id"]) == ("user.anna", made["id"])
    assert strangers[:2] == stolen[:2] == (404, "not_found")


async def test_a_user_is_stored_found_and_not_overwritten_unseen(settings: FleetSettings) -> None:
    async with serving(FLEET["storage"], settings=settings) as gateway:
        fields = {"name": "Алия", "zone": "Asia/Almaty", "language": "ru", "projects": ["apollo"]}
        stored = await gateway.ok("PUT", "/api/users/aliya", json=fields | {"expected_version": 0})
        read = await gateway.ok("GET", "/api/users/aliya")
        conflict = await gateway.no("PUT", "/api/users/aliya", json={"name": "A", "expected_version": 0})
        listed = await gateway.ok("GET", "/api/users", params={"project": "apollo"})
        nobody = await gateway.no("GET", "/api/users/nobody")
        nowhere = await gateway.no("PUT", "/api/users/aliya", json={"name": "A", "zone": "Europe/Nowhere"})

    assert stored == read
    assert (read["name"], read["zone"], read["version"]) == ("Алия", "Asia/Almaty", 1)
    assert [each["user_id"] for each in listed["items"]] == ["aliya"]
    assert [each[:2] for each in (conflict, nobody, nowhere)] == [
        (409, "conflict"),
        (404, "not_found"),
        (422, "invalid"),
    ]


async def test_a_history_is_appended_once_shown_and_cleared(settings: FleetSettings) -> None:
    async with serving(FLEET["storage"], FLEET["history"], settings=settings) as gateway:
        path, once = "/api/histories/chat_history:anna", {"Idempotency-Key": "first"}
        said = {
            "messages": [{"role": "user", "content": "The code is 4711."}, {"role": "assistant", "content": "Noted."}]
        }
        appended = [await gateway.ok("POST", f"{path}/messages", json=said, headers=once) for _ in range(2)]
        shown = await gateway.ok("GET", path)
        listed = await gateway.ok("GET", "/api/histories", params={"chat": "anna"})
        cleared = await gateway.http.delete(path)
        after = await gateway.ok("GET", path)
        wrong = await gateway.no("GET", "/api/histories/no-key")

    assert [each["length"] for each in appended] == [2, 2]
    assert [each["content"] for each in shown["messages"]] == ["The code is 4711.", "Noted."]
    assert [(each["key"], each["length"]) for each in listed["items"]] == [("chat_history:anna", 2)]
    assert (cleared.status_code, after["messages"], wrong[0]) == (204, [], 422)
