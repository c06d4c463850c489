"""Middleware around every handler: deadline, tracing, metrics, deduplication, error mapping, and those of users."""

from mindbus.bus.worker import CallNext, Middleware
from mindbus.middleware.pipeline import RetryOn

__all__ = ["CallNext", "Middleware", "RetryOn"]
