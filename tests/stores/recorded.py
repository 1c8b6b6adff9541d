"""Requests to a store that is kept in this folder, with the answers that the version which wrote it gave.

A store ``X.tar.xz`` comes with ``X.json.xz``: the keys of its accounts, and requests in three groups.

- ``reads`` have the same answer at any time.
- ``reads_after_clean_up`` have their answer once the server has cleaned up after the process that wrote the store.
- ``writes`` change the store and read what they wrote. They are sent once, in order, at the end.

Everything here speaks HTTP to a server process and knows nothing of how the server is built, since it has to work
with every later version.
"""

import base64
import hashlib
import hmac
import http.client
import json
import lzma
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

VERSION = "2025-05-05"
"""The protocol version of a request that names none itself."""

CLIENT_REQUEST_ID = "00000000-0000-4000-8000-000000000001"
PORTS = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10003}
"""The port that a request names as its host's. Answers repeat it in addresses, so it must not be the real one."""

TEXT_MAX_BYTES = 4000
"""A longer body is recorded as its length and its SHA-256."""

OMITTED_HEADERS = frozenset({"connection", "date", "keep-alive", "server", "x-ms-request-id"})
CHANGING_TEXTS = (
    (re.compile(r"RequestId:[-0-9a-f]{36}"), "RequestId:(any)"),
    (re.compile(r"Time:\d{4}-\d\d-\d\dT[0-9:.]+Z"), "Time:(any)"),
    (re.compile(r"<LastSyncTime>[^<]*<"), "<LastSyncTime>(any)<"),
    (re.compile(r"<RemainingRetentionDays>\d+<"), "<RemainingRetentionDays>(any)<"),
)
"""What differs from one answer to the next, and what is recorded in its place."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    service: str
    target: str
    """The path with the account, and the query."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside those that every request has. An empty ``x-ms-version`` leaves that one out."""
    body: str = ""
    account: str | None = "acme"
    """Whose key signs the request; None sends it without a signature."""
    varying: tuple[str, ...] = ()
    """The headers of the answer that a write makes new every time, in lower case."""

    def __str__(self) -> str:
        more = "".join(f" {name}={value}" for name, value in self.headers.items())
        return f"{self.method} {self.service}:{self.target}{more}{'' if self.account else ' unsigned'}"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """By their names in lower case, without those that differ from one answer to the next."""
    body: str
    """The text of a short body, or the length and the SHA-256 of any other."""


@dataclass(frozen=True, slots=True)
class Recorded:
    request: Request
    answer: Answer


@dataclass(frozen=True, slots=True)
class Recording:
    accounts: Mapping[str, str]
    """The keys by the names of the accounts, in base64."""
    reads: tuple[Recorded, ...]
    reads_after_clean_up: tuple[Recorded, ...]
    writes: tuple[Recorded, ...]

    def server_options(self) -> list[str]:
        """The options of ``kyanite serve`` that give it these accounts."""
        return [part for name, key in self.accounts.items() for part in ("--account", f"{name}:{key}")]


class Client:
    """Sends requests to one server, on a connection for each service."""

    def __init__(self, endpoints: Mapping[str, str], accounts: Mapping[str, str]) -> None:
        self._accounts = accounts
        self._connections = {
            service: http.client.HTTPConnection(urlsplit(endpoints[service]).netloc, timeout=60)
            for service in PORTS
        }

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def fetch(self, request: Request) -> tuple[http.client.HTTPResponse, bytes]:
        """The raw answer and its body."""
        sent = self._headers(request)
        connection = self._connections[request.service]
        connection.request(request.method, request.target, request.body.encode() or None, sent)
        response = connection.getresponse()
        return response, response.read()

    def send(self, request: Request) -> Answer:
        response, body = self.fetch(request)
        headers: dict[str, str] = {}
        for name, value in response.getheaders():
            name = name.lower()
            if name not in OMITTED_HEADERS and name not in request.varying:
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Answer(response.status, headers, _text_to_compare(body))

    def _headers(self, request: Request) -> dict[str, str]:
        sent = {
            "Host": f"localhost:{PORTS[request.service]}",
            "x-ms-version": VERSION,
            "x-ms-client-request-id": CLIENT_REQUEST_ID,
            **request.headers,
        }
        if not sent["x-ms-version"]:
            del sent["x-ms-version"]
        if request.body or request.method == "PUT":
            sent["Content-Length"] = str(len(request.body.encode()))
        if request.account is not None:
            sent["x-ms-date"] = format_datetime(datetime.now(UTC), usegmt=True)
            key = base64.b64decode(self._accounts[request.account])
            signature = hmac.new(key, _string_to_sign(request, sent).encode(), hashlib.sha256).digest()
            sent["Authorization"] = f"SharedKey {request.account}:{base64.b64encode(signature).decode()}"
        return sent


