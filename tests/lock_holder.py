"""An agent that takes one lock again and again, until it is killed; it writes down each time that it is inside."""

import asyncio
import fcntl
import sys
import time
from pathlib import Path

from bus_schema.replies import Code
from bus_schema.swm import AcquireLock, ReleaseLock
from config.settings import FleetSettings
from mindbus import ReplyError, connect

LOCK = "region"
LEASE_MS = 1000
WITHIN_S = 60.0
_INSIDE_S = 0.003


async def hold_for_ever(name: str, settings: FleetSettings, region: Path) -> None:
    async with connect(f"agent.{name}", settings=settings) as bus:
        while True:
            wanted = AcquireLock(name=LOCK, lease_ms=LEASE_MS, wait_ms=round(WITHIN_S * 1000))
            lock = await bus.request(wanted, timeout_s=WITHIN_S)
            with region.open("a") as file:
                # Whoever finds somebody else inside fails here; a process that is killed is out.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.write(f"{lock.fencing} {time.monotonic():.3f} {name}\n")
                file.flush()
                await asyncio.sleep(_INSIDE_S)
            try:
                await bus.request(ReleaseLock(name=LOCK, token=lock.token), timeout_s=WITHIN_S)
            except ReplyError as refused:
                # On a busy machine the lease may have ended first, which is no reason to give up.
                if refused.code is not Code.CONFLICT:
                    raise


if __name__ == "__main__":
    given = FleetSettings(amqp_url=sys.argv[2], data_dir=Path(sys.argv[3]))
    asyncio.run(hold_for_ever(sys.argv[1], given, Path(sys.argv[4])))
