"""Channels of AMQP 0-9-1: calls, publishing with confirms, consuming with acknowledgements in multiples."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TypeVar

import pamqp.frame
from pamqp import commands
from pamqp.base import Frame

from mindbus.bus.amqp import frames
from mindbus.bus.amqp.frames import Content, Output

AnswerT = TypeVar("AnswerT", bound=Frame)
# Exchange, routing key, message id.
Address = tuple[str, str, str]


class ChannelClosed(ConnectionError):
    """The channel is closed."""


class NotTaken(ConnectionError):
    """The broker has refused a message: a queue is full, or has no leader."""


class Returned(Exception):  # a fact about one message, not a failure of the channel
    """No queue takes the message."""


class Channel:
    """One channel, for calls; `lost` is set when it is closed, or one of its consumers cancelled by the broker."""

    def __init__(self, number: int, output: Output, release: Callable[[int], None]) -> None:
        self.number, self.output, self._release = number, output, release
        self.lost = asyncio.Event()
        self.error: ConnectionError | None = None
        # The broker answers in order.
        self._answers: deque[asyncio.Future[Frame]] = deque()
        self._closed = asyncio.get_running_loop().create_future()
        self._method = b""
        self._content: Content | None = None
        self._body: list[bytes] = []
        self._missing = 0

    async def call(self, request: Frame, answer: type[AnswerT]) -> AnswerT:
        """The broker's answer; several calls may be on their way. Raises ChannelClosed, also where it refuses."""
        self._check_open()
        self.output.write(pamqp.frame.marshal(request, self.number))
        self._answers.append(asyncio.get_running_loop().create_future())
        answered = await self._answers[-1]
        if not isinstance(answered, answer):
            raise ChannelClosed(f"{request.name} was answered by {answered.name}")
        return answered

    async def call_all(self, requests: Iterable[Frame]) -> None:
        """Have all of it done, without waiting for one answer after the other. Raises ChannelClosed."""
        await asyncio.gather(*(self.call(request, Frame) for request in requests))

    async def close(self) -> None:
        """Close it, and wait for the broker to confirm that."""
        self.abandon()
        await asyncio.shield(self._closed)

    def abandon(self) -> None:
        """Close it without waiting for a broker that may be busy."""
        if self.error is None:
            self._begin_to_close("closed")

    def fail(self, error: ConnectionError) -> None:
        """End everything that waits on this channel; the broker has closed it, or the connection is lost."""
        self._end(error)
        if not self._closed.done():
            self._closed.set_result(None)

    def receive(self, kind: int, payload: bytes) -> None:
        """Take in the next frame."""
        if kind == frames.METHOD:
            self._method = payload
            if not self._receive_method(frames.method_id(payload), payload):
                self._receive_rare(pamqp.frame.unmarshal(frames.pack(kind, self.number, payload))[2])
            return
        if kind == frames.HEADER:
            self._missing, flags, properties = frames.parse_header(payload)
            self._content, self._body = Content(flags, properties, b""), []
        elif self._content is not None:
            self._body.append(payload)
            self._missing -= len(payload)
        if self._content is not None and self._missing <= 0:
            content, self._content = self._content, None
            content.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            if self.error is None:
                self._receive_content(self._method, content)

    def _receive_method(self, method: int, _payload: bytes) -> bool:
        """Whether this is a method that messages need."""
        return method in (frames.DELIVER, frames.RETURN)

    def _receive_content(self, method: bytes, content: Content) -> None:
        """Take in a message, by the method that announced it."""

    def _receive_rare(self, frame: object) -> None:
        match frame:
            case commands.Channel.Close():
                self.output.write(pamqp.frame.marshal(commands.Channel.CloseOk(), self.number))
                # Where both close at once, ours is answered as well: the number is not free before that.
                if self.error is None:
                    self._release(self.number)
                    self.fail(ChannelClosed(f"{frame.reply_code} {frame.reply_text}"))
            case commands.Channel.CloseOk():
                self._release(self.number)
                self.fail(ChannelClosed("closed"))
            case commands.Channel.Flow():
                self.output.write(pamqp.frame.marshal(commands.Channel.FlowOk(active=frame.active), self.number))
            case commands.Basic.Cancel():
                self.lost.set()
            case Frame() if self._answers:
                answer = self._answers.popleft()
                if not answer.done():
                    answer.set_result(frame)

    def _begin_to_close(self, reason: str) -> None:
        close = commands.Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0)
        try:
            self.output.write(pamqp.frame.marshal(close, self.number))
        except ConnectionError as error:
            self.fail(error)
        self._end(ChannelClosed(reason))

    def _end(self, error: ConnectionError) -> None:
        self.error = self.error or error
        self.lost.set()
        for answer in self._answers:
            if not answer.done():
                answer.set_exception(ChannelClosed(str(error)))
        self._answers.clear()

    def _check_open(self) -> None:
        if self.error is not None:
            raise ChannelClosed(str(self.error)) from self.error


