"""The RabbitMQ installation of this machine, and the errors of the private node."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
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
    or use a RabbitMQ that is already running: set MINDBUS_AMQP_URL=amqp://user:password@host:5672/
    (for instance the one that `docker run -p 5672:5672 -p 15672:15672 rabbitmq:4-management` starts).
    """


class NodeAlreadyRunning(NodeError):
    """A private RabbitMQ node is already running on this data folder.

    Use it, stop it with `mindbus down`, or set MINDBUS_DATA_DIR to another folder.
    """


class NodeDidNotStart(NodeError):
    """The private RabbitMQ node did not start; its last output is below.

    If it mentions feature flags or an incompatible version, the data folder was written by another RabbitMQ:
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
_NEEDS = re.compile(r"\{applications,\s*\[([^\]]*)\]")


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

    def applications(self, *names: str) -> "Applications":
        """Some plugins with all that they need; none where the installation keeps them in another way."""
        plugins = _folders(self.server.resolve().parent.parent / "plugins")
        libraries = next(filter(None, (_folders(parent / "lib") for parent in self.epmd.resolve().parents)), {})
        needed = _with_needs(names, libraries | plugins)
        if not needed.issuperset(names):
            return Applications()
        return Applications(
            plugins=tuple(plugins[name] for name in sorted(needed & plugins.keys())),
            libraries=tuple(libraries[name] for name in sorted(needed & libraries.keys() - plugins.keys())),
        )


@dataclass(frozen=True)
class Applications:
    """Folders of Erlang applications: plugins, of which RabbitMQ itself is one, and Erlang's own libraries."""

    plugins: tuple[Path, ...] = ()
    libraries: tuple[Path, ...] = ()


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


def _folders(place: Path) -> dict[str, Path]:
    """Folders of the applications in a place, by name."""
    found = {folder.name.rpartition("-")[0]: folder for folder in sorted(place.glob("*-[0-9]*"))}
    return {name: folder for name, folder in found.items() if _description(folder).exists()}


def _description(folder: Path) -> Path:
    return folder / "ebin" / f"{folder.name.rpartition('-')[0]}.app"


def _with_needs(names: Iterable[str], folders: Mapping[str, Path]) -> set[str]:
    """Names of applications that there are, and of those which they name as needed, and so on."""
    needed: set[str] = set()
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name in folders and name not in needed:
            needed.add(name)
            needs = _NEEDS.search(_description(folders[name]).read_text(encoding="utf-8"))
            wanted += re.findall(r"\w+", needs[1]) if needs else []
    return needed
