"""The base of sub-agents: whoever does tasks that the master delegates."""

import asyncio
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import ClassVar

from cachetools import TTLCache

from bus_schema.messages import Nothing
from bus_schema.replies import Code
from bus_schema.subagent import MAX_TASK_CHARS, SERVICE_PREFIX, CancelTask, ExecuteTask, TaskDone
from mindbus.bus.handlers import on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.delegated import Delegated
from mindbus.sdk.failures import BufferFull, StorageAway
from mindbus.tasks import end

MAX_DEPTH = 3
_REMEMBERED = timedelta(hours=1)
_MOST_REMEMBERED = 1000


class SubAgent(Worker, ABC):
    """A consumer of its own: name it `subagent-…`, say in `description` what it is good for, write `execute`.

    A delegation that comes again, since whoever asked has died, waits for the one at work or gets its answer: it is
    not done twice as long as this process lives. Past its deadline, or once it is cancelled, `execute` is cancelled.
    """

    description: ClassVar[str] = ""
    concurrency = 16
    attempts = 3

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus.acting_as(self.identity, service=self.name)
        self.settings, self.clock = context.settings, context.clock
        self.artifacts = open_artifacts(self.bus, context.settings, context.clock)
        self._at_work: dict[str, asyncio.Task[TaskDone]] = {}
        self._done: TTLCache[str, TaskDone] = TTLCache(_MOST_REMEMBERED, _REMEMBERED.total_seconds())

    @abstractmethod
    async def execute(self, work: Delegated) -> str:
        """The answer to a task, told to the master; `work` is where to tell of tools that were used on the way."""

    @property
    def identity(self) -> str:
        """An agent, no service."""
        return f"agent.{self.name}"

    async def start(self) -> None:
        """Open the way to artifacts."""
        await self.artifacts.start()

    async def stop(self) -> None:
        """Close it; what is at work is given up, so that it comes again."""
        for task in list(self._at_work.values()):
            await end(task)
        await self.artifacts.stop()

    @on_command
    async def execute_task(self, order: ExecuteTask) -> TaskDone:
        """Do the task, unless it has been done."""
        if order.depth > MAX_DEPTH:
            raise Rejected(Code.INVALID, f"{order.depth} delegations deep: sub-agents go in a circle; do it yourself")
        done = self._done.get(order.delegation_id)
        if done is not None:
            return done
        task = self._at_work.get(order.delegation_id)
        if task is None:
            task = asyncio.create_task(self._do(order), name=f"delegation {order.delegation_id}")
            self._at_work[order.delegation_id] = task
            task.add_done_callback(lambda _done: self._at_work.pop(order.delegation_id, None))
        # Whoever asked first may be gone, others wait for the same.
        await asyncio.wait([task])
        if task.cancelled():
            raise Rejected(Code.EXPIRED, "the delegation was cancelled")
        return task.result()

    @on_command
    async def cancel_task(self, command: CancelTask) -> Nothing:
        """Give it up, if it is at work."""
        task = self._at_work.get(command.delegation_id)
        if task is not None:
            await end(task)
        return Nothing()

    async def _do(self, order: ExecuteTask) -> TaskDone:
        work = Delegated(order, self.name.removeprefix(SERVICE_PREFIX), self.bus, self.artifacts, self.clock)
        left_s = self.settings.subagent_timeout_s
        if order.deadline is not None:
            left_s = min(left_s, (order.deadline - self.clock()).total_seconds())
        try:
            async with asyncio.timeout(left_s):
                response = (await self.execute(work)).replace("\0", "").strip()[:MAX_TASK_CHARS]
        except TimeoutError as late:
            raise Rejected(Code.EXPIRED, f"not done within {left_s:.3g} s") from late
        except (BufferFull, StorageAway) as away:
            raise TemporaryFailure(str(away)) from away
        if not response:
            raise PermanentFailure(f"{self.name} has answered nothing")
        await work.completed(response)
        done = self._done[order.delegation_id] = TaskDone(response=response, steps=tuple(work.steps))
        logger().info("delegation done", worker=self.name, chat=order.chat_id, tool_calls=done.tool_calls_made)
        return done
