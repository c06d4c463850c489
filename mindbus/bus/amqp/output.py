"""Bytes on their way to the broker, written together once per turn of the event loop."""

import asyncio


class Output:
    """Gathers what is written within one turn.

    `writable` is cleared while the socket or the broker takes no more. A message's body goes in frames of at most
    `most_in_frame` bytes.
    """

    def __init__(self, most_in_frame: int) -> None:
        self.most_in_frame = most_in_frame
        self.writable = asyncio.Event()
        self.has_written = False
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._pauses: set[str] = set()
        self._error: Exception = ConnectionError("not connected")

    def open(self, transport: asyncio.Transport) -> None:
        """Write to this transport from now on."""
        self._transport = transport
        self.writable.set()

    def pause(self, reason: str) -> None:
        """Let nobody publish until this reason is gone."""
        self._pauses.add(reason)
        self.writable.clear()

    def resume(self, reason: str) -> None:
        """Let everybody publish again, unless there is another reason not to."""
        self._pauses.discard(reason)
        if not self._pauses:
            self.writable.set()

    def fail(self, error: Exception) -> None:
        """Refuse what is written from now on; whoever waits for the socket goes on, and sees the error."""
        self._transport, self._error = None, error
        self._unsent.clear()
        self.writable.set()

    def write(self, data: bytes) -> None:
        """Queue whole frames. Raises the error that the connection was lost by."""
        if self._transport is None:
            raise self._error
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self.flush)
        self._unsent.append(data)

    def flush(self) -> None:
        """Write what is queued."""
        if self._transport is not None and self._unsent:
            self._transport.write(self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent))
            self._unsent.clear()
            self.has_written = True
