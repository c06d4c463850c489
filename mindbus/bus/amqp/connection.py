"""A connection to RabbitMQ for messages: handshake, heartbeats, TLS, channels.

aio-pika and aiormq take 250 of the 330 µs that a publish costs in Python; this is the part of AMQP 0-9-1 that messages
need. It never reconnects: that is up to who uses it.
"""

import asyncio
import base64
import platform
import ssl
from typing import Any, TypeVar, cast

import pamqp.frame
from pamqp import commands
from pamqp.base import Frame
from pamqp.header import ProtocolHeader
from yarl import URL

from mindbus.bus.amqp import frames
from mindbus.bus.amqp.channel import Channel, ChannelClosed, ConsumingChannel, PublishingChannel
from mindbus.bus.amqp.frames import Output
from mindbus.logs import logger
from mindbus.version import __version__

ChannelT = TypeVar("ChannelT", PublishingChannel, ConsumingChannel)
FrameT = TypeVar("FrameT", bound=Frame)
_PORTS = {"amqp": 5672, "amqps": 5671}
_FRAME_MAX = 131_072
_CHANNELS_MAX = 2047
_HEARTBEAT_S = 15
_CLOSE_TIMEOUT_S = 5.0
_CAPABILITIES = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "publisher_confirms",
)


class ConnectionLost(ConnectionError):
    """The connection to RabbitMQ is lost."""