def _string_to_sign(request: Request, headers: Mapping[str, str]) -> str:
    """What Shared Key signs of a request with a date in ``x-ms-date``."""
    lower = {name.lower(): value for name, value in headers.items()}
    path, _, query = request.target.partition("?")
    parameters = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
    resource = f"/{request.account}{path}"
    if request.service == "table":
        if "comp" in parameters:
            resource += f"?comp={parameters['comp']}"
        first = ("content-md5", "content-type", "x-ms-date")
        return "\n".join([request.method, *(lower.get(name, "") for name in first), resource])
    signed = (
        "content-encoding content-language content-length content-md5 content-type date if-modified-since "
        "if-match if-none-match if-unmodified-since range"
    )
    values = [lower.get(name, "") for name in signed.split()]
    if lower.get("content-length") == "0":
        values[2] = ""
    extras = [f"{name}:{lower[name]}" for name in sorted(lower) if name.startswith("x-ms-")]
    for name in sorted(parameters, key=str.lower):
        resource += f"\n{name.lower()}:{unquote(parameters[name])}"
    return "\n".join([request.method, *values, *extras, resource])


def _text_to_compare(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return _digest(body)
    for pattern, replacement in CHANGING_TEXTS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= TEXT_MAX_BYTES else _digest(text.encode())


def _digest(body: bytes) -> str:
    return f"{len(body)} bytes with SHA-256 {hashlib.sha256(body).hexdigest()}"


# Files


def save(recording: Recording, path: Path) -> None:
    """Write the recording. The form is JSON, with one request on each line."""
    groups = []
    for group in ("reads", "reads_after_clean_up", "writes"):
        lines = [json.dumps(_encode(each), ensure_ascii=False) for each in getattr(recording, group)]
        groups.append(f'"{group}": [\n' + ",\n".join(lines) + "\n]")
    text = f'{{"accounts": {json.dumps(dict(recording.accounts))},\n' + ",\n".join(groups) + "}\n"
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def load(path: Path) -> Recording:
    found = json.loads(lzma.decompress(path.read_bytes()))
    groups = {
        group: tuple(map(_decode, found[group])) for group in ("reads", "reads_after_clean_up", "writes")
    }
    return Recording(accounts=found["accounts"], **groups)


def _encode(recorded: Recorded) -> dict[str, Any]:
    request, answer = recorded.request, recorded.answer
    return {
        "method": request.method,
        "service": request.service,
        "target": request.target,
        "headers": dict(request.headers),
        "body": request.body,
        "account": request.account,
        "varying": list(request.varying),
        "answer": {"status": answer.status, "headers": dict(answer.headers), "body": answer.body},
    }


def _decode(found: dict[str, Any]) -> Recorded:
    answer = Answer(**found.pop("answer"))
    return Recorded(Request(**{**found, "varying": tuple(found["varying"])}), answer)


def unpack(archive: Path, location: Path) -> None:
    """Unpack a store into a folder."""
    with tarfile.open(archive) as packed:
        # Python has the filter since 3.11.4, and warns without one since 3.12.
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        packed.extractall(location)
