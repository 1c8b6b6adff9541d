"""Listening sockets and the addresses they are announced under."""

import socket

import pytest

from kyanite.rules.served_hosts import LOOPBACK
from kyanite.server.failures import Failure
from kyanite.server.sockets import address_of, names_of, open_listener


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]")],
)
def test_address_for_this_machine(host: str, expected: str) -> None:
    try:
        listener = open_listener(host, 0, "a test")
    except Failure:
        if ":" not in host:
            raise
        pytest.skip("this machine has no IPv6")
    with listener:
        name, port = address_of(listener)
        assert name == expected
        assert names_of(listener) == (LOOPBACK if host == "::" else {expected, "localhost"})
        assert port == listener.getsockname()[1] > 0
        with socket.create_connection((name.strip("[]"), port), timeout=30):
            connection, _ = listener.accept()
            connection.close()


def test_a_port_is_free_again_at_once() -> None:
    with open_listener("127.0.0.1", 0, "a test") as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=30):
            connection, _ = listener.accept()
            connection.close()  # Closed by this side first, so it lingers in the kernel.
    open_listener("127.0.0.1", port, "a test").close()


def test_a_port_has_one_listener_only() -> None:
    with open_listener("127.0.0.1", 0, "a test") as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Failure, match=f"Port {port} on 127.0.0.1, meant for a test, is taken"):
            open_listener("127.0.0.1", port, "a test")
        with pytest.raises(Failure, match="is taken"):
            open_listener("0.0.0.0", port, "a test")
