"""Push notifications of A2A: the task as the bus has it, sent whenever it is another than what has arrived."""

import json
from hashlib import sha256

from a2a.types import AuthenticationInfo, Task, TaskPushNotificationConfig
from a2a.utils.errors import A2AError, InvalidParamsError, TaskNotFoundError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict

from bus_schema.ids import mint
from gateway.a2a.tasks import tasks_of
from gateway.a2a.wire import OVER, answering
from gateway.access_tokens import OWNER
from gateway.backend import Backend
from gateway.webhooks.delivery import DeliveryFailed, WebhookSender
from gateway.webhooks.store import Kind, Webhook, WebhookStore
from mindbus.accounts import Account, accounts_of

TASK: Kind = "task"
_BEGINS_WITHIN_S = 300.0


class PushConfigs:
    """Configurations by which clients are told of their tasks, kept until the task's end has arrived."""

    def __init__(self, backend: Backend, store: WebhookStore, sender: WebhookSender) -> None:
        self._backend, self._store, self._sender = backend, store, sender

    async def add(self, account: Account, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Keep a configuration. Raises ForbiddenDestination, TooManyWebhooks, InvalidParamsError."""
        await self._sender.check(config.url)
        secret = {
            "token": config.token,
            "scheme": config.authentication.scheme,
            "credentials": config.authentication.credentials,
        }
        if not all(value.isascii() and value.isprintable() for value in secret.values()):
            raise InvalidParamsError("token, scheme and credentials are sent as headers: printable ASCII letters only")
        webhook = Webhook(
            id=config.id or mint("push"),
            identity=account.identity,
            kind=TASK,
            subject=config.task_id,
            url=config.url,
            secret=json.dumps(secret),
            since=self._backend.clock().timestamp(),
        )
        self._store.save(webhook)
        return _config(webhook)

    def of_task(self, account: Account, task_id: str) -> list[TaskPushNotificationConfig]:
        """Configurations of an account for a task."""
        return [_config(each) for each in self._store.of(TASK, account.identity) if each.subject == task_id]

    def remove(self, account: Account, task_id: str, config_id: str) -> None:
        """Delete a configuration; it need not exist."""
        self._store.remove(Webhook(config_id, account.identity, TASK, task_id, "", ""))

    async def deliver(self, webhook: Webhook) -> Webhook | None:
        """Send the task if it has changed; None after its end, or where it is nobody's any more."""
        account = OWNER if webhook.identity == OWNER.identity else self._account(webhook.identity)
        if account is None:
            return None
        try:
            task = await self._task(self._backend.of(account), webhook.subject)
        except TaskNotFoundError:
            # It may be just about to begin.
            is_young = self._backend.clock().timestamp() - webhook.since < _BEGINS_WITHIN_S
            return webhook if is_young and not webhook.delivered else None
        except A2AError as error:
            raise DeliveryFailed(f"the task cannot be read: {error}") from error
        fields = MessageToDict(to_stream_response(task))
        body = json.dumps(fields, ensure_ascii=False, sort_keys=True).encode()
        state = sha256(body).hexdigest()
        if state == webhook.delivered:
            return webhook
        await self._sender.post(webhook.url, body, _headers(webhook))
        if task.status.state in OVER:
            return None
        return webhook.arrived(state, self._backend.clock().timestamp())

    def _account(self, identity: str) -> Account | None:
        return accounts_of(self._backend.settings).of_identity(identity)

    @answering
    async def _task(self, backend: Backend, task_id: str) -> Task:
        return await tasks_of(backend, task_id).get(task_id)


def _headers(webhook: Webhook) -> dict[str, str]:
    secret = json.loads(webhook.secret)
    headers = {"X-A2A-Notification-Token": secret["token"]} if secret["token"] else {}
    if secret["scheme"] and secret["credentials"]:
        headers["Authorization"] = f"{secret['scheme']} {secret['credentials']}"
    return headers


def _config(webhook: Webhook) -> TaskPushNotificationConfig:
    """The configuration, without its secrets."""
    config = TaskPushNotificationConfig(id=webhook.id, task_id=webhook.subject, url=webhook.url)
    if scheme := json.loads(webhook.secret)["scheme"]:
        config.authentication.CopyFrom(AuthenticationInfo(scheme=scheme))
    return config
