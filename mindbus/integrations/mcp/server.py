"""The MCP server: MindBus's memory, artifacts, runs and tasks as tools, resources and prompts."""

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, InputRequiredResult, Tool, ToolAnnotations

from bus_schema.cards import CardHead, ListCards
from mindbus.bus.client import Client
from mindbus.errors import MindBusError
from mindbus.integrations.mcp.artifacts import ARTIFACT_URI, ArtifactTools
from mindbus.integrations.mcp.commands import CommandTools
from mindbus.integrations.mcp.conversations import ConversationTools
from mindbus.integrations.mcp.participant import ParticipantOf, told
from mindbus.integrations.mcp.runs import CARD_TOOL, RunTools
from mindbus.integrations.mcp.shared_memory import SharedMemoryTools
from mindbus.integrations.mcp.tasks import PersonalTaskTools
from mindbus.logs import logger
from mindbus.version import __version__

_INSTRUCTIONS = """\
MindBus is a team of agents with a memory, on a durable message bus.
Use memory_search and conversation_search before you answer questions about people, projects, plans and decisions;
memory_add for what others should know, too, and conversation_add to keep this conversation.
task_* are the person's own tasks. run_* have a team of agents make something: start one, then watch it with
process_status; where a step is waiting for a person, ask them, then process_answer.
"""
_CARDS_FOR_S = 30.0
_CARDS_WITHIN_S = 5.0

CardSource = Callable[[], Awaitable[Sequence[CardHead]]]


class MindBusServer(MCPServer[Any]):
    """Serves MCP clients; the participant is found anew for each request. Cards become tools as they come and go."""

    def __init__(self, participant_of: ParticipantOf, cards: CardSource) -> None:
        super().__init__("mindbus", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
        self._cards, self._runs = cards, RunTools(participant_of)
        self._card_tools: set[str] = set()
        self._cards_until = 0.0
        memory, said = SharedMemoryTools(participant_of), ConversationTools(participant_of)
        artifacts, tasks = ArtifactTools(participant_of), PersonalTaskTools(participant_of)
        commands, runs = CommandTools(participant_of), self._runs
        self._add(memory.memory_search, memory.memory_get, said.conversation_search, only_reads=True)
        self._add(said.episode_list, said.episode_read, tasks.task_list, runs.process_list, only_reads=True)
        self._add(runs.process_status, artifacts.artifact_list, artifacts.artifact_read, only_reads=True)
        self._add(artifacts.artifact_lineage, commands.command_list, commands.command_schema, only_reads=True)
        self._add(memory.memory_add, said.ask_assistant, said.conversation_add, said.episode_pin)
        self._add(tasks.task_add, tasks.task_complete, artifacts.artifact_put, runs.process_answer)
        self._add(memory.memory_update, memory.memory_delete, tasks.task_update, destroys=True)
        self._add(tasks.task_cancel, runs.process_cancel, commands.command_send, destroys=True)
        self.resource(ARTIFACT_URI, name="artifact", description="The content of an artifact.")(artifacts.resource)
        self.prompt()(plan_my_day)
        self.prompt()(remember_this)

    def _add(self, *tools: Callable[..., Awaitable[Any]], only_reads: bool = False, destroys: bool = False) -> None:
        hints = ToolAnnotations(read_only_hint=only_reads, destructive_hint=destroys)
        for tool in tools:
            self.add_tool(told(tool), annotations=hints)

    async def list_tools(self) -> list[Tool]:
        """As of the library, with a tool for each card that can be started."""
        await self._look_at_cards()
        return await super().list_tools()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """As of the library; a client may know a card's tool from an earlier connection."""
        if name.startswith(CARD_TOOL) and name not in self._card_tools:
            await self._look_at_cards()
        return await super().call_tool(name, arguments, context)

    async def _look_at_cards(self) -> None:
        if monotonic() < self._cards_until:
            return
        try:
            found = await self._cards()
        except MindBusError as error:
            logger().warning("cards cannot be listed", reason=str(error))
            return
        for name in self._card_tools:
            self.remove_tool(name)
        self._card_tools.clear()
        for card in found:
            if card.problem:
                logger().warning("no tool for a card", card=card.name, reason=card.problem)
                continue
            name = f"{CARD_TOOL}{card.name}"
            self.add_tool(told(self._runs.start_of(card)), name=name)
            self._card_tools.add(name)
        self._cards_until = monotonic() + _CARDS_FOR_S


def cards_over(bus: Client) -> CardSource:
    """The cards that the orchestrator knows. Raises ReplyError, BusUnavailable."""

    async def cards() -> Sequence[CardHead]:
        return (await bus.request(ListCards(), timeout_s=_CARDS_WITHIN_S)).items

    return cards


def plan_my_day() -> str:
    """Plan the day around what is due, waits for an answer or was promised."""
    return (
        "Look at my open tasks with task_list, at runs that wait for me with process_list, and at what I have promised "
        "in the last days with conversation_search. Then propose a short plan for today, in order of urgency."
    )


def remember_this(about: str) -> str:
    """Remember the outcome of this conversation."""
    return (
        f"Sum up what we have said here about {about}: facts, decisions and open questions, each in a sentence of its "
        "own that can be understood without the others. Show it to me; once I agree, keep each with memory_add."
    )
