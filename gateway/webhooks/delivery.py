"""Delivery of webhooks: one request to the address that was checked, no redirect; ever later after failures."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from urllib.parse import urlsplit

import httpx

from gateway.backend import Backend
from gateway.webhooks.destination import ForbiddenDestination, destination_of
from gateway.webhooks.store import Kind, Webhook, WebhookStore
from mindbus.errors import MindBusError
from mindbus.logs import logger

_REQUEST_S = 10.0
_LONGEST_WAIT_S = 300.0
_GIVEN_UP_AFTER_S = 24 * 3600.0
# Between looks at what nobody has told of, and between those that events ask for.
_LOOK_S, _SOON_S = 2.0, 0.1
_AT_ONCE = 8


class DeliveryFailed(Exception):
    """The other side did not take it; the reason."""


# Deliver what there is of one webhook; what it is then, or None where it is done with.
Deliver = Callable[[Webhook], Awaitable[Webhook | None]]


class WebhookSender:
    """Delivers to other companies' servers; `allowed` are those that need be neither public nor encrypted."""

    def __init__(self, http: httpx.AsyncClient, allowed: str) -> None:
        self._http, self._allowed = http, allowed

    async def check(self, url: str) -> None:
        """Raises ForbiddenDestination."""
        await destination_of(url, self._allowed)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a JSON body. Raises DeliveryFailed."""
        try:
            to = await destination_of(url, self._allowed)
            pinned = httpx.URL(url).copy_with(host=to.address)
            own = {"Host": urlsplit(url).netloc, "Content-Type": "application/json", **headers}
            request = self._http.build_request("POST", pinned, content=body, headers=own)
            request.extensions["sni_hostname"] = to.host
            async with asyncio.timeout(_REQUEST_S):
                response = await self._http.send(request, stream=True)
                await response.aclose()
        except ForbiddenDestination as error:
            raise DeliveryFailed(str(error)) from error
        except TimeoutError as error:
            raise DeliveryFailed(f"no answer within {_REQUEST_S:g} s") from error
        except httpx.HTTPError as error:
            raise DeliveryFailed(f"{type(error).__name__}: {error}") from error
        if not response.is_success:
            raise DeliveryFailed(f"HTTP {response.status_code}")


@asynccontextmanager
async def open_sender(allowed: str) -> AsyncIterator[WebhookSender]:
    """A sender that follows no redirects and knows no proxies."""
    async with httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=_REQUEST_S) as http:
        yield WebhookSender(http, allowed)


class Deliveries:
    """Looks again and again at all webhooks of a kind, soon after anything has happened on the bus."""

    def __init__(self, kind: Kind, backend: Backend, store: WebhookStore, deliver: Deliver) -> None:
        self._kind, self._backend, self._store, self._deliver = kind, backend, store, deliver
        self._limit = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Until cancelled."""
        with self._backend.feed.listen() as listener:
            while True:
                now = self._backend.clock().timestamp()
                due = [each for each in self._store.of(self._kind) if each.due_at <= now]
                await asyncio.gather(*(self._attempt(webhook) for webhook in due))
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await listener.wait()
                        listener.take()
                await asyncio.sleep(_SOON_S)

    async def _attempt(self, webhook: Webhook) -> None:
        async with self._limit:
            try:
                after = await self._deliver(webhook)
            except DeliveryFailed as failure:
                self._failed(webhook, str(failure))
                return
            except MindBusError as error:
                # The bus, or storage, is away: what there is to send is asked for again.
                logger().warning("webhook waits", reason=str(error))
                return
        if after is None:
            self._store.remove(webhook)
        elif after != webhook:
            self._store.update(after)

    def _failed(self, webhook: Webhook, why: str) -> None:
        now: datetime = self._backend.clock()
        wait_s = min(2.0**webhook.failures, _LONGEST_WAIT_S)
        host = urlsplit(webhook.url).hostname
        is_last = now.timestamp() - webhook.since > _GIVEN_UP_AFTER_S
        logger().warning("webhook not delivered", host=host, again_in_s=None if is_last else wait_s, reason=why)
        if is_last:
            self._store.remove(webhook)
        else:
            self._store.update(webhook.failed(why, now.timestamp() + wait_s))
