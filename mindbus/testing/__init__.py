"""Helpers for tests of workers: one delivery through the real pipeline, workers on an in-memory bus, waiting."""

from mindbus.testing.deliver import DeliveryResult, deliver
from mindbus.testing.wait import ConditionNotMet, eventually, until
from mindbus.testing.workers import running

__all__ = ["ConditionNotMet", "DeliveryResult", "deliver", "eventually", "running", "until"]
