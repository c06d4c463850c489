"""The RabbitMQ installation of this machine, and the errors of the private node."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path

from bus_schema.codes import Code
from mindbus.errors import MindBusError


class NodeError(MindBusError, code=Code.UNAVAILABLE):
    """The private RabbitMQ node cannot be used."""

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


# In the packages of Debian and Fedora the rabbitmq-server on the PATH is a wrapper that switches to the user
# rabbitmq; the script that it wraps lies here.
UNWRAPPED = "/usr/lib/rabbitmq/bin"
# Not on every user's PATH, nor on that of a process which no shell has started.
USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OTHERS = "/opt/homebrew/sbin:/opt/homebrew/bin:/opt/rabbitmq/sbin:/opt/erlang/bin"


@dataclass(frozen=True)
class Installation:
    server: Path
    epmd: Path

    @property
    def ctl(self) -> Path:
        return self.server.with_name("rabbitmqctl")

    @property
    def search_path(self) -> str:
        """A PATH on which the server's scripts find Erlang."""
        return f"{self.epmd.parent}:{self.server.parent}:{USUAL}:{OTHERS}"


def on_this_machine(program: str) -> str | None:
    """The path of a program, where there is one."""
    return (
        shutil.which(program, path=UNWRAPPED)
        or shutil.which(program)
        or shutil.which(program, path=f"{USUAL}:{OTHERS}")
    )


def find_rabbitmq(look_up: Callable[[str], str | None] = on_this_machine) -> Installation:
    """The server to run. Raises RabbitMQMissing."""
    return Installation(server=_find("rabbitmq-server", look_up), epmd=_find("epmd", look_up))


def _find(program: str, look_up: Callable[[str], str | None]) -> Path:
    found = look_up(program)
    if found is None:
        raise RabbitMQMissing(f"({program} is neither on the PATH nor in {UNWRAPPED}:{USUAL}:{OTHERS})")
    return Path(found)
