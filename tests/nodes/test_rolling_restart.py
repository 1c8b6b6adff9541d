"""Nodes behind a load balancer are restarted one after the other while clients work: no request of an SDK fails."""

import signal
from threading import Event, Thread

from azure.storage.blob import BlobServiceClient, LinearRetry

from tests.nodes.cluster import PATIENCE_SECONDS, new_prefix, running_nodes
from tests.nodes.load_balancer import balancing, free_port
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess, eventually

CLIENTS = 8


def test_a_rolling_restart_fails_no_request(postgres_server: PostgresServer, seaweed: SeaweedServer) -> None:
    url = postgres_server.new_schema_url()
    # The ports stay when a node starts again.
    with (
        running_nodes(url, seaweed.url(new_prefix()), "--drain-seconds", "1.5", ports=free_ports) as nodes,
        balancing(nodes) as balancer,
    ):
        key = nodes[0].account_key
        with BlobServiceClient(balancer.url, credential=key) as service:
            service.create_container("rolling")
        ended, failures, counts = Event(), list[Exception](), [0] * CLIENTS

        def work(number: int) -> None:
            policy = LinearRetry(backoff=1, retry_total=3, random_jitter_range=0)
            with BlobServiceClient(balancer.url, credential=key, retry_policy=policy) as service:
                while not ended.is_set() and not failures:
                    text = b"%d %d" % (number, counts[number])
                    blob = service.get_blob_client("rolling", f"{number}")
                    try:
                        blob.upload_blob(text, overwrite=True)
                        assert blob.download_blob().readall() == text
                    except Exception as error:
                        failures.append(error)
                    counts[number] += 1

        threads = [Thread(target=work, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            for node in nodes:
                before = sum(counts)
                restart(node)
                eventually(lambda: balancer.ready_nodes() == len(nodes), PATIENCE_SECONDS)
                assert sum(counts) > before
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert not failures
        assert min(counts) > 0


def restart(node: ServerProcess) -> None:
    node.signal(signal.SIGTERM)
    assert node.stop() == 0
    node.start()


def free_ports() -> tuple[str, ...]:
    return ("--blob-port", str(free_port()), "--admin-port", str(free_port()))
