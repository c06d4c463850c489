"""Address of the management API and its login."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mindbus.management import Management, ManagementUnavailable, management_url
from mindbus.settings import Settings

AMQP = "amqp://ann:s%40fe@rabbit:5672/"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://rabbit:15672", "http://ann:s%40fe@rabbit:15672"),
        ("https://eve:other@ui.example/rabbit", "https://eve:other@ui.example/rabbit"),
        (None, "http://ann:s%40fe@rabbit:15672"),
    ],
)
def test_without_a_login_of_its_own_it_has_that_of_amqp(given: str | None, used: str, tmp_path: Path) -> None:
    settings = Settings(amqp_url=AMQP, management_url=given, data_dir=tmp_path)

    assert management_url(settings, AMQP) == used


def test_a_cluster_is_asked_at_all_its_nodes(tmp_path: Path) -> None:
    cluster = "amqp://ann:safe@one:5673,[::1],three/"

    url = management_url(Settings(amqp_url=cluster, data_dir=tmp_path), cluster)

    assert url == "http://ann:safe@one:15672,[::1]:15672,three:15672"


async def test_where_a_node_is_silent_the_next_one_answers() -> None:
    class Overview(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"node": "second"}')

        def log_message(self, *_arguments: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Overview) as second:
        threading.Thread(target=second.serve_forever, daemon=True).start()
        # Nobody listens on port 9.
        url = f"http://ann:safe@127.0.0.1:9,127.0.0.1:{second.server_port}"
        assert await Management(url).overview() == {"node": "second"}
        second.shutdown()

    with pytest.raises(ManagementUnavailable, match=f"127.0.0.1:{second.server_port}"):
        await Management(url).overview()
