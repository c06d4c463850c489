"""Limit of BLAS threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np  # noqa: F401  # loads its BLAS library, which the controller looks for
from threadpoolctl import ThreadpoolController

_blas = ThreadpoolController().select(user_api="blas")
_lock = threading.Lock()
_limits: list[Any] = []
_users = 0


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Run small matrix products on one thread: a second one gains little and spins beside the embedder's.

    The limit is process-wide: the first user sets it, the last one restores it.
    """
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _limits.append(_blas.limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limits.pop().restore_original_limits()
