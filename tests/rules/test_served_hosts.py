"""Which hosts are this server."""

import pytest

from kyanite.rules.served_hosts import LOOPBACK, Host, is_served

PORTS = {10000, 10003}


@pytest.mark.parametrize(
    ("host", "own", "expected"),
    [
        # Where the request was sent, whatever is in between.
        (Host("localhost", 10000), Host("localhost", 10000), True),
        (Host("storage.example"), Host("storage.example"), True),
        (Host("storage.example", 20000), Host("storage.example", 20000), True),
        # The same name, another service.
        (Host("kyanite", 10003), Host("kyanite", 10000), True),
        (Host("kyanite", 10003), Host("kyanite"), True),
        # Where the server listens.
        (Host("127.0.0.1", 10000), Host("kyanite", 20000), True),
        (Host("[::1]", 10003), Host("localhost", 10000), True),
        # The right port of another server.
        (Host("somewhereelse", 10000), Host("localhost", 10000), False),
        (Host("127.0.0.2", 10000), Host("localhost", 10000), False),
        # Another port of this machine.
        (Host("127.0.0.1", 9), Host("127.0.0.1", 10000), False),
        (Host("127.0.0.1"), Host("127.0.0.1", 10000), False),
        (Host("localhost", 20000), Host("storage.example", 20000), False),
        (Host("storage.example", 20003), Host("storage.example", 20000), False),
        # Azure itself, unless the request was sent there or the host names an account of ours: see below.
        (Host("core.windows.net"), Host("localhost", 10000), False),
        (Host("core.windows.net"), Host("storage.example"), False),
        (Host("core.windows.net"), Host("core.windows.net"), True),
    ],
)
def test_hosts(host: Host, own: Host, expected: bool) -> None:
    assert is_served(host, own, LOOPBACK, PORTS) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (Host("core.windows.net"), True),
        (Host("core.usgovcloudapi.net"), True),
        (Host("core.windows.net", 10000), False),
        (Host("windows.net"), False),
        (Host("core.example"), False),
    ],
)
def test_accounts_in_the_domains_of_azure(host: Host, expected: bool) -> None:
    """The Azure CLI names a source so, whatever the connection string says."""
    assert is_served(host, Host("localhost", 10000), LOOPBACK, PORTS, names_account=True) == expected
