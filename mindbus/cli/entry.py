"""The executable `mindbus`: a Ctrl-C while Python still imports ends it as quietly as one later on."""

import sys

_INTERRUPTED = 130


def main() -> None:
    try:
        # Imported here, for it takes a moment in which somebody may change their mind.
        from mindbus.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
