"""What ``packaging/compose.scale.yaml`` says, started without containers: its nodes, load balancer and credentials.

Only addresses are others: everything is on loopback, on free ports, and the names of the services of the file become
those addresses. The bucket is one of the tests' own object store.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from azure.storage.blob import BlobServiceClient, ExponentialRetry
from azure.storage.queue import QueueServiceClient

from kyanite.server.service_table import SERVICES
from tests.nodes.cluster import new_prefix
from tests.nodes.load_balancer import free_port
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess

FILE = Path(__file__).parents[2] / "packaging" / "compose.scale.yaml"
_HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
_SERVER = re.compile(r"server (node\d) node\d:(\d+)")
_RESOLVERS = re.compile(r"^resolvers .*\n(?: +.*\n)+", re.MULTILINE)


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load(FILE.read_text())


def environment_here(
    stated: Mapping[str, str], postgres: PostgresServer, seaweed: SeaweedServer
) -> dict[str, str]:
    """The variables of a node, with other addresses."""
    database = postgres.new_database()
    user = urlsplit(stated["KYANITE_ENGINE"]).username
    if not postgres.sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{user}'"):
        postgres.sql(f"CREATE ROLE {user} LOGIN")
    postgres.sql(f"ALTER DATABASE {database} OWNER TO {user}")
    engine = stated["KYANITE_ENGINE"].replace("@postgres/kyanite", f"@{postgres.hosts}/{database}")
    assert engine != stated["KYANITE_ENGINE"]
    return {
        **{name: value for name, value in stated.items() if name != "KYANITE_LOCATION"},
        "KYANITE_ENGINE": engine,
        "KYANITE_EXTENTS": seaweed.url(new_prefix()),
        "KYANITE_HOST": "127.0.0.1",
        "KYANITE_ADMIN_PORT": "0",
    }


@contextmanager
def load_balancer(text: str, nodes: Mapping[str, ServerProcess], folder: Path) -> Iterator[dict[int, int]]:
    """haproxy with the configuration of the file. Gives its ports, by those that the file has."""
    ports = {int(port): free_port() for port in re.findall(r"bind :(\d+)", text)}
    services = {row.default_port: name for name, row in SERVICES.items()}

    def server(found: re.Match[str]) -> str:
        node, service = nodes[found[1]], services[int(found[2])]
        address, admin = (urlsplit(node.endpoints[name]) for name in (service, "admin"))
        return f"server {found[1]} {address.hostname}:{address.port} port {admin.port}"

    text = re.sub(r"bind :(\d+)", lambda found: f"bind 127.0.0.1:{ports[int(found[1])]}", text)
    text = _RESOLVERS.sub("", text).replace(" port 10009 resolvers docker init-addr none", "")
    (folder / "haproxy.cfg").write_text(_SERVER.sub(server, text))
    assert _HAPROXY is not None
    checked = subprocess.run(
        [_HAPROXY, "-c", "-f", folder / "haproxy.cfg"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(
        [_HAPROXY, "-db", "-f", folder / "haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield ports
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.embedded("it names its database and its bucket itself")
@pytest.mark.skipif(_HAPROXY is None, reason="haproxy is not installed: scripts/debian haproxy does that")
def test_its_nodes_serve_behind_its_load_balancer(
    compose: Any, postgres_server: PostgresServer, seaweed: SeaweedServer, tmp_path: Path
) -> None:
    services = compose["services"]
    assert services["node1"] == services["node2"]
    stated = services["node1"]["environment"]
    environment = environment_here(stated, postgres_server, seaweed)
    account, _, key = stated["KYANITE_ACCOUNTS"].partition(":")
    with ExitStack() as stack:
        nodes = {
            name: ServerProcess("--workers", "1", environment=environment) for name in ("node1", "node2")
        }
        for node in nodes.values():
            stack.callback(node.close)
            node.launch()
        for node in nodes.values():
            node.wait_ready()
        haproxy = compose["configs"]["haproxy"]["content"]
        ports = stack.enter_context(load_balancer(haproxy, nodes, tmp_path))
        credential = {"account_name": account, "account_key": key}
        blobs = stack.enter_context(
            BlobServiceClient(
                f"http://127.0.0.1:{ports[10000]}/{account}",
                credential=credential,
                retry_policy=ExponentialRetry(initial_backoff=1, increment_base=2, retry_total=8),
            )
        )
        blobs.create_container("scaled")
        blobs.get_blob_client("scaled", "blob").upload_blob(bytes(100_000))
        queues = stack.enter_context(
            QueueServiceClient(f"http://127.0.0.1:{ports[10001]}/{account}", credential=credential)
        )
        queues.create_queue("queue").send_message("message")
        nodes["node1"].stop()
        assert blobs.get_blob_client("scaled", "blob").download_blob().readall() == bytes(100_000)
        assert [each.content for each in queues.get_queue_client("queue").receive_messages()] == ["message"]


def test_its_parts_fit_together(compose: Any) -> None:
    """What a node is told is what the other services are told."""
    services, configs = compose["services"], compose["configs"]
    stated = services["node1"]["environment"]
    engine, extents = urlsplit(stated["KYANITE_ENGINE"]), urlsplit(stated["KYANITE_EXTENTS"])
    assert engine.hostname in services
    assert engine.username == services["postgres"]["environment"]["POSTGRES_USER"]
    assert engine.password == services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    (identity,) = yaml.safe_load(configs["s3"]["content"])["identities"]
    options = {name: value for name, (value,) in parse_qs(extents.query).items()}
    assert identity["credentials"] == [
        {"accessKey": options["access_key_id"], "secretKey": options["secret_access_key"]}
    ]
    assert {"Read", "Write", "List"} <= set(identity["actions"])
    assert urlsplit(options["endpoint"]).hostname in services
    assert f"-name {extents.hostname}'" in services["bucket"]["command"][0]
    haproxy = configs["haproxy"]["content"]
    bound = {int(port) for port in re.findall(r"bind :(\d+)", haproxy)}
    published = {"127.0.0.1:10000-10003:10000-10003", "127.0.0.1:10445:10445"}
    assert set(services["load-balancer"]["ports"]) == published
    assert bound == {10000, 10001, 10002, 10003, 10445}
    assert set(_SERVER.findall(haproxy)) == {(f"node{n}", f"{port}") for n in (1, 2) for port in bound}
    assert f"port {stated['KYANITE_ADMIN_PORT']} " in haproxy
