"""Requests of the console to the services of its own process, as the owner of an account.

The console is a client like any other: what it shows and changes goes through the operations that the SDKs use, so
every rule holds for it, and what is refused is refused with the service's own code and message.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET

from kyanite.services.rest.versions import NEWEST
from kyanite.wire.http import Body, FileSlice, Handler, Request, Response

_HOST = "localhost"
_READ_MAX = 16 * 1024 * 1024
"""What is read of a response that is not passed on to the browser: the largest list has less."""


class ServiceError(Exception):
    """What a service refused."""

    def __init__(self, status: int, code: str, message: str, request_id: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id


class BadInput(Exception):
    """What the visitor has entered cannot be sent. The sentence says why."""


class BytesBody:
    """A body that is in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.length = len(data)

    async def read(self) -> bytes:
        data, self._data = self._data, b""
        return data

    async def read_all(self, limit: int) -> bytes | None:
        return None if len(self._data) > limit else await self.read()


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def xml(self) -> ET.Element:
        return ET.fromstring(self.body)

    @property
    def json(self) -> dict[str, object]:
        decoded = json.loads(self.body)
        assert isinstance(decoded, dict)
        return decoded

    def metadata(self) -> dict[str, str]:
        prefix = "x-ms-meta-"
        return {
            name.removeprefix(prefix): value
            for name, value in self.headers.items()
            if name.startswith(prefix)
        }


class Client:
    """For one account."""

    def __init__(self, services: Mapping[str, Handler], account: str, peer: str, port: int) -> None:
        self._services = services
        self._account = account
        self._peer = peer
        self._port = port

    def offers(self, service: str) -> bool:
        return service in self._services

    def url(self, path: str, query: Mapping[str, str | int]) -> str:
        """What a request may name as its source. It is reached without leaving the process."""
        return f"https://{_HOST}/{self._account}{path}?{urlencode(query, quote_via=quote)}"

    async def call(
        self,
        service: str,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Body = b"",
    ) -> Answer:
        """Send a request and read the whole response. Raises ServiceError when it is refused."""
        response = await self.send(service, method, path, query, headers, body)
        known = {name.lower(): value for name, value in response.headers}
        if response.length is not None:
            known["content-length"] = str(response.length)
        return Answer(response.status, known, await read_body(response, _READ_MAX))

    async def send(
        self,
        service: str,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Body = b"",
    ) -> Response:
        """Send a request. The body of the response is still to be read, or to be passed on."""
        given = {"Host": _HOST, "x-ms-version": NEWEST, **(headers or {})}
        content = BytesBody(body) if isinstance(body, bytes) else body
        if content.length is not None and method != "GET":
            given["Content-Length"] = str(content.length)
        try:
            raw = [(name.encode("ascii"), value.encode("latin-1")) for name, value in given.items()]
        except UnicodeError:
            raise BadInput("Names and values of headers and metadata have plain characters only.") from None
        if any(b"\n" in part or b"\r" in part for pair in raw for part in pair):
            raise BadInput("Headers and metadata have no line breaks.")
        request = Request(
            method,
            f"/{self._account}{path}",
            urlencode(query or {}, quote_via=quote),
            {name.lower(): value for name, value in given.items()},
            raw,
            content,
            self._peer,
            # Within the process nobody listens in, so an account that wants TLS has what it wants.
            True,
            self._port,
        )
        response = await self._services[service](request)
        if response.status < 400:
            return response
        raise _error_of(response, await read_body(response, _READ_MAX), request.request_id)


def path_of(*names: str) -> str:
    """The path of a resource, by its names; one with slashes has them as they are."""
    return "".join("/" + quote(name, safe="/") for name in names)


async def read_body(response: Response, limit: int) -> bytes:
    """The body of a response, as far as the limit."""
    pieces = response.body
    try:
        if isinstance(pieces, bytes):
            return pieces[:limit]
        found = bytearray()
        try:
            async for piece in pieces:
                found += await _bytes_of(piece) if isinstance(piece, FileSlice) else piece
                if len(found) >= limit:
                    break
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        return bytes(found[:limit])
    finally:
        if response.release is not None:
            response.release()


async def _bytes_of(piece: FileSlice) -> bytes:
    return await asyncio.to_thread(os.pread, piece.fd, piece.length, piece.offset)


def _error_of(response: Response, body: bytes, request_id: str) -> ServiceError:
    code = next((value for name, value in response.headers if name.lower() == "x-ms-error-code"), "")
    message = ""
    try:
        if body.startswith(b"{"):
            error = json.loads(body)["odata.error"]
            code, message = code or error["code"], error["message"]["value"]
        elif body:
            root = ET.fromstring(body)
            code, message = code or root.findtext("Code", ""), root.findtext("Message", "")
    except (ValueError, KeyError, TypeError, ET.ParseError):
        message = ""
    # The message ends with lines for support people; they are in the log as well.
    return ServiceError(response.status, code, message.partition("\n")[0], request_id)
