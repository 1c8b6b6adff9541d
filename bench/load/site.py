"""A server under test as the client sees it: its address, and how a request to it is written.

Requests carry an account SAS in the URL, so they are signed once for the whole run and the client spends
nothing on signatures while it measures. Heads are built as bytes, ready to send.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, replace
from email.utils import formatdate
from urllib.parse import urlencode

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2023-11-03"


@dataclass(frozen=True, slots=True)
class Site:
    """One listener. ``query`` is added to every request: the SAS, or nothing where none is wanted."""

    host: str
    port: int
    base: str
    query: str

    def head(self, method: str, path: str, query: str = "", headers: str = "") -> bytes:
        """A request head. ``headers`` are whole lines, each with its line end."""
        whole = "&".join(part for part in (query, self.query) if part)
        mark = "?" if whole else ""
        return (
            f"{method} {self.base}{path}{mark}{whole} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"x-ms-version: {VERSION}\r\n{headers}\r\n"
        ).encode()

    def signed_head(self, method: str, path: str) -> bytes:
        """A request head with a Shared Key signature instead of the SAS, good for fifteen minutes."""
        date = formatdate(usegmt=True)
        empty_lines = "\n" * 12
        named = f"x-ms-date:{date}\nx-ms-version:{VERSION}\n/{ACCOUNT}{self.base}{path}"
        signature = _signature(method + empty_lines + named)
        headers = f"x-ms-date: {date}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n"
        return replace(self, query="").head(method, path, headers=headers)


def storage_site(port: int) -> Site:
    """An Azure Storage endpoint on loopback, path style, with the well-known account."""
    return Site("127.0.0.1", port, f"/{ACCOUNT}", account_sas())


def account_sas() -> str:
    """An account SAS for everything, valid for as long as the key is."""
    permissions, services, resources, expiry = "rwdlacup", "bqtf", "sco", "2099-01-01T00:00:00Z"
    text = f"{ACCOUNT}\n{permissions}\n{services}\n{resources}\n\n{expiry}\n\n\n{VERSION}\n\n"
    fields = {"sv": VERSION, "ss": services, "srt": resources, "sp": permissions, "se": expiry}
    return urlencode({**fields, "sig": _signature(text)})


def _signature(text: str) -> str:
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()
