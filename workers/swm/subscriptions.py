"""Subscriptions to changes in shared memory."""

from bus_schema.ids import derived
from bus_schema.swm import Subscribe, Subscription, Unsubscribe
from memory.swm.subscriptions import Subscriptions
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.principal import Principal


class SubscriptionHandlers:
    """Handlers of subscriptions to changes."""

    def __init__(self, bus: Client, subscriptions: Subscriptions) -> None:
        self._bus, self._subscriptions = bus, subscriptions

    @on_command
    async def subscribe(self, command: Subscribe, context: MessageContext) -> Subscription:
        # Whose it is goes by who asks, so that nobody takes another's name.
        cause = (context.message_id,) if command.name is None else (context.owner, command.name)
        subscription_id = f"sub_{derived(cause[0], 'subscription', *cause[1:]).replace('-', '')}"
        # The queue is first: from the moment that the subscription is known, nothing is missed.
        queue = await self._bus.keep_queue(subscription_id)
        principal = Principal(context.requester)
        await self._subscriptions.add(subscription_id, command.agent_id, command.topics, principal)
        return Subscription(subscription_id=subscription_id, queue=queue)

    @on_command
    async def unsubscribe(self, command: Unsubscribe, context: MessageContext) -> None:
        principal = Principal(context.requester)
        await self._subscriptions.remove(command.subscription_id, principal)
        await self._bus.drop_queue(command.subscription_id)
