"""The command `credentials`: what each container of a stack logs in with, in a folder of its own."""

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from config.settings import FleetSettings
from mindbus.bus.transport import ADMIN
from mindbus.cli.console import say
from mindbus.cli.errors import UsageError, read_settings
from mindbus.files.disk import write_private
from mindbus.registry import installed_workers
from mindbus_fleet.cli.topology import definitions
from mindbus_fleet.node.address import VIEWER

app = typer.Typer()

_BUCKET = "mindbus"
# Of Redis, each has its own keys.
_REDIS_KEYS = {"swm": "~swm_*", "history": "~chat_history:* ~subagent:* ~history_gone:*"}
_REDIS_COMMANDS = "&* +@all -@admin -@dangerous +config|get +info"
_REDIS_REPLICA = "~mindbus:promoted -@all +psync +replconf +ping +role +replicaof +get +incr"
# Only an administrator may make it, where PostgreSQL has it.
_VECTORS = """
SELECT 'CREATE EXTENSION vector' FROM pg_available_extensions
WHERE name = 'vector' AND installed_version IS NULL \\gexec
SELECT 'GRANT USAGE ON SCHEMA public TO "glm"' FROM pg_extension WHERE extname = 'vector' \\gexec
"""
_MAY_ENTER, _MAY_READ = 0o755, 0o444

Owner = Annotated[int, typer.Option("--owner", help="Number of the user of the workers' containers.")]


@app.command()
def credentials(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the volumes of the containers are.")],
    rabbitmq: Annotated[str, typer.Option("--rabbitmq", metavar="HOST,…", help="All nodes of a cluster.")] = "rabbitmq",
    management: Annotated[
        str | None, typer.Option("--management", metavar="HOST", help="Of its UI; default: the first node.")
    ] = None,
    postgres: Annotated[
        str, typer.Option("--postgres", metavar="HOST,…/DATABASE", help="The primary and its standbys, in any order.")
    ] = "postgres/mindbus",
    redis: Annotated[str, typer.Option("--redis", metavar="HOST/NUMBER")] = "redis/0",
    cache_redis: Annotated[
        str, typer.Option("--cache-redis", metavar="HOST/NUMBER", help="For units at hand alone; it may evict.")
    ] = "",
    owner: Owner = 10001,
) -> None:
    """Make the passwords of a stack of containers: a folder for each, which holds its own alone.

    Root gives each folder to the user of the containers.

    FOLDER/NAME/keys is for a worker's MINDBUS_SECRETS_DIR, FOLDER/cli/keys for an administrator's command line;
    FOLDER/rabbitmq, postgres, redis, qdrant, seaweedfs, prometheus and grafana are what these servers read. Passwords
    that are there stay.

    [bold]Example[/bold]

    mindbus credentials /volumes

    mindbus credentials secrets --rabbitmq mq-0,mq-1,mq-2 --postgres db-0,db-1/mindbus
    """
    settings = read_settings(FleetSettings)
    if settings.tenant:
        raise UsageError("a stack's servers are its host's: unset MINDBUS_TENANT, and see the guide to tenants")
    workers = sorted(installed_workers().checked().entries)
    ui = management or rabbitmq.partition(",")[0]
    stack = _Stack(folder, workers, rabbitmq=rabbitmq, management=ui, postgres=postgres, redis=(redis, cache_redis))
    for name in (*workers, "cli"):
        keys = folder / name / "keys"
        for setting, value in stack.settings_of(name):
            write_private(keys / f"mindbus_{setting}", value)
        for path in (folder / name, keys, *keys.iterdir()):
            if os.geteuid() == 0:
                os.chown(path, owner, -1)
        (folder / name).chmod(0o700)
    for file, text in stack.server_files(settings):
        write_private(folder / file, text)
        (folder / file).chmod(_MAY_READ)
        (folder / file).parent.chmod(_MAY_ENTER)
    say(f"{len(workers)} workers have their own credentials")


