"""Requests that the official client does not send: plain HTTP with whatever headers a test chooses."""

import base64
import hashlib
import hmac
import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import urlsplit

from tests.answers import ServiceAnswer


@dataclass(frozen=True, slots=True)
class Answer(ServiceAnswer):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def fetch(
    url: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> Answer:
    """Send one request on a connection of its own."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def signed_lite(
    url: str, method: str, headers: Mapping[str, str], *, account: str, key: str
) -> dict[str, str]:
    """The headers with a date and a Shared Key Lite signature, made as the reference describes it."""
    date = format_datetime(datetime.now(UTC), usegmt=True)
    sent = {"x-ms-date": date, "x-ms-version": "2025-05-05", **headers}
    lower = {name.lower(): value for name, value in sent.items()}
    canonical = "".join(f"{name}:{lower[name]}\n" for name in sorted(lower) if name.startswith("x-ms-"))
    parts = urlsplit(url)
    comp = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair).get("comp")
    resource = f"/{account}{parts.path}" + (f"?comp={comp}" if comp else "")
    lines = (method, lower.get("content-md5", ""), lower.get("content-type", ""), "")
    text = "\n".join(lines) + f"\n{canonical}{resource}"
    mac = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return {**sent, "Authorization": f"SharedKeyLite {account}:{base64.b64encode(mac).decode()}"}
