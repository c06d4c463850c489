"""TLS with an authority of one's own: RabbitMQ over amqps, the gateway over https; nobody else's certificate counts."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trustme

from gateway.access_control import COOKIE
from gateway.access_tokens import token_file
from gateway.worker import GatewayWorker
from mindbus import BusUnavailable, connect
from mindbus_fleet.node.address import NodeAddress
from mindbus_fleet.node.private import PrivateNode
from tests.brokers import Broker
from tests.command_line import Shell, require_rabbitmq
from tests.fleets import fleet_of, settings_for
from tests.gateways import gateway_settings
from tests.greetings import Greet, Greeter

pytestmark = pytest.mark.rabbit


class Authority:
    """An authority that vouches for localhost; its files lie in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        self.ca, self.cert, self.key = (folder / f"{name}.pem" for name in ("ca", "cert", "key"))
        authority.cert_pem.write_to_path(str(self.ca))
        issued.private_key_pem.write_to_path(str(self.key))
        for blob in issued.cert_chain_pems:
            blob.write_to_path(str(self.cert), append=True)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
async def tls_port(authority: Authority, tmp_path: Path) -> AsyncIterator[tuple[PrivateNode, int]]:
    """A RabbitMQ that speaks TLS besides."""
    require_rabbitmq()
    folder = tmp_path / "node"
    port = NodeAddress.new().amqp_port
    (folder / "conf.d").mkdir(parents=True)
    lines = {
        "listeners.ssl.1": f"127.0.0.1:{port}",
        "ssl_options.cacertfile": authority.ca,
        "ssl_options.certfile": authority.cert,
        "ssl_options.keyfile": authority.key,
        "ssl_options.verify": "verify_none",
        "ssl_options.versions.1": "tlsv1.2",
    }
    (folder / "conf.d" / "50-tls.conf").write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    async with PrivateNode(folder) as node:
        yield node, port


async def test_workers_clients_and_commands_speak_amqps_to_whom_their_authority_vouches_for(
    authority: Authority, tls_port: tuple[PrivateNode, int], tmp_path: Path
) -> None:
    node, port = tls_port
    address = node.address
    login = f"amqps://{address.username}:{address.password}"
    settings = settings_for(f"{login}@localhost:{port}/?cafile={authority.ca}", tmp_path / "data")
    async with fleet_of(Greeter, settings=settings) as fleet:
        assert (await fleet.bus.request(Greet(name="Ann"))).text == "Hello, Ann!"

    stranger = Authority(tmp_path / "stranger")
    for url in (
        f"{login}@localhost:{port}/?cafile={stranger.ca}",
        f"{login}@localhost:{port}/",
        f"{login}@127.0.0.1:{port}/?cafile={authority.ca}",
    ):
        with pytest.raises(BusUnavailable, match="certificate verify failed"):
            async with connect(settings=settings_for(url, tmp_path / "data", publish_timeout_s=4.0)) as bus:
                await bus.send(Greet(name="Eve"))

    where = {"MINDBUS_AMQP_URL": str(settings.amqp_url), "MINDBUS_MANAGEMENT_URL": address.management_url}
    shell = Shell(tmp_path / "data", settings=where)
    assert shell.json("topology", "apply", spawned=True)["queues"] > 20


async def test_the_gateway_speaks_https_alone_and_its_cookies_are_secure(
    broker: Broker, vhost_url: str, migrated_folder: Path, authority: Authority
) -> None:
    options = {"gateway_tls_cert": authority.cert, "gateway_tls_key_file": authority.key, "gateway_access": "token"}
    settings = gateway_settings(broker, vhost_url, migrated_folder, gateway_host="localhost", **options)
    async with fleet_of(GatewayWorker, settings=settings) as fleet:
        url = fleet[GatewayWorker].url.replace("127.0.0.1", "localhost")
        trusting = ssl.create_default_context(cafile=authority.ca)
        async with httpx.AsyncClient(base_url=url, verify=trusting, trust_env=False, timeout=60) as http:
            entered = await http.post("/login", data={"token": token_file(settings).read_text()})
            inside = await http.get("/api/cards")
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as distrustful:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await distrustful.get("/healthz")
        async with httpx.AsyncClient(base_url=url.replace("https", "http"), trust_env=False, timeout=60) as plain:
            with pytest.raises(httpx.TransportError):
                await plain.get("/healthz")

    assert url.startswith("https://")
    assert (entered.status_code, inside.status_code) == (303, 200)
    assert {COOKIE, "Secure"} <= {part.partition("=")[0] for part in entered.headers["set-cookie"].split("; ")}
