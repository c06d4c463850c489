"""MindBus's own workers, each imported when it is built."""

from mindbus.registry import installed_workers

FLEET = installed_workers().own
