"""Remarks on standard error: nobody has to read them."""

import os
import subprocess
import sys

REMARKS = """
from mindbus.cli.console import note, say

note("storage is ready")
note("history is ready")
say("MindBus is up.")
"""


def test_whoever_stops_reading_them_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-c", REMARKS], stdout=subprocess.PIPE, stderr=writer, text=True)
    finally:
        os.close(writer)

    assert (done.returncode, done.stdout) == (0, "MindBus is up.\n")
