"""The data folder of a private RabbitMQ node: its configuration, definitions, logs and process ids."""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from mindbus.files.disk import lock_file
from mindbus_fleet.node.address import LOOPBACK, VIEWER, NodeAddress
from mindbus_fleet.node.installation import Applications, Installation, NodeAlreadyRunning

# Mnesia writes the node's name into its files; on an epmd of its own the same name serves every folder.
NODE_NAME = "mindbus@localhost"
PLUGINS = ("rabbitmq_management", "rabbitmq_prometheus")
HEARTBEAT_S = 20
CONSUMER_TIMEOUT_MS = 3 * 60 * 60 * 1000
MEMORY_LIMIT_BYTES = 1024**3
# Four times the largest body that a worker accepts; artifacts and claims travel beside the broker.
MAX_MESSAGE_BYTES = 1024**2
MEMORY_SHARE = 0.4
WAL_BYTES = 64 * 1024**2
LINES_SHOWN = 15
_PROCESSES = 131_072


class NodeFolder:
    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.console = self.root / "console.log"
        self._started_once = self.root / "started-once"
        self.epmd_log = self.root / "epmd.log"
        self._plugins = self.root / "plugins"

    def take(self) -> int:
        """The lock as a file descriptor; whoever inherits it holds the lock too. Raises NodeAlreadyRunning."""
        (self.root / "home").mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        lock = lock_file(self.root / "lock")
        if lock is None:
            raise NodeAlreadyRunning(f"({self.root})")
        return lock

    def is_taken(self) -> bool:
        if not (self.root / "lock").exists():
            return False
        try:
            os.close(self.take())
        except NodeAlreadyRunning:
            return True
        return False

    def address(self) -> NodeAddress | None:
        """Address of the node of this folder, running or not; None if it never ran."""
        file = self.root / "node.json"
        return NodeAddress.read(file.read_bytes()) if file.exists() else None

    def prepare(self, address: NodeAddress, passwords: Mapping[str, str], installation: Installation) -> None:
        """Write all that the server reads when it starts; `passwords` are those of workers, by name."""
        if not self._started_once.exists():
            # A first start that was cut short leaves half a database, on which RabbitMQ waits for ever.
            shutil.rmtree(self.root / "mnesia", ignore_errors=True)
        self._write("node.json", address.as_json())
        self._write("rabbitmq.conf", _configuration(address))
        self._write("definitions.json", _definitions(address, passwords))
        self._write("advanced.config", "[{rabbit, [{quorum_tick_interval, 1000}]}].\n")
        self._write("enabled_plugins", f"[{','.join(PLUGINS)}].")
        self._write("rabbitmq-env.conf", "")
        if not (self.root / "home/.erlang.cookie").exists():
            self._write("home/.erlang.cookie", secrets.token_hex(24), mode=0o400)
        self._link_plugins(_applications(installation))

    def keep(self) -> None:
        """The database is complete: from now on it is somebody's data."""
        self._started_once.touch(mode=0o600)

    def environment(self, address: NodeAddress, installation: Installation) -> dict[str, str]:
        """Everything that the server and its tools take from the environment; nothing is inherited."""
        applications = _applications(installation)
        # RabbitMQ reads it as several folders with colons between them.
        is_folder = bool(applications.plugins) and ":" not in str(self._plugins)
        plugins = {"RABBITMQ_PLUGINS_DIR": str(self._plugins)} if is_folder else {}
        return plugins | {
            "PATH": installation.search_path,
            "LANG": "C.UTF-8",
            "HOME": str(self.root / "home"),
            "ERL_CRASH_DUMP": str(self.root / "log/erl_crash.dump"),
            "ERL_EPMD_PORT": str(address.epmd_port),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            # Makes the script become the Erlang VM, instead of staying as a shell in between that takes signals.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": NODE_NAME,
            "RABBITMQ_DIST_PORT": str(address.distribution_port),
            "RABBITMQ_CONF_ENV_FILE": str(self.root / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(self.root / "rabbitmq.conf"),
            "RABBITMQ_CONFIG_FILES": str(self.root / "conf.d"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.root / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.root / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.root / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.root / "log"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _erlang_arguments(applications),
            "RABBITMQ_CTL_ERL_ARGS": f"-kernel inet_dist_use_interface {_ERLANG_LOOPBACK}",
        }

    def last_words(self) -> str:
        """Tail of the logs since the last start, for an error message."""
        logs = [log for log in (self.epmd_log, self.console) if log.exists() and log.stat().st_size]
        return "\n".join([*(f"--- {log}\n{_telling_lines(log)}" for log in logs), f"--- more in {self.root / 'log'}"])

    def _link_plugins(self, applications: Applications) -> None:
        """Make a folder of the plugins that are needed alone.

        Erlang 25 looks for each module in one folder after the other, through threads of their own: in those of all
        plugins, that is 53,000 files which are not there, and a third of the time that a start takes.
        """
        shutil.rmtree(self._plugins, ignore_errors=True)
        self._plugins.mkdir(mode=0o700)
        for plugin in applications.plugins:
            (self._plugins / plugin.name).symlink_to(plugin)

    def _write(self, name: str, content: str, mode: int = 0o600) -> None:
        file = self.root / name
        file.touch(mode=0o600)
        file.write_text(content, encoding="utf-8")
        file.chmod(mode)


_ERLANG_LOOPBACK = "{" + LOOPBACK.replace(".", ",") + "}"


def _applications(installation: Installation) -> Applications:
    return installation.applications("rabbit", *PLUGINS)


def _erlang_arguments(applications: Applications) -> str:
    schedulers = min(4, os.cpu_count() or 1)
    return " ".join(
        (
            f"-kernel inet_dist_use_interface {_ERLANG_LOOPBACK}",
            # On SIGTERM the statistics wait 5 s for an answer that cannot come while the VM shuts down; all that is
            # to be kept is on disk by then.
            "-kernel shutdown_timeout 700",
            "+fnl",  # file names are bytes: the management plugin stumbles over letters in a path that are not Latin
            f"+S {schedulers}:{schedulers}",
            # RabbitMQ's own are for a million processes, of which the table alone is 16 MB, and 30 unused pieces of
            # memory kept for reuse: a fleet of 22 workers has 1,200 processes, and weighs 22 MB less.
            f"+P {_PROCESSES} +MMmcs 0",
            # Loading the code is a ping-pong with the threads that read files: unless these spin for a moment, waking
            # them makes the start take three times as long. Schedulers that spin cost a third more CPU a message.
            "+sbwt none +sbwtdcpu none +sbwtdio short",
            # Before the folders of all plugins, which RabbitMQ's script puts before Erlang's own.
            *(f"-pa {library}/ebin" for library in applications.libraries if " " not in str(library)),
        )
    )


def _configuration(address: NodeAddress) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = {
        "listeners.tcp.loopback": f"{LOOPBACK}:{address.amqp_port}",
        "management.tcp.ip": LOOPBACK,
        "management.tcp.port": address.management_port,
        "prometheus.tcp.ip": LOOPBACK,
        "prometheus.tcp.port": address.prometheus_port,
        # Relative to the folder, in which the server runs: a value with a non-Latin letter would be refused.
        "load_definitions": "definitions.json",
        "heartbeat": HEARTBEAT_S,
        # Longer than any step may take: past it the broker closes the channel of a consumer that has not acked.
        "consumer_timeout": CONSUMER_TIMEOUT_MS,
        "vm_memory_high_watermark.absolute": min(MEMORY_LIMIT_BYTES, int(memory * MEMORY_SHARE)),
        "raft.wal_max_size_bytes": WAL_BYTES,
        "max_message_size": MAX_MESSAGE_BYTES,
        "collect_statistics_interval": 1000,
        "log.file.rotation.size": 10 * 1024**2,
        "log.file.rotation.count": 3,
    }
    return "".join(f"{key} = {value}\n" for key, value in lines.items())


def _definitions(address: NodeAddress, passwords: Mapping[str, str]) -> str:
    """Applied at every start, so that neither a first start cut short nor a lost password locks anybody out."""
    users = [
        {"name": address.username, "password": address.password, "tags": "administrator"},
        {"name": VIEWER, "password": address.viewer_password, "tags": "monitoring"},
        *({"name": worker, "password": password, "tags": ""} for worker, password in passwords.items()),
    ]
    # The viewer sees queues, their depths and rates, but takes no message out of them. What workers may do is set by
    # those who start them, and kept.
    permissions = [
        {"user": user, "vhost": "/", "configure": names, "write": names, "read": names}
        for user, names in ((address.username, ".*"), (VIEWER, "^$"))
    ]
    return json.dumps({"users": users, "vhosts": [{"name": "/"}], "permissions": permissions})


def _telling_lines(log: Path) -> str:
    """From the first error where there is one, since pages of consequences follow it; else the end."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    first_error = next((number for number, line in enumerate(lines) if "[error]" in line), None)
    start = max(0, len(lines) - LINES_SHOWN) if first_error is None else first_error
    return "\n".join(lines[start : start + LINES_SHOWN])
