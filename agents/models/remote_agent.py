"""A remote agent that speaks A2A, in the place of a language model: it is told the prompt, its answer is the text."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from agents.environment_variables import VariableMissing, with_variables
from agents.models.errors import ModelRefused, ModelUnavailable, NeedsLanguageModel
from agents.models.language_model import DEFAULTS, Chunk, Completion, ModelMessage, ModelParams, Tool
from mindbus.logs import logger

if TYPE_CHECKING:
    from a2a.client import Client
    from a2a.types import Artifact, Message, Task

_FIRST_LOOK_S, _SLOWEST_LOOK_S = 0.3, 5.0
_REQUEST_S = 60.0


class RemoteAgent(BaseModel):
    """Address of a remote agent; values of `headers` may name environment variables, as `${TOKEN}`.

    `skill` is told in the metadata of the message, where the other side knows such a thing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    url: str = Field(pattern=r"^https?://")
    headers: dict[str, str] = {}
    skill: str | None = Field(default=None, max_length=200)


class RemoteAgentModel:
    """Asks the agent; `id_of` makes the id of a message of its text: what is asked again is one task there."""

    def __init__(self, agent: RemoteAgent, id_of: Callable[[str], str]) -> None:
        self._agent, self._id_of = agent, id_of
        self.name = f"a2a:{urlsplit(agent.url).hostname}"

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        """Raises ModelUnavailable, ModelRefused; NeedsLanguageModel where a schema is asked for."""
        if schema is not None:
            raise NeedsLanguageModel(f"{self.name} is an agent and fills in no schema")
        began = time.monotonic()
        text = await self.ask("\n\n".join(message.content for message in messages if message.content))
        return Completion(text=text, model_name=self.name, took=timedelta(seconds=time.monotonic() - began))

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        completion = await self.complete(messages, tools=tools, params=params)
        yield Chunk(text=completion.text)
        yield Chunk(completion=completion)

    async def aclose(self) -> None:
        """Nothing is kept open."""

    async def ask(self, text: str) -> str:
        """The agent's answer; its task is followed through broken connections. Raises as `complete` does."""
        import httpx
        from a2a.client.card_resolver import A2ACardResolver
        from a2a.client.client import ClientConfig
        from a2a.client.client_factory import ClientFactory
        from a2a.utils.errors import A2AError

        from retrieval.openai_client import certificates

        try:
            headers = with_variables(self._agent.headers)
            async with httpx.AsyncClient(headers=headers, timeout=_REQUEST_S, verify=certificates()) as http:
                card = await A2ACardResolver(http, self._agent.url).get_agent_card()
                config = ClientConfig(streaming=False, polling=True, httpx_client=http)
                client = ClientFactory(config).create(card)
                found = await self._sent(client, text)
                return found if isinstance(found, str) else await self._end_of(client, found)
        except VariableMissing as error:
            raise ModelRefused(str(error)) from error
        except httpx.HTTPError as error:
            raise ModelUnavailable(f"{self.name}: {type(error).__name__}") from error
        except A2AError as error:
            raise ModelUnavailable(f"{self.name}: {error}") from error

    async def _sent(self, client: "Client", text: str) -> "str | Task":
        """The answer, or the task that becomes one."""
        from a2a.types import Message, Part, Role, SendMessageRequest

        message = Message(message_id=self._id_of(text), role=Role.ROLE_USER, parts=[Part(text=text)])
        if self._agent.skill:
            message.metadata.update({"skill": self._agent.skill})
        async for event in client.send_message(SendMessageRequest(message=message)):
            if event.HasField("message"):
                return _text_of(event.message)
            if event.HasField("task"):
                return event.task
        raise ModelUnavailable(f"{self.name} has sent neither a message nor a task")

    async def _end_of(self, client: "Client", task: "Task") -> str:
        import httpx
        from a2a.types import GetTaskRequest, TaskState
        from a2a.utils.errors import A2AError

        under_way = {TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING}
        wait_s = _FIRST_LOOK_S
        while task.status.state in under_way:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _SLOWEST_LOOK_S)
            try:
                task = await client.get_task(GetTaskRequest(id=task.id))
            except (httpx.HTTPError, A2AError) as error:
                # The other side may be starting anew; whoever asks knows how long to wait.
                logger().warning("remote agent does not answer", agent=self.name, reason=type(error).__name__)
        if task.status.state == TaskState.TASK_STATE_COMPLETED:
            return "\n\n".join(map(_text_of, task.artifacts)) or _text_of(task.status.message)
        words = _text_of(task.status.message) or TaskState.Name(task.status.state)
        if task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
            return words
        raise ModelRefused(f"{self.name}: {words}")


def _text_of(holder: "Message | Artifact") -> str:
    return "\n".join(part.text for part in holder.parts if part.text)
