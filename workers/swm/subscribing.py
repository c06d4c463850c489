"""Answers those who want to hear of changes."""

from bus_schema.ids import derived
from bus_schema.swm import Subscribe, Subscription, Unsubscribe
from memory.swm.subscriptions import Subscriptions
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.errors import BusUnavailable, TemporaryFailure
from workers.swm.answering import answering


class SubscribingDesk:
    """The part of the working memory that remembers who listens."""

    bus: Client
    subscriptions: Subscriptions

    @on_command
    async def subscribe(self, command: Subscribe, context: MessageContext) -> Subscription:
        # Whose it is goes by who asks, so that nobody takes another's name.
        cause = (context.message_id,) if command.name is None else (context.owner, command.name)
        subscription_id = f"sub_{derived(cause[0], 'subscription', *cause[1:]).replace('-', '')}"
        try:
            # The queue is first: from the moment that the subscription is known, nothing is missed.
            queue = await self.bus.keep_queue(subscription_id)
        except BusUnavailable as away:
            raise TemporaryFailure(str(away)) from away
        with answering(context) as principal:
            await self.subscriptions.add(subscription_id, command.agent_id, command.topics, principal)
        return Subscription(subscription_id=subscription_id, queue=queue)

    @on_command
    async def unsubscribe(self, command: Unsubscribe, context: MessageContext) -> None:
        with answering(context) as principal:
            await self.subscriptions.remove(command.subscription_id, principal)
        try:
            await self.bus.drop_queue(command.subscription_id)
        except BusUnavailable as away:
            raise TemporaryFailure(str(away)) from away
