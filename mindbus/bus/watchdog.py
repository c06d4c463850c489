"""Tells when the event loop is held up: heartbeats and confirms suffer first."""

import asyncio

from prometheus_client import Histogram

from mindbus.logs import logger

LAG = Histogram("mindbus_loop_lag_seconds", "How late the event loop wakes a sleeper")
_INTERVAL_S = 0.5
_ALARM_S = 0.5


async def watch_loop() -> None:
    """Measure for ever; whoever blocks the loop for long is named by the time of the log line at least."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL_S
        await asyncio.sleep(_INTERVAL_S)
        lag_s = loop.time() - due
        LAG.observe(max(lag_s, 0))
        if lag_s > _ALARM_S:
            logger().warning("event loop was held up", lag_s=round(lag_s, 2))
