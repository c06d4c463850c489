"""Helpers for tests of workers: one delivery through the real pipeline, one run of a task, workers, waiting."""

from mindbus.testing.deliver import DeliveryResult, deliver, run_task
from mindbus.testing.wait import ConditionNotMet, eventually, until
from mindbus.testing.workers import running

__all__ = ["ConditionNotMet", "DeliveryResult", "deliver", "eventually", "run_task", "running", "until"]
