"""A task that is to end does, whatever it takes a cancellation for."""

import asyncio

from mindbus.tasks import end


async def deaf(times: int) -> None:
    """Swallow so many cancellations."""
    while times:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            times -= 1
    await asyncio.Event().wait()


async def fails() -> None:
    raise ValueError("a bug")


async def test_a_task_that_swallows_cancellations_ends_all_the_same() -> None:
    tasks = [asyncio.create_task(deaf(times)) for times in (0, 1, 3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await end(*tasks, try_again_s=0.01)
    assert all(task.cancelled() for task in tasks)


async def test_what_a_task_ended_with_is_its_own_affair() -> None:
    over = asyncio.create_task(fails())
    await asyncio.wait({over})
    await end(over)
    await end()
