"""Chromium without a window, for benchmarks and tests."""

import os
import shutil

# The headless shell is Chromium's engine without its windows: a screen takes half the CPU time in it.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def find_browser() -> str | None:
    """The browser of this machine; MINDBUS_TEST_CHROMIUM names another."""
    names = (os.environ.get("MINDBUS_TEST_CHROMIUM"), *_PROGRAMS)
    return next((found for name in names if name and (found := shutil.which(name))), None)