class Connection(asyncio.Protocol):
    """One connection, opened by `connect`; every channel fails with it."""

    def __init__(self, url: URL, name: str) -> None:
        self.error: ConnectionError | None = None
        self._url, self._name = url, name
        self._output = Output(_FRAME_MAX - frames.FRAME_EXTRA)
        self._transport: asyncio.Transport | None = None
        self._channels: dict[int, Channel] = {}
        self._most_channels = _CHANNELS_MAX
        self._unparsed = b""
        self._answers: asyncio.Queue[Frame] = asyncio.Queue()
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heartbeat_s, self._silent_beats, self._has_heard = 0, 0, True
        self._beating: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self.error is None and self._transport is not None

    async def open_channel(self, kind: type[ChannelT]) -> ChannelT:
        """A channel, ready for use. Raises ConnectionLost, ChannelClosed."""
        if self.error is not None:
            raise ConnectionLost(str(self.error)) from self.error
        number = next((n for n in range(1, self._most_channels + 1) if n not in self._channels), None)
        if number is None:
            raise ChannelClosed("the connection has no channel left")
        channel = kind(number, self._output, self._release)
        self._channels[number] = channel
        try:
            await channel.call(commands.Channel.Open(), commands.Channel.OpenOk)
            await channel.begin()
        except BaseException:
            # Opened for nobody, as while the broker takes nothing: it would stay open for ever.
            channel.abandon()
            raise
        return channel

    async def close(self) -> None:
        """Say goodbye, and wait for the answer, but not long."""
        if self.is_open:
            await asyncio.sleep(0)  # what was settled in this turn is written first
            try:
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    self._write(commands.Connection.Close(reply_code=200, reply_text="", class_id=0, method_id=0))
                    await asyncio.shield(self._lost)
            except (TimeoutError, ConnectionError):
                logger().debug("closed without goodbye", link=self._name)
        self.abandon()

    def abandon(self) -> None:
        """Close it without a word."""
        self._fail(ConnectionLost("closed"))

    async def handshake(self) -> None:
        """Authenticate and open the virtual host. Raises ConnectionLost with the broker's reason."""
        self._output.write(ProtocolHeader().marshal())
        start = await self._expect(commands.Connection.Start)
        self._write(
            commands.Connection.StartOk(
                client_properties=self._client_properties(), mechanism=self._mechanism(start), response=self._secret()
            )
        )
        tune = await self._expect(commands.Connection.Tune)
        frame_max = min(tune.frame_max or _FRAME_MAX, _FRAME_MAX)
        self._output.most_in_frame = frame_max - frames.FRAME_EXTRA
        self._most_channels = min(tune.channel_max or _CHANNELS_MAX, _CHANNELS_MAX)
        self._heartbeat_s = int(self._url.query.get("heartbeat", _HEARTBEAT_S))
        self._write(
            commands.Connection.TuneOk(
                channel_max=self._most_channels, frame_max=frame_max, heartbeat=self._heartbeat_s
            )
        )
        self._write(commands.Connection.Open(virtual_host=self._url.path.removeprefix("/").replace("%2F", "/") or "/"))
        await self._expect(commands.Connection.OpenOk)
        if self._heartbeat_s:
            self._beating = asyncio.get_running_loop().call_later(self._heartbeat_s / 2, self._beat)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=1 << 20)
        self._output.open(self._transport)

    def data_received(self, data: bytes) -> None:
        self._has_heard = True
        try:
            self._unparsed = self._parse(self._unparsed + data if self._unparsed else data)
        except ConnectionError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # a frame that cannot be understood leaves nothing to rely upon
            logger().exception("unreadable frame", link=self._name)
            self._fail(ConnectionLost(f"unreadable frame: {error!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionLost(str(exc) if exc else "the broker has closed the connection"))

    def pause_writing(self) -> None:
        self._output.pause("socket")

    def resume_writing(self) -> None:
        self._output.resume("socket")

    def _parse(self, data: bytes) -> bytes:
        """Take in whole frames; what is left is the beginning of the next one."""
        at, end = 0, len(data)
        while end - at >= frames.FRAME_EXTRA:
            kind, number, size = frames.FRAME_HEAD.unpack_from(data, at)
            if data[at : at + 4] == b"AMQP":
                raise ConnectionLost("the broker speaks another version of AMQP")
            after = at + size + frames.FRAME_EXTRA
            if after > end:
                break
            if data[after - 1] != frames.FRAME_END[0]:
                raise ConnectionLost("a frame without its end")
            payload = data[at + frames.FRAME_HEAD.size : after - 1]
            at = after
            if number:
                if channel := self._channels.get(number):
                    channel.receive(kind, payload)
            elif kind == frames.METHOD:
                self._receive(pamqp.frame.unmarshal(frames.pack(kind, 0, payload))[2])
        return data[at:]

    def _receive(self, frame: object) -> None:
        match frame:
            case commands.Connection.Close():
                self._write(commands.Connection.CloseOk())
                self._output.flush()
                self._fail(ConnectionLost(f"{frame.reply_code} {frame.reply_text}"))
            case commands.Connection.CloseOk():
                self._fail(ConnectionLost("closed"))
            case commands.Connection.Blocked():
                self._output.pause("broker")
                logger().warning("the broker takes no messages", reason=frame.reason, link=self._name)
            case commands.Connection.Unblocked():
                self._output.resume("broker")
                logger().info("the broker takes messages again", link=self._name)
            case Frame():
                self._answers.put_nowait(frame)

    async def _expect(self, kind: type[FrameT]) -> FrameT:
        answer = asyncio.create_task(self._answers.get())
        either: list[asyncio.Future[Any]] = [answer, self._lost]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Whoever waits for the connection may give up before a frozen broker answers.
            answer.cancel()
        if not answer.done():
            raise self.error or ConnectionLost("closed")
        if not isinstance(frame := answer.result(), kind):
            raise ConnectionLost(f"unexpected {frame.name}")
        return frame

    def _write(self, frame: Frame) -> None:
        self._output.write(pamqp.frame.marshal(frame, 0))

    def _release(self, number: int) -> None:
        self._channels.pop(number, None)

    def _beat(self) -> None:
        """Send a heartbeat unless something was written; fail after two intervals without a sign of life."""
        self._silent_beats = 0 if self._has_heard else self._silent_beats + 1
        self._has_heard = False
        if self._silent_beats >= 4:
            self._fail(ConnectionLost(f"no heartbeat within {2 * self._heartbeat_s} s"))
            return
        if not self._output.has_written:
            self._output.write(frames.HEARTBEAT_FRAME)
            self._output.flush()
        self._output.has_written = False
        self._beating = asyncio.get_running_loop().call_later(self._heartbeat_s / 2, self._beat)

    def _fail(self, error: ConnectionError) -> None:
        if self._beating is not None:
            self._beating.cancel()
        if self.error is not None:
            return
        self.error = error
        self._output.fail(error)
        for channel in list(self._channels.values()):
            channel.fail(error)
        if not self._lost.done():
            self._lost.set_result(None)
        if self._transport is not None:
            # What was written, such as the answer to a close, still goes out; a frozen broker is not waited for.
            self._transport.close() if self._silent_beats < 4 else self._transport.abort()

    def _client_properties(self) -> dict[str, Any]:
        return {
            "connection_name": self._name,
            "product": "MindBus",
            "version": __version__,
            "platform": f"Python {platform.python_version()}",
            "capabilities": dict.fromkeys(_CAPABILITIES, True),
        }

    def _mechanism(self, start: commands.Connection.Start) -> str:
        mechanism = self._url.query.get("auth", "plain").upper()
        if mechanism not in (start.mechanisms or "").split():
            raise ConnectionLost(f"the broker offers {start.mechanisms}, not {mechanism}")
        return mechanism

    def _secret(self) -> str:
        if self._url.query.get("auth", "plain").upper() != "PLAIN":
            return ""
        return f"\0{self._url.user or 'guest'}\0{self._url.password or 'guest'}"


async def connect(url: URL, name: str) -> Connection:
    """An open connection, named so in RabbitMQ's screens. Raises ConnectionLost, OSError."""
    context = await asyncio.to_thread(_tls, url) if url.scheme == "amqps" else None
    port = url.port or _PORTS[url.scheme]
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        lambda: Connection(url, name), url.host or "localhost", port, ssl=context
    )
    try:
        await connection.handshake()
    except BaseException:
        connection.abandon()
        raise
    return connection


def _tls(url: URL) -> ssl.SSLContext:
    """TLS by the parameters of the address, as aiormq names them."""
    query = url.query
    data = query.get("cadata")
    context = ssl.create_default_context(
        cafile=query.get("cafile"), capath=query.get("capath"), cadata=base64.b64decode(data) if data else None
    )
    if "certfile" in query:
        context.load_cert_chain(query["certfile"], query.get("keyfile"))
    if query.get("no_verify_ssl", "0") != "0":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
