"""Calls of models: for whom they count is checked here, so that whoever counts them believes storage alone."""

from bus_schema.delegation import CLIENTS, is_of_fleet
from bus_schema.dialogue import conversation_trace
from bus_schema.identities import Principal
from bus_schema.messages import Nothing
from bus_schema.model_calls import GetTokensToday, ModelCalled, RecordModelCall, TokensToday
from bus_schema.replies import Code
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from mindbus.errors import Rejected
from storage_service.acl import is_talk_of_another
from storage_service.service import StorageService


class ModelCallHandlers:
    """Handlers of calls of models."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def record(self, command: RecordModelCall, context: MessageContext) -> tuple[Nothing, Publish]:
        if context.envelope.service in (*CLIENTS, "gateway") and not context.is_operator:
            raise Rejected(Code.UNAUTHORIZED, "workers alone record calls of models")
        owner, trace = context.requester if command.user_id is None else f"user.{command.user_id}", context.trace_id
        if command.user_id is not None and not await self._may_count(owner, context):
            raise Rejected(Code.UNAUTHORIZED, f"{context.owner} calls no model for {owner}")
        is_guest = not is_of_fleet(context.owner)
        if is_guest and trace is not None and is_talk_of_another(trace, owner):
            raise Rejected(Code.UNAUTHORIZED, f"{trace} is the dialogue of somebody else")
        if trace is None and command.user_id is not None:
            trace = conversation_trace(command.user_id)
        is_kept = command.call is not None
        if command.call is not None:
            call = command.call.model_copy(update={"caller": context.owner})
            is_kept = await self._storage.model_calls.keep(
                command, call, Principal(owner, trace, is_guest=is_guest), context.step_id
            )
        if command.cost.tokens:
            await self._storage.tokens.add(command.cost.tokens)
        event = ModelCalled(
            call_id=command.call_id,
            user_id=command.user_id,
            caller=context.owner,
            cost=command.cost,
            is_kept=is_kept,
        )
        return Nothing(), Publish(event, trace=trace, step=context.step_id)

    @on_command
    async def get_tokens_today(self, query: GetTokensToday) -> TokensToday:
        day, tokens = await self._storage.tokens.today()
        return TokensToday(day=day, tokens=tokens)

    async def _may_count(self, owner: str, context: MessageContext) -> bool:
        """Whether somebody may call models for a person: the fleet, the person, who takes part in a run of theirs."""
        if context.owner == owner or is_of_fleet(context.owner):
            return True
        trace = context.trace_id
        return trace is not None and await self._storage.traces.have_in_common(trace, (owner, context.owner))