class _Stack:
    """A stack of containers: who logs in where, with which password."""

    def __init__(
        self, folder: Path, workers: list[str], *, rabbitmq: str, management: str, postgres: str, redis: tuple[str, str]
    ) -> None:
        self._folder, self._workers = folder / "credentials", workers
        self._rabbitmq, self._management = rabbitmq, management
        self._redis, self._cache_redis = redis
        self._postgres, _, self._database = postgres.partition("/")

    def settings_of(self, name: str) -> Iterator[tuple[str, str]]:
        """Secret settings of a worker, or of the administrator's command line, by their names."""
        user = ADMIN if name == "cli" else name
        yield "amqp_url", f"amqp://{user}:{self._password('rabbitmq', user)}@{self._rabbitmq}:5672/"
        if name == "cli":
            return
        yield "database_url", self._database_url(name)
        if name in _REDIS_KEYS:
            login = f"redis://{name}:{self._password('redis', name)}"
            yield "redis_url", f"{login}@{self._redis}"
            if name == "swm" and self._cache_redis:
                yield "cache_redis_url", f"{login}@{self._cache_redis}"
        if name == "glm":
            yield "qdrant_api_key", self._password("qdrant", name)
        if name == "gateway":
            viewer = f"{VIEWER}:{self._password('rabbitmq', VIEWER)}"
            yield "management_url", f"http://{viewer}@{self._management}:15672"
            yield "metrics_token", self._password("gateway", "metrics")
        if name == "storage":
            yield "s3_access_key", name
            yield "s3_secret_key", self._password("seaweedfs", name)

    def server_files(self, settings: FleetSettings) -> Iterator[tuple[str, str]]:
        """Files that the servers read, by path."""
        yield "rabbitmq/definitions.json", json.dumps(self._rabbitmq_users(settings))
        yield "rabbitmq/cookie", self._password("rabbitmq", "nodes")
        yield "postgres/password", self._password("postgres", ADMIN)
        yield "postgres/roles.sql", "".join(map(self._postgres_role, self._workers)) + _VECTORS
        yield "postgres/replica", self._password("postgres", "replica")
        yield "redis/users.acl", "".join(self._redis_users())
        yield "redis/replica", self._password("redis", "replica")
        yield "qdrant/api_key", self._password("qdrant", "glm")
        yield "prometheus/metrics_token", self._password("gateway", "metrics")
        yield "grafana/password", self._password("grafana", ADMIN)
        key = {"accessKey": "storage", "secretKey": self._password("seaweedfs", "storage")}
        rights = [f"{right}:{_BUCKET}" for right in ("Read", "Write", "List", "Tagging", "Admin")]
        identity = {"name": "storage", "credentials": [key], "actions": rights}
        yield "seaweedfs/s3.json", json.dumps({"identities": [identity]})

    def _rabbitmq_users(self, settings: FleetSettings) -> dict[str, object]:
        made = definitions(settings, {name: self._password("rabbitmq", name) for name in self._workers})
        for user, tag, names in ((ADMIN, "administrator", ".*"), (VIEWER, "monitoring", "^$")):
            made["users"].append({"name": user, "password": self._password("rabbitmq", user), "tags": tag})
            granted = {"configure": names, "write": names, "read": names}
            made["permissions"].append({"user": user, "vhost": "/", **granted})
        return made

    def _database_url(self, name: str) -> str:
        """Address of the database; of several servers whichever is the primary is taken, anew at every connection."""
        login = f"postgresql+psycopg://{name}:{self._password('postgres', name)}"
        if "," not in self._postgres:
            return f"{login}@{self._postgres}/{self._database}"
        return f"{login}@/{self._database}?host={self._postgres}&target_session_attrs=read-write"

    def _postgres_role(self, name: str) -> str:
        """SQL that gives a worker a role, with a schema for its tables and one for checkpoints; it may be run again."""
        return f"""
REVOKE ALL ON DATABASE "{self._database}" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
SELECT 'CREATE ROLE "{name}"' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') \\gexec
ALTER ROLE "{name}" LOGIN PASSWORD '{self._password("postgres", name)}';
GRANT CONNECT ON DATABASE "{self._database}" TO "{name}";
CREATE SCHEMA IF NOT EXISTS "{name}" AUTHORIZATION "{name}";
CREATE SCHEMA IF NOT EXISTS "checkpoints_{name}" AUTHORIZATION "{name}";
"""

    def _redis_users(self) -> Iterator[str]:
        """The workers, the other server of two, and a proxy that has to know which of them leads."""
        yield "user default off\n"
        for name, keys in _REDIS_KEYS.items():
            yield f"user {name} on >{self._password('redis', name)} {keys} {_REDIS_COMMANDS}\n"
        yield f"user replica on >{self._password('redis', 'replica')} {_REDIS_REPLICA}\n"
        yield "user proxy on nopass -@all +role\n"

    def _password(self, server: str, user: str) -> str:
        """The password of a user of a server, made where there is none."""
        file = self._folder / f"{server}.{user}"
        if not file.exists():
            write_private(file, secrets.token_urlsafe(24))
        return file.read_text()