class PublishingChannel(Channel):
    """Publishes with confirms."""

    def __init__(self, number: int, output: Output, release: Callable[[int], None]) -> None:
        super().__init__(number, output, release)
        self._last_tag = 0
        # By tag, in order.
        self._unconfirmed: dict[int, tuple[asyncio.Future[None], Address | None]] = {}
        self._returned: list[Address] = []
        self._is_retired = False

    def retire(self) -> None:
        """Close it as soon as nobody waits for a confirm any more."""
        self._is_retired = True
        if all(confirmed.done() for confirmed, _ in self._unconfirmed.values()):
            self.abandon()

    async def begin(self) -> None:
        """Have the broker confirm what is published. Raises ChannelClosed."""
        await self.call(commands.Confirm.Select(), commands.Confirm.SelectOk)

    async def publish(self, address: Address, properties: bytes, body: bytes, *, mandatory: bool) -> None:
        """Publish a message, and wait until the broker has confirmed it. Raises Returned, NotTaken, ChannelClosed."""
        if not self.output.writable.is_set():
            await self.output.writable.wait()
        self._check_open()
        exchange, routing_key, _ = address
        method = frames.pack_publish(self.number, exchange, routing_key, mandatory=mandatory)
        self.output.write(method + frames.pack_content(self.number, properties, body, self.output.most_in_frame))
        self._last_tag += 1
        confirmed = asyncio.get_running_loop().create_future()
        self._unconfirmed[self._last_tag] = confirmed, address if mandatory else None
        try:
            await confirmed
        finally:
            if self._is_retired:
                self.retire()

    def _receive_method(self, method: int, payload: bytes) -> bool:
        if method not in (frames.ACK, frames.NACK):
            return super()._receive_method(method, payload)
        tag, multiple = frames.parse_confirm(payload)
        tags = [tag]
        if multiple:
            # Zero stands for all of them.
            tags = list(takewhile(lambda each: each <= tag or not tag, self._unconfirmed))
        for each in tags:
            self._confirm(each, is_taken=method == frames.ACK)
        return True

    def _confirm(self, tag: int, *, is_taken: bool) -> None:
        confirmed, address = self._unconfirmed.pop(tag, (None, None))
        # What nobody waits for any more may have been returned as well.
        is_returned = address in self._returned
        if address is not None and is_returned:
            self._returned.remove(address)
        if confirmed is None or confirmed.done():
            return
        if is_returned:
            confirmed.set_exception(Returned(Returned.__doc__))
        elif not is_taken:
            confirmed.set_exception(NotTaken(NotTaken.__doc__))
        else:
            confirmed.set_result(None)

    def _receive_content(self, method: bytes, content: Content) -> None:
        self._returned.append((*frames.parse_return(method), content.strings().get("message_id", "")))

    def _end(self, error: ConnectionError) -> None:
        super()._end(error)
        for confirmed, _ in self._unconfirmed.values():
            if not confirmed.done():
                confirmed.set_exception(ChannelClosed(str(error)))
        self._unconfirmed.clear()


# As a prefetch.
UNLIMITED = 0


class ConsumingChannel(Channel):
    """Consumes; deliveries are settled by tag, in any order."""

    def __init__(self, number: int, output: Output, release: Callable[[int], None]) -> None:
        super().__init__(number, output, release)
        self.on_delivery: Callable[[int, str, str, Content], None] = lambda *_: None
        self.delivered = 0
        self.unsettled: set[int] = set()
        self._no_ack = False
        self._acked: set[int] = set()

    async def begin(self) -> None:
        """Nothing to ask for."""

    async def set_prefetch(self, count: int) -> None:
        """Let the broker have that many deliveries unsettled, of each consumer that begins after this."""
        await self.call(commands.Basic.Qos(prefetch_count=count), commands.Basic.QosOk)

    async def consume(self, queue: str, *, no_ack: bool = False) -> str:
        """Begin to consume; the consumer's tag. With `no_ack` nothing is to be settled. Raises ChannelClosed."""
        self._no_ack = no_ack
        answer = await self.call(commands.Basic.Consume(queue=queue, no_ack=no_ack), commands.Basic.ConsumeOk)
        return answer.consumer_tag or ""

    async def cancel(self, consumer_tag: str) -> None:
        """End a consumer; deliveries at hand can still be settled."""
        await self.call(commands.Basic.Cancel(consumer_tag=consumer_tag), commands.Basic.CancelOk)

    def ack(self, tag: int) -> None:
        """Acknowledge, together with what else is within this turn of the event loop; in vain on a closed channel."""
        if self.error is not None or tag not in self.unsettled:
            return
        self.unsettled.remove(tag)
        if not self._acked:
            asyncio.get_running_loop().call_soon(self._write_acks)
        self._acked.add(tag)

    def requeue(self, tag: int) -> None:
        """Give a delivery back; in vain on a closed channel."""
        if self.error is None and tag in self.unsettled:
            self.unsettled.remove(tag)
            self.output.write(frames.pack_requeue(self.number, tag))

    def _begin_to_close(self, reason: str) -> None:
        self._write_acks()
        super()._begin_to_close(reason)

    def _write_acks(self) -> None:
        if self.error is not None or not self._acked:
            return
        # Everything before the oldest unsettled delivery is acknowledged by one frame.
        oldest = min(self.unsettled, default=self.delivered + 1)
        before = [tag for tag in self._acked if tag < oldest]
        if before:
            self.output.write(frames.pack_ack(self.number, max(before), multiple=True))
        for tag in sorted(self._acked.difference(before)):
            self.output.write(frames.pack_ack(self.number, tag, multiple=False))
        self._acked.clear()

    def _receive_content(self, method: bytes, content: Content) -> None:
        tag, exchange, routing_key = frames.parse_deliver(method)
        self.delivered = tag
        if not self._no_ack:
            self.unsettled.add(tag)
        self.on_delivery(tag, exchange, routing_key, content)
