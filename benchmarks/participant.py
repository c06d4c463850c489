"""One process of a measurement: reads its job from standard input, says when it is ready, then what it saw."""

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

from pydantic import BaseModel

from benchmarks.jobs import CALLERS, WINDOW, Asked, Contestant, Handled, Job, Name, Spent
from benchmarks.orders import PlaceOrder, Receipt, order, receipt
from mindbus.logs import configure_logs

READY = "ready"


def contestant_of(name: Name) -> Contestant:
    """Imported only here, so that each process pays for its own library alone."""
    match name:
        case "mindbus":
            from benchmarks.on_mindbus import OnMindBus

            return OnMindBus()
        case "faststream":
            from benchmarks.on_faststream import OnFastStream

            return OnFastStream()
        case "aio_pika":
            from benchmarks.on_aio_pika import OnAioPika

            return OnAioPika()


async def handle(job: Job) -> Handled:
    """Handle that many messages, then stop."""
    serials: list[int] = []
    first = last = (0.0, 0.0)
    done = asyncio.Event()

    def note(placed: PlaceOrder) -> Receipt:
        nonlocal first, last
        serials.append(placed.serial)
        last = time.monotonic(), time.process_time()
        if len(serials) == 1:
            first = last
        if len(serials) == job.messages:
            done.set()
        return receipt(placed)

    async with contestant_of(job.contestant).worker(job, note):
        _say_ready()
        if job.messages:
            await done.wait()
        else:
            await _told_to_stop()
    return Handled(began_s=first[0], ended_s=last[0], cpu_s=last[1] - first[1], serials=serials)


async def publish(job: Job) -> Spent:
    """Publish that many messages, a window of them at a time."""
    orders = map(order, range(job.messages))
    async with contestant_of(job.contestant).publisher(job) as send:
        _say_ready()
        began_s, cpu_s = time.monotonic(), time.process_time()
        await asyncio.gather(*(_send_all(orders, send) for _ in range(WINDOW)))
        return Spent(began_s=began_s, ended_s=time.monotonic(), cpu_s=time.process_time() - cpu_s)


async def ask(job: Job) -> Asked:
    """Ask that many times for each number of callers."""
    took_ms: dict[int, list[float]] = {callers: [] for callers in CALLERS}
    orders = map(order, itertools.count())
    async with contestant_of(job.contestant).principal(job) as put:
        await put(next(orders))  # whatever the first one sets up
        _say_ready()
        for callers, took in took_ms.items():
            share = itertools.islice(orders, job.messages)
            await asyncio.gather(*(_ask_all(share, put, took) for _ in range(callers)))
    return Asked(took_ms=took_ms)


async def _send_all(orders: Iterator[PlaceOrder], send: Callable[[PlaceOrder], Awaitable[object]]) -> None:
    for placed in orders:
        await send(placed)


async def _ask_all(
    orders: Iterator[PlaceOrder], put: Callable[[PlaceOrder], Awaitable[Receipt]], took_ms: list[float]
) -> None:
    for placed in orders:
        asked_at = time.perf_counter()
        answer = await put(placed)
        took_ms.append((time.perf_counter() - asked_at) * 1000)
        if answer != receipt(placed):
            raise AssertionError(f"the answer to {placed.serial} was {answer}")


async def _told_to_stop() -> None:
    await asyncio.to_thread(sys.stdin.readline)


def _say_ready() -> None:
    print(READY, flush=True)


def main() -> None:
    configure_logs("ERROR", "console")
    job = Job.model_validate_json(sys.stdin.readline())
    roles: dict[str, Callable[[Job], Awaitable[BaseModel]]] = {"handle": handle, "publish": publish, "ask": ask}

    async def play() -> BaseModel:
        return await roles[job.role](job)

    print(asyncio.run(play()).model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
