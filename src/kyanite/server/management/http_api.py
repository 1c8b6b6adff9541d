"""Management commands over HTTP, on the admin port.

``POST /commands/account/list`` with a JSON object of arguments as its body, and ``Authorization: Bearer`` with the
token of ``token.py``. The process of the admin port does not have the store open: it passes the command on to the
worker that has, through the management socket.
"""

import asyncio
import hmac
import json
import socket
from pathlib import Path

import msgspec

from kyanite.server.config import is_loopback
from kyanite.server.failures import Failure
from kyanite.server.management import unix_socket
from kyanite.server.management.client import ANSWER_SECONDS
from kyanite.server.management.messages import (
    MESSAGE_BYTES_MAX,
    RequestMessage,
    ResultMessage,
    decode_result,
    encode,
)
from kyanite.wire.http import Request, Response

PATH = "/commands/"
_UNUSABLE = 2
"""The exit code of a command that does not exist or whose arguments are wrong."""

_decode_arguments = msgspec.json.Decoder(dict[str, object]).decode


class HttpApi(msgspec.Struct, frozen=True):
    folder: Path
    """Where the management socket is."""
    token: bytes

    async def __call__(self, request: Request) -> Response:
        if not is_loopback(request.peer):
            return _failure(403, "The admin port has no TLS, so it takes commands from this machine only.")
        if not self._is_authorized(request):
            return _failure(401, "The token of the admin port is needed.", ("WWW-Authenticate", "Bearer"))
        if request.method != "POST":
            return _failure(405, "Commands are sent by POST.", ("Allow", "POST"))
        body = await request.body.read_all(MESSAGE_BYTES_MAX // 2)
        if body is None:
            return _failure(413, "The arguments are too long.")
        try:
            arguments = _decode_arguments(body) if body else {}
        except msgspec.DecodeError:
            return _failure(400, "The arguments are to be one JSON object.")
        command = request.path.removeprefix(PATH).replace("/", " ")
        try:
            message = await pass_on(self.folder, RequestMessage(command, arguments))
        except Failure as failure:
            return _failure(503, failure.sentence)
        if message.failure is not None:
            return _failure(400 if message.exit_code == _UNUSABLE else 409, message.failure)
        return Response(200, [_JSON], msgspec.json.encode(message.result) + b"\n")

    def _is_authorized(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip().encode("latin-1", "replace")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self.token)


_JSON = ("Content-Type", "application/json")


async def pass_on(folder: Path, message: RequestMessage) -> ResultMessage:
    connection: socket.socket = unix_socket.connect(folder)
    connection.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    try:
        writer.write(encode(message))
        await writer.drain()
        answer = await asyncio.wait_for(reader.read(), ANSWER_SECONDS)
        return decode_result(answer)
    except (OSError, TimeoutError, msgspec.DecodeError):
        raise Failure("The server has not answered. It may have carried out the command.") from None
    finally:
        writer.close()


def _failure(status: int, sentence: str, *headers: tuple[str, str]) -> Response:
    return Response(status, [_JSON, *headers], json.dumps({"error": sentence}).encode() + b"\n")
