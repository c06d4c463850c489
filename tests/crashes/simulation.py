"""An event loop without a clock, a socket or a thread, so that the order of everything is the test's to choose."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs whatever can run now and then stops; what waits for a time waits until the test lets that time come.

    Work for threads is done at once, in place.
    """

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[asyncio.TimerHandle] = []
        self._now_s = 0.0
        self.mistakes: list[dict[str, Any]] = []

    def run_ready(self) -> None:
        """Go on until everybody waits."""
        if not self._ready:
            return
        asyncio._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)

    def let_time_pass(self) -> bool:
        """Wake whoever waits for the nearest time; whether anybody did."""
        while self._timers:
            timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._now_s = max(self._now_s, timer.when())
                self._ready.append(timer)
                return True
        return False

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, timer)
        return timer

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by the handle; it is passed over when its time comes."""

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> "asyncio.Future[T]":
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as failure:  # noqa: BLE001  # it is whoever awaits the result that meets it
            done.set_exception(failure)
        return done

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **_kwargs: Any
    ) -> "asyncio.Task[Any]":
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def time(self) -> float:
        return self._now_s

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.mistakes.append(context)
