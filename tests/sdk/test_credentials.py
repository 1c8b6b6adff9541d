"""Credentials that a server must not accept, sent as bytes that no client library would send."""

import http.client
from urllib.parse import urlsplit

from tests.sdk.raw_http import signed_lite
from tests.server_process import ServerProcess


def test_a_second_authorization_header_is_refused(server: ServerProcess) -> None:
    url = f"{server.endpoints['blob']}?comp=list"
    parts = urlsplit(url)
    signed = dict(signed_lite(url, "GET", {}, account=server.account, key=server.account_key))
    for others, status in (((), 200), ((signed["Authorization"],), 400), (("SharedKey a:b",), 400)):
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        try:
            connection.putrequest("GET", f"{parts.path}?{parts.query}")
            for name, value in signed.items():
                connection.putheader(name, value)
            for other in others:
                connection.putheader("authorization", other)
            connection.endheaders()
            response = connection.getresponse()
            code = response.headers.get("x-ms-error-code")
            assert (response.status, code) == (status, "InvalidAuthenticationInfo" if others else None)
        finally:
            connection.close()
