"""Shared memory over HTTP: found, counted and followed by those who may read it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bus_schema.glm import DeleteKem, KemChanges, StoreKem, UpdateKem
from bus_schema.kem import Kem
from bus_schema.swm import PublishKem
from config.settings import FleetSettings
from tests.brokers import Broker
from tests.gateways import Frame, Served, gateway_settings, serving
from tests.installed import FLEET
from tests.memory_kit import SPACE, a_draft


@pytest.fixture
def settings(broker: Broker, vhost_url: str, tmp_path: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim)


@pytest.fixture
async def gateway(settings: FleetSettings) -> AsyncIterator[Served]:
    async with serving(FLEET["glm"], FLEET["swm"], settings=settings) as served:
        yield served


async def store(gateway: Served, content: str, by: str = "agent.alice", **fields: Any) -> Kem:
    return await gateway.bus.acting_as(by).request(StoreKem(kem=a_draft(content, **fields)))


async def ids(gateway: Served, **params: Any) -> list[str]:
    return [item["kem"]["id"] for item in (await gateway.ok("GET", "/api/memory/kems", params=params))["items"]]


async def next_change(frames: AsyncIterator[Frame]) -> tuple[str, str]:
    frame = await anext(frames)
    assert frame.event == frame.data["event"]
    return frame.event, frame.data["kem_id"]


async def test_units_are_found_counted_and_read(gateway: Served) -> None:
    plan = await store(gateway, "Отпуск согласован до марта.", metadata={"kind": "plan", "tags": ["hr", "hr"], "n": 3})
    await store(gateway, "The roof in Riga leaks.", metadata={"kind": "report"}, content_type="text/markdown")

    page = await gateway.ok("GET", "/api/memory/kems", params={"q": "кто согласовал отпуск", "explain": True})
    found = page["items"][0]
    assert (found["kem"]["id"], found["kem"]["embeddings"]) == (plan.id, None)
    assert found["score"] > 0
    assert "отпуск" in found["explain"]["words"]
    assert page["is_degraded"]
    assert await ids(gateway, filter="metadata.kind=plan AND metadata.n=3") == [plan.id]
    first = await gateway.ok("GET", "/api/memory/kems", params={"limit": 1})
    assert await ids(gateway, cursor=first["next_cursor"]) == [plan.id]

    assert (await gateway.ok("GET", f"/api/memory/kems/{plan.id}"))["content"] == plan.content
    assert await gateway.ok("GET", "/api/memory/facets", params={"filter": "metadata.kind=plan"}) == {
        "counted": 1,
        "is_all": True,
        "content_types": [{"value": "text/plain", "count": 1}],
        "metadata": {
            "kind": [{"value": "plan", "count": 1}],
            "n": [{"value": 3, "count": 1}],
            "tags": [{"value": "hr", "count": 1}],
        },
    }
    assert (await gateway.ok("GET", "/api/memory/stats"))["by_content_type"] == {"text/markdown": 1, "text/plain": 1}


async def test_what_is_private_is_there_for_its_readers_alone(gateway: Served) -> None:
    public = await store(gateway, "Public news.", metadata={"kind": "news"})
    of_anna = await store(
        gateway, "Secret news.", visibility="readers", readers=["user.anna"], metadata={"kind": "secret"}
    )
    only_at_hand = await gateway.bus.acting_as("user.anna").request(
        PublishKem(kem=a_draft("Shared news.", visibility="private"))
    )

    assert await ids(gateway, q="news") == await ids(gateway) == [public.id]
    assert sorted(await ids(gateway, q="news", user="anna")) == sorted([public.id, of_anna.id])
    facets = await gateway.ok("GET", "/api/memory/facets")
    assert (facets["counted"], list(facets["metadata"]["kind"])) == (1, [{"value": "news", "count": 1}])
    assert (await gateway.ok("GET", "/api/memory/stats"))["kems"] == 1
    assert (await gateway.ok("GET", "/api/memory/stats", params={"user": "anna"}))["kems"] == 2
    for kem in (of_anna, only_at_hand):
        denied = await gateway.no("GET", f"/api/memory/kems/{kem.id}")
        assert denied == await gateway.no("GET", "/api/memory/kems/kem_missing")
        assert denied[:2] == (404, "not_found")
        assert (await gateway.ok("GET", f"/api/memory/kems/{kem.id}", params={"user": "anna"}))["id"] == kem.id


async def test_changes_are_told_to_those_who_may_read_the_unit(gateway: Served) -> None:
    alice = gateway.bus.acting_as("agent.alice")
    at = "/api/memory/changes"
    async with gateway.stream("GET", at) as all_of_ours, gateway.stream("GET", at, params={"user": "anna"}) as annas:
        secret = await store(gateway, "Secret.", visibility="readers", readers=["user.anna"])
        public = await store(gateway, "Public.", metadata={"kind": "news"})
        shared = await alice.request(PublishKem(kem=a_draft("Shared.")))
        assert [await next_change(annas) for _ in range(3)] == [
            ("stored", secret.id),
            ("stored", public.id),
            ("published", shared.id),
        ]
        await alice.request(UpdateKem(kem_id=public.id, changes=KemChanges(content="Hidden.", visibility="private")))
        await alice.request(DeleteKem(kem_id=public.id))
        await alice.request(DeleteKem(kem_id=secret.id))
        last = await store(gateway, "Last.")

        assert [await next_change(annas) for _ in range(3)] == [
            ("deleted", public.id),
            ("deleted", secret.id),
            ("stored", last.id),
        ]
        assert [await next_change(all_of_ours) for _ in range(4)] == [
            ("stored", public.id),
            ("published", shared.id),
            ("deleted", public.id),
            ("stored", last.id),
        ]


async def test_changes_are_told_by_a_filter(gateway: Served) -> None:
    wanted = {"filter": "metadata.kind=plan AND KEM_UPDATED"}
    async with gateway.stream("GET", "/api/memory/changes", params=wanted) as frames:
        other = await store(gateway, "A report.", metadata={"kind": "report"})
        plan = await store(gateway, "A plan.", metadata={"kind": "plan"})
        for kem in (other, plan):
            await gateway.bus.acting_as("agent.alice").request(
                UpdateKem(kem_id=kem.id, changes=KemChanges(content="Другой план."))
            )
        frame = await anext(frames)

    assert (frame.event, frame.data["kem_id"], frame.data["version"]) == ("updated", plan.id, 2)
    assert frame.data["kem"]["content"] == "Другой план."


async def test_what_cannot_be_asked_is_refused_with_its_place(gateway: Served) -> None:
    for path, params, status, reason in (
        ("kems", {"filter": "metadata.a=1 AND AND metadata.b=2"}, 422, "At character 18: expected a condition"),
        ("facets", {"filter": "colour=red"}, 422, "At character 1: unknown field colour"),
        ("changes", {"filter": "metadata.a="}, 422, "At character 12: expected a value"),
        ("kems", {"filter": "KEM_DELETED"}, 422, "event types are for watching"),
        ("kems", {"q": ""}, 422, "query.q: String should have at least 1 character"),
        ("kems", {"user": "no one"}, 422, "query.user: a user id has"),
        ("kems", {"limit": 1000}, 422, "query.limit: Input should be less than or equal to 200"),
        ("kems", {"cursor": "x", "q": "x"}, 422, "The cursor is not one"),
        ("kems/a%20b", {}, 422, "path.kem_id: String should match"),
    ):
        answered = await gateway.no("GET", f"/api/memory/{path}", params=params)
        assert answered[0] == status, path
        assert reason in answered[2]


async def test_without_memory_the_gateway_says_so(settings: FleetSettings) -> None:
    async with serving(settings=settings) as gateway:
        for path in ("kems", "kems/kem_1", "facets", "stats"):
            assert (await gateway.no("GET", f"/api/memory/{path}"))[:2] == (503, "unavailable")


async def test_units_are_added_changed_and_deleted(gateway: Served) -> None:
    new = {"content": "The release is in March.", "metadata": {"kind": "plan"}}
    answer = await gateway.http.post("/api/memory/kems", json=new)
    unit = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/memory/kems/{unit['id']}")
    assert (unit["visibility"], unit["owner"]) == ("private", "user.local")

    path = f"/api/memory/kems/{unit['id']}"
    changed = await gateway.ok("PATCH", path, json={"content": "The release is in May."})
    assert (changed["content"], changed["metadata"], changed["version"]) == (
        "The release is in May.",
        new["metadata"],
        2,
    )
    assert (await gateway.no("PATCH", path, json={}))[:2] == (422, "invalid")
    assert (await gateway.no("POST", "/api/memory/kems", json={"metadata": {}}))[0] == 422

    assert (await gateway.http.delete(path)).status_code == 204
    assert (await gateway.no("GET", path))[:2] == (404, "not_found")
    assert (await gateway.no("DELETE", path))[:2] == (404, "not_found")


async def test_any_command_is_sent_once_under_its_key(gateway: Served) -> None:
    names = {each["name"] for each in await gateway.ok("GET", "/api/commands")}
    assert {"storage.get_artifact", "swm.increment_counter", "glm.store_kem"} <= names
    assert "kem" in (await gateway.ok("GET", "/api/commands/glm.store_kem"))["required"]

    stored = {"kem": {"content": "The roof in Riga leaks."}}
    once = {"Idempotency-Key": "k-1"}
    twice = [await gateway.ok("POST", "/api/commands/glm.store_kem", json=stored, headers=once) for _ in range(2)]
    assert twice[0] == twice[1]
    assert await ids(gateway) == [twice[0]["id"]]

    assert (await gateway.no("POST", "/api/commands/glm.store_kem", json={}))[:2] == (422, "invalid")
    assert (await gateway.no("POST", "/api/commands/no.such", json={}))[:2] == (404, "not_found")
    assert (await gateway.no("GET", "/api/commands/no.such"))[:2] == (404, "not_found")
