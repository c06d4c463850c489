"""The RabbitMQ installation of this machine."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mindbus_fleet.node.errors import RabbitMQMissing

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
        """The command-line client that belongs to the server."""
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
