from collections.abc import Iterator

import pytest

from tests.nodes.cluster import new_prefix, running_nodes
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess


@pytest.fixture(scope="session")
def nodes(postgres_server: PostgresServer, seaweed: SeaweedServer) -> Iterator[list[ServerProcess]]:
    """Two nodes that all tests of this process share which leave them alive."""
    with running_nodes(postgres_server.new_schema_url(), seaweed.url(new_prefix())) as started:
        yield started
        for node in started:
            assert node.is_running(), node.errors
