"""Reports of a process's metrics, told on the bus, so that one endpoint has those of the whole fleet."""

import asyncio
import base64
import os
import socket
import zlib
from collections.abc import Mapping

from bus_schema.fleet import MAX_METRICS_CHARS, ProcessMetrics
from mindbus.logs import logger
from mindbus.runtime.service import Service
from mindbus.settings import Settings
from mindbus.tasks import Supervised


class MetricsReports:
    """Tells the metrics of this process again and again, in the name of its first worker."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._name, self._teller = next(iter(services.items()))

    async def tell(self) -> None:
        """Tell them once. Raises BusUnavailable."""
        # Of a process with many workers it takes a tenth of a second, in which nobody should wait.
        text = await asyncio.to_thread(_exposition)
        if len(text) > MAX_METRICS_CHARS:
            logger().warning("too many metrics to be told on the bus", chars=len(text), most=MAX_METRICS_CHARS)
            return
        process = f"{self._name}@{socket.gethostname()}.{os.getpid()}"
        await self._teller.tell(ProcessMetrics(process=process, exposition=text))

    async def keep_telling(self, settings: Settings) -> None:
        """Tell them at the interval of the settings, where there is one, for ever."""
        if settings.metrics_interval_s:
            await Supervised("metrics", self.tell, settings.metrics_interval_s).run(begins_at_once=True)


def _exposition() -> str:
    """All metrics of this process as Prometheus reads them, compressed, in base64."""
    from prometheus_client import generate_latest

    return base64.b64encode(zlib.compress(generate_latest())).decode()
