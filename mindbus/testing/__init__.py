"""Helpers for tests of workers: one delivery through the real pipeline, one run of a task, workers, waiting."""

from mindbus.testing.deliver import DeliveryResult, deliver, run_task, running
from mindbus.testing.wait import ConditionNotMet, eventually, until

__all__ = ["ConditionNotMet", "DeliveryResult", "deliver", "eventually", "run_task", "running", "until"]
