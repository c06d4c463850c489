"""Middleware around every handler: deduplication, deadline, tracing, metrics, error mapping, and those of users."""
