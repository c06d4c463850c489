"""Delivery of webhooks: one request to the address that was checked, no redirect; ever later after failures."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import httpx

from gateway.backend import Backend
from gateway.webhooks.destination import ForbiddenDestination, destination_of
from gateway.webhooks.store import Kind, Webhook, WebhookStore
from mindbus.errors import MindBusError
from mindbus.logs import logger

_REQUEST_S = 10.0
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
            own = {"Host": httpx.URL(url).netloc.decode(), "Content-Type": "application/json", **headers}
            request = self._http.build_request("POST", pinned, content=body, headers=own)
            request.extensions["sni_hostname"] = to.host
            async with asyncio.timeout(_REQUEST_S):
                response = await self._http.send(request, stream=True)
                await response.aclose()
        except ForbiddenDestination as error:
            raise DeliveryFailed(str(error)) from error
        except TimeoutError as error:
            raise DeliveryFailed(f"no answer within {_REQUEST_S:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
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
                async with asyncio.TaskGroup() as attempts:
                    for webhook in due:
                        attempts.create_task(self._attempt(webhook), name=f"webhook {webhook.id}")
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
            except Exception as error:  # noqa: BLE001  # one that nobody has foreseen keeps no other from being delivered
                logger().exception("webhook fails unexpectedly")
                self._failed(webhook, type(error).__name__)
                return
        if after is None:
            self._store.remove(webhook)
        elif after != webhook:
            self._store.update(after)

    def _failed(self, webhook: Webhook, why: str) -> None:
        now = self._backend.clock().timestamp()
        after = webhook.failed(why, now)
        host = urlsplit(webhook.url).hostname
        again_in_s = None if after is None else after.due_at - now
        logger().warning("webhook not delivered", host=host, again_in_s=again_in_s, reason=why)
        if after is None:
            self._store.remove(webhook)
        else:
            self._store.update(after)
