"""The executable `mindbus`: a Ctrl-C while Python still imports ends it as quietly as one later on."""

import gc
import sys

_INTERRUPTED = 130
# Imports make a hundred thousand objects, hardly one of which is garbage: to look for it took a sixth of a command.
# What a command that stays leaves in cycles waits a little longer.
_ALLOCATIONS = 50_000


def main() -> None:
    gc.set_threshold(_ALLOCATIONS)
    try:
        # Imported here, for it takes a moment in which somebody may change their mind.
        from mindbus.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    finally:
        # The process ends, and all of its memory with it.
        gc.freeze()
