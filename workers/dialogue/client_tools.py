"""Tools of whoever asks, beside the dialogue's own: their calls end the answer until the asker brings the results."""

from collections.abc import Collection, Sequence
from itertools import chain, count

from agents.dialogue.agent import DelegationRound, Delegator
from agents.dialogue.delegation import DELEGATION_PREFIX
from agents.models.conversation import history_calls
from agents.models.language_model import ModelMessage, Tool, ToolCall
from bus_schema.client_tools import ANY_TOOL, ClientTools, ToolRound
from bus_schema.dialogue import Answered
from bus_schema.history import HistoryToolCall
from workers.dialogue.transcript import ExchangeRecord

_LONGEST_NAME = 64


class ToolsCalled(Exception):
    """The model has called tools of the asker: instead of an answer, these calls are due."""

    def __init__(self, answered: Answered) -> None:
        super().__init__()
        self.answered = answered


class ClientToolRounds:
    """Delegator with the asker's tools. One that is called as a tool of the dialogue is shown under another name."""

    def __init__(self, own: Delegator, client: ClientTools, record: ExchangeRecord, taken: Collection[str]) -> None:
        self._own, self._client, self._record = own, client, record
        self._taken = {*taken, *(tool.name for tool in own.tools)}
        self._shown: dict[str, str] = {}
        for tool in client.tools:
            self._shown[tool.name] = self._free_name(tool.name)
        self.waiting: tuple[HistoryToolCall, ...] = ()
        self.choice = client.choice if client.choice == ANY_TOOL else self._shown.get(client.choice or "")
        self.tools: Sequence[Tool] = (
            *own.tools,
            *(Tool(**{**tool.model_dump(), "name": self._shown[tool.name]}) for tool in client.tools),
        )

    @property
    def most_rounds(self) -> int:
        """Rounds of the asker are theirs to limit."""
        return self._own.most_rounds + len(self._client.rounds)

    @property
    def completed(self) -> Sequence[DelegationRound]:
        return self._own.completed

    async def bring(self) -> None:
        """Keep the rounds for which the asker has brought results, those that are kept already left out."""
        known = {call.id for each in self._record.rounds for call in each.said.tool_calls}
        for brought in self._client.rounds:
            if brought.calls[0].id not in known:
                await self._record.add_round(self._round(brought))
        self._record.mark_told(self._client.call_ids)

    async def delegate(self, number: int, text: str, calls: Sequence[ToolCall]) -> DelegationRound:
        """Carry out the dialogue's own calls; those of the asker are left waiting."""
        named = {shown: name for name, shown in self._shown.items()}
        own = [call for call in calls if call.name not in named]
        theirs = [call for call in calls if call.name in named]
        done = await self._own.delegate(number, text, own) if own else None
        if not theirs:
            assert done is not None
            return done
        self.waiting = history_calls(
            ToolCall(id=f"ask_{number}_{place}", name=named[call.name], arguments=call.arguments or "{}")
            for place, call in enumerate(theirs)
        )
        return DelegationRound(ModelMessage(role="assistant", content=text), (), is_open=True)

    def _round(self, brought: ToolRound) -> DelegationRound:
        contents = {result.call_id: result.content for result in brought.results}
        calls = tuple(
            ToolCall(id=call.id, name=self._shown_name(call.function.name), arguments=call.function.arguments)
            for call in brought.calls
        )
        results = tuple(
            ModelMessage(role="tool", content=contents[call.id], tool_call_id=call.id, name=call.name) for call in calls
        )
        content = self._record.untold(brought.content)
        return DelegationRound(ModelMessage(role="assistant", content=content, tool_calls=calls), results)

    def _shown_name(self, name: str) -> str:
        return self._shown.get(name) or self._free_name(name)

    def _free_name(self, name: str) -> str:
        taken = self._taken | set(self._shown.values())
        names = chain([name], (f"client{number or ''}_{name}"[:_LONGEST_NAME] for number in count()))
        return next(each for each in names if each not in taken and not each.startswith(DELEGATION_PREFIX))
