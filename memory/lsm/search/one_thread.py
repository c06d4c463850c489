"""Products of matrices on one thread of the processor."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np  # noqa: F401  # so that its library is there to be found
from threadpoolctl import ThreadpoolController

_blas = ThreadpoolController().select(user_api="blas")
_turn = threading.Lock()
_limits: list[Any] = []
_users = 0


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Small products gain little from a second thread, which would spin on beside the embedder's.

    The setting is the process's: the first who wants it so makes it, the last one takes it back.
    """
    global _users
    with _turn:
        _users += 1
        if _users == 1:
            _limits.append(_blas.limit(limits=1))
    try:
        yield
    finally:
        with _turn:
            _users -= 1
            if not _users:
                _limits.pop().restore_original_limits()
