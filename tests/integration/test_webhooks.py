"""Events that are sent to others: signed, in order, each until it has arrived, to nobody who may not be sent to."""

import base64
import hashlib
import hmac
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gateway.webhooks.store import Webhook, WebhookStore
from mindbus.accounts import AccessRole, accounts_of
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.gateways import gateway_settings, serving
from tests.installed import FLEET
from tests.webhook_receiver import Receiver, receiving

pytestmark = pytest.mark.rabbit


@pytest.fixture
def failing_once(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Error]:
    """What reading the webhooks fails with, the first time that they are to be delivered."""
    failures: list[sqlite3.Error] = [sqlite3.OperationalError("disk I/O error")]
    read = WebhookStore.of

    def of(self: WebhookStore, kind: Any, identity: str | None = None) -> list[Webhook]:
        if kind == "events" and identity is None and failures:
            raise failures.pop()
        return read(self, kind, identity)

    monkeypatch.setattr(WebhookStore, "of", of)
    return failures


async def test_events_arrive_signed_and_in_order_though_the_disk_has_failed(
    broker: Broker, vhost_url: str, migrated_folder: Path, failing_once: list[sqlite3.Error]
) -> None:
    access = {"gateway_access": "token", "gateway_webhook_hosts": "127.0.0.1"}
    settings = gateway_settings(broker, vhost_url, migrated_folder, **access)
    anna, boris = (accounts_of(settings).add(name, AccessRole.USER) for name in ("anna", "boris"))
    makers = [FLEET[name] for name in ("storage", "history", "tracker", "dialogue")]
    async with serving(*makers, settings=settings) as served:
        own, others = ({"Authorization": f"Bearer {token}"} for token in (anna, boris))
        with receiving() as url:
            made = await served.ok("POST", "/api/webhooks", json={"url": url, "topics": ["dialogue"]}, headers=own)
            for words in ("Good morning.", "Good night."):
                said = {"message": words}
                await served.ok("POST", "/api/dialogues/anna/messages", json=said, headers=own)
                await served.ok("POST", "/api/dialogues/boris/messages", json=said, headers=others)
            await until(lambda: names().count("message_sent") == 2, 30)
            check(made["secret"])
        assert not failing_once
        path = f"/api/webhooks/{made['id']}"
        assert (await served.no("DELETE", path, headers=others))[:2] == (404, "not_found")
        assert await served.ok("GET", "/api/webhooks", headers=others) == []
        (shown,) = await served.ok("GET", "/api/webhooks", headers=own)
        assert shown["secret"] is None
        assert (await served.http.delete(path, headers=own)).status_code == 204
        refused = await served.no("POST", "/api/webhooks", json={"url": "https://10.0.0.1/"}, headers=own)
        assert refused[:2] == (422, "invalid")


def names() -> list[str]:
    return [body["type"] for _, body, _ in Receiver.received]


def check(secret: str) -> None:
    told = [name for name in names() if name in ("message_received", "message_sent")]
    assert told == ["message_received", "message_sent"] * 2
    assert {body["data"]["data"]["user_id"] for _, body, _ in Receiver.received} == {"anna"}
    for headers, _, body in Receiver.received:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{digest}"
