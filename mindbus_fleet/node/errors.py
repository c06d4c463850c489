"""Errors of the private RabbitMQ node."""

from inspect import cleandoc

from bus_schema.replies import Code
from mindbus.errors import MindBusError


class NodeError(MindBusError):
    """The private RabbitMQ node cannot be used."""

    code = Code.UNAVAILABLE

    def __init__(self, detail: str = "") -> None:
        message = cleandoc(type(self).__doc__ or "")
        super().__init__(f"{message}\n{detail}" if detail else message)


class RabbitMQMissing(NodeError):
    """No rabbitmq-server was found on this machine.

    Either install it once:
      Debian, Ubuntu   sudo apt-get install --no-install-recommends rabbitmq-server
                       (it need not run as a system service: sudo systemctl disable --now rabbitmq-server)
      Fedora           sudo dnf install rabbitmq-server
      macOS            brew install rabbitmq
    or use a RabbitMQ that runs already: set MINDBUS_AMQP_URL=amqp://user:password@host:5672/
    (for instance the one that `docker run -p 5672:5672 -p 15672:15672 rabbitmq:4-management` starts).
    """


class NodeAlreadyRunning(NodeError):
    """A private RabbitMQ node already runs on this data folder.

    Use it, end it with `mindbus down`, or set MINDBUS_DATA_DIR to another folder.
    """


class NodeDidNotStart(NodeError):
    """The private RabbitMQ node did not start; its last words are below.

    Where they speak of feature flags or of an incompatible version, the data folder was written by another RabbitMQ:
    go back to that version, or move the folder away to start empty.
    """

    @property
    def port_was_taken(self) -> bool:
        """Whether the last words are the complaint of a process that could not bind its port."""
        return any(words in str(self) for words in ("eaddrinuse", "Address already in use"))


class NodeNotRunning(NodeError):
    """The private RabbitMQ node is not running; start it first."""


class CtlFailed(NodeError):
    """The broker refused what rabbitmqctl was asked to do, or did not answer."""
