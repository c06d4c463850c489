"""Webhooks are delivered whatever befalls another one, and given up after a day of failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from config.settings import FleetSettings
from gateway.event_feed import EventFeed
from gateway.webhooks import destination
from gateway.webhooks.delivery import Deliver, Deliveries, DeliveryFailed, WebhookSender, open_sender
from gateway.webhooks.store import Webhook, WebhookStore, webhooks_of
from mindbus import connect
from mindbus.bus.worker import utc_now
from mindbus.testing.wait import until
from tests.webhook_receiver import Receiver, receiving

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp()
DAY = 24 * 3600.0


def webhook(name: str, url: str = "https://hooks.example/") -> Webhook:
    return Webhook(name, "user.anna", "events", "", url, "whsec_", since=NOW - 2 * DAY)


def test_one_that_had_nothing_to_send_for_days_is_not_given_up_at_its_first_failure() -> None:
    after = webhook("a").failed("HTTP 502", NOW)

    assert after is not None
    assert (after.failures, after.due_at, after.problem) == (1, NOW + 1, "HTTP 502")


def test_one_that_fails_for_a_day_is_given_up() -> None:
    latest, now = webhook("a"), NOW
    while (after := latest.failed("HTTP 502", now)) is not None:
        latest, now = after, after.due_at

    assert DAY - 300 < now - NOW <= DAY


async def test_a_host_in_letters_of_its_own_language_is_asked_by_its_name_on_the_wire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def here(*_: Any) -> list[IPv4Address]:
        return [IPv4Address("127.0.0.1")]

    monkeypatch.setattr(destination, "_addresses", here)
    async with open_sender("127.0.0.1") as sender:
        with receiving() as url:
            Receiver.away = 0
            port = url.rpartition(":")[2].partition("/")[0]
            await sender.post(f"http://пример.рф:{port}/told", b"{}", {})

    ((headers, _, _),) = Receiver.received
    assert headers["Host"] == f"xn--e1afmkfd.xn--p1ai:{port}"


async def test_what_no_header_can_carry_is_a_failed_delivery() -> None:
    async with open_sender("127.0.0.1") as sender:
        with receiving() as url, pytest.raises(DeliveryFailed, match="UnicodeEncodeError"):
            await sender.post(url, b"{}", {"X-A2A-Notification-Token": "жетон"})


@asynccontextmanager
async def delivering(store: WebhookStore, deliver: Deliver) -> AsyncIterator[None]:
    async with connect(settings=FleetSettings(amqp_url="memory://webhooks")) as bus:
        feed = EventFeed(bus, 5, utc_now)
        backend: Any = SimpleNamespace(feed=feed, clock=utc_now)
        async with feed.receiving():
            running = asyncio.create_task(Deliveries("events", backend, store, deliver).run())
            yield
            assert not running.done()
            running.cancel()
            await asyncio.wait([running])


async def test_one_that_fails_as_nobody_has_foreseen_keeps_no_other_from_being_delivered(tmp_path: Path) -> None:
    store = webhooks_of(FleetSettings(data_dir=tmp_path))
    store.save(webhook("bad"))
    with receiving() as url:
        Receiver.away = 0
        store.save(webhook("good", url))
        async with open_sender("127.0.0.1") as sender, delivering(store, unless_bad(sender)):
            await until(lambda: [each.failures for each in store.of("events") if each.id == "bad"] == [2], 10)

    assert len(Receiver.received) == 1
    assert [(each.id, each.problem) for each in store.of("events")] == [("bad", "KeyError")]


def unless_bad(sender: WebhookSender) -> Deliver:
    """Delivers once and is done; raises what it did not mean to for the bad one."""

    async def deliver(each: Webhook) -> Webhook | None:
        if each.id == "bad":
            raise KeyError(each.id)
        await sender.post(each.url, b"{}", {})
        return None

    return deliver
