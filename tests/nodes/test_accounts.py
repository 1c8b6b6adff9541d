"""A command at one node is obeyed by every node when it returns."""

import base64
import os
from pathlib import Path

import pytest

from kyanite.server.failures import Failure
from kyanite.server.management.client import call
from tests.nodes.cluster import new_prefix, running_nodes
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server.accounts.running import opens
from tests.server_process import ServerFailed, ServerProcess

ROUNDS = 5


def test_accounts_and_keys_of_all_nodes(
    postgres_server: PostgresServer, seaweed: SeaweedServer, tmp_path: Path
) -> None:
    key_file, another = tmp_path / "keys", tmp_path / "other keys"
    key_file.write_bytes(base64.b64encode(os.urandom(32)))
    another.write_bytes(base64.b64encode(os.urandom(32)))
    url = postgres_server.new_schema_url()
    extents = seaweed.url(new_prefix())
    store = ("--engine", url, "--extents", extents)
    with running_nodes(url, extents, "--key-file", str(key_file), workers=2) as nodes:
        first, second = nodes
        added = call(first.location, "account add", name="alpha")
        key = added["keys"][0]
        for _ in range(ROUNDS):
            assert all(opens(node, "alpha", key) for node in nodes)
            old, key = key, call(second.location, "account rotate-key", name="alpha", number=1)["keys"][0]
            assert not any(opens(node, "alpha", old) for node in nodes)
        # A node with another key file does not start, and says why.
        with pytest.raises(ServerFailed) as failed:
            ServerProcess(*store, "--key-file", str(another), "--workers", "1").start()
        assert "is not the one that the key of account alpha was stored with" in failed.value.errors
        call(first.location, "account remove", name="alpha", with_data=True)
        assert not any(opens(node, "alpha", key) for node in nodes)


def test_the_first_account_of_nodes_without_a_common_key_file(
    postgres_server: PostgresServer, seaweed: SeaweedServer
) -> None:
    """One node would make a key file that the others do not have. With one node it is made."""
    url, extents = postgres_server.new_schema_url(), seaweed.url(new_prefix())
    with running_nodes(url, extents) as nodes:
        first, second = nodes
        for node in nodes:
            with pytest.raises(Failure, match="start all of them with the same --key-file first"):
                call(node.location, "account add", name="alpha")
        second.stop()
        key = call(first.location, "account add", name="alpha")["keys"][0]
        assert opens(first, "alpha", key)


def test_a_second_node_needs_content_that_it_can_read(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_schema_url()
    with running_nodes(url, "local", count=1), pytest.raises(ServerFailed) as failed:
        ServerProcess("--engine", url, "--workers", "1").start()
    assert "give all nodes extents that they share" in failed.value.errors
