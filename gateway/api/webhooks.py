"""Webhooks over HTTP: events of the timeline, sent to an address of one's own, signed."""

import base64
import hashlib
import hmac
import json
import secrets
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.ids import mint
from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, TimelineEvent, Topic
from gateway.access_tokens import OWNER
from gateway.backend import Backend, BackendDependency
from gateway.timeline_tail import sequence_of
from gateway.webhooks.delivery import DeliveryFailed, WebhookSender
from gateway.webhooks.destination import destination_of
from gateway.webhooks.store import Kind, Webhook, webhooks_of
from mindbus.accounts import accounts_of
from mindbus.errors import Rejected

router = APIRouter(tags=["webhooks"])

EVENTS: Kind = "events"
_SECRET = "whsec_"  # the mark of such a secret, not one
_PAGE = 50

WebhookId = Annotated[str, Path(pattern=r"^hook_[A-Za-z0-9_-]{1,64}$")]


class NewWebhook(BaseModel):
    """Address to send events to, of some topics or of all."""

    model_config = ConfigDict(extra="forbid")
    url: str = Field(max_length=2000, pattern=r"^https?://")
    topics: list[Topic] = Field(default=[], max_length=20)


class EventWebhook(BaseModel):
    """A webhook; `problem` says why the last attempts failed; `secret` is shown only once, when it is created."""

    id: str
    url: str
    topics: list[str]
    failures: int = 0
    problem: str = ""
    last_arrived_at: AwareDatetime
    secret: str | None = None


@router.get("/webhooks")
async def webhooks(backend: BackendDependency) -> list[EventWebhook]:
    """Your own webhooks."""
    return [_shown(each) for each in webhooks_of(backend.settings).of(EVENTS, backend.account.identity)]


@router.post("/webhooks", status_code=201)
async def add_webhook(new: NewWebhook, backend: BackendDependency) -> EventWebhook:
    """Send the events that you may see to an address from now on, each until it arrives, for a day at most.

    They are signed according to Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    """
    await destination_of(new.url, backend.settings.gateway_webhook_hosts)
    secret = _SECRET + base64.b64encode(secrets.token_bytes(32)).decode()
    webhook = Webhook(
        id=mint("hook"),
        identity=backend.account.identity,
        kind=EVENTS,
        subject=",".join(new.topics),
        url=new.url,
        secret=secret,
        delivered=await backend.tail.start_cursor(None),
        since=backend.clock().timestamp(),
    )
    webhooks_of(backend.settings).save(webhook)
    return _shown(webhook).model_copy(update={"secret": secret})


@router.delete("/webhooks/{webhook_id}", status_code=204)
async def remove_webhook(webhook_id: WebhookId, backend: BackendDependency) -> None:
    """Stop sending events to a webhook."""
    store = webhooks_of(backend.settings)
    found = [each for each in store.of(EVENTS, backend.account.identity) if each.id == webhook_id]
    if not found:
        raise Rejected(Code.NOT_FOUND, f"there is no webhook {webhook_id}")
    store.remove(found[0])


class EventDelivery:
    """Sends the events of the timeline that follow what has arrived."""

    def __init__(self, backend: Backend, sender: WebhookSender) -> None:
        self._backend, self._sender = backend, sender

    async def deliver(self, webhook: Webhook) -> Webhook | None:
        """The webhook with what has arrived; None where its account is gone. Raises DeliveryFailed, MindBusError."""
        is_owner = webhook.identity == OWNER.identity
        account = OWNER if is_owner else accounts_of(self._backend.settings).of_identity(webhook.identity)
        if account is None:
            return None
        topics = tuple(filter(None, webhook.subject.split(",")))
        page = await self._backend.of(account).recorded(
            GetTimeline(topics=topics, cursor=webhook.delivered, limit=_PAGE)
        )
        arrived = webhook
        for event in page.items:
            try:
                await self._send(webhook, event)
            except DeliveryFailed:
                if arrived == webhook:
                    raise
                # What has arrived is kept; the rest is tried at once, and waits if it fails again.
                return arrived
            arrived = arrived.arrived(str(sequence_of(event)), self._backend.clock().timestamp())
        return arrived

    async def _send(self, webhook: Webhook, event: TimelineEvent) -> None:
        fields: dict[str, Any] = {
            "type": event.name,
            "timestamp": event.time.isoformat(),
            "data": event.envelope.model_dump(mode="json", exclude_none=True),
        }
        body = json.dumps(fields, ensure_ascii=False).encode()
        at = str(int(self._backend.clock().timestamp()))
        headers = {
            "webhook-id": event.event_id,
            "webhook-timestamp": at,
            "webhook-signature": signature(webhook.secret, event.event_id, at, body),
        }
        await self._sender.post(webhook.url, body, headers)


def signature(secret: str, event_id: str, at: str, body: bytes) -> str:
    """HMAC-SHA256 of id, time and body, as standardwebhooks.com has it."""
    key = base64.b64decode(secret.removeprefix(_SECRET))
    made = hmac.new(key, f"{event_id}.{at}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def _shown(webhook: Webhook) -> EventWebhook:
    return EventWebhook(
        id=webhook.id,
        url=webhook.url,
        topics=[topic for topic in webhook.subject.split(",") if topic],
        failures=webhook.failures,
        problem=webhook.problem,
        last_arrived_at=datetime.fromtimestamp(webhook.since, UTC),
    )
