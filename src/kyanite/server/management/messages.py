"""What travels over the management socket: one line of JSON each way, then the connection is closed."""

import msgspec

MESSAGE_BYTES_MAX = 1024 * 1024
"""Of a request. Results may be longer."""


class RequestMessage(msgspec.Struct, frozen=True):
    command: str
    arguments: dict[str, object] = {}


class ResultMessage(msgspec.Struct, frozen=True):
    """The result of a command, or the sentence that says why it failed."""

    result: object = None
    failure: str | None = None
    exit_code: int = 0


def encode(message: RequestMessage | ResultMessage) -> bytes:
    return msgspec.json.encode(message) + b"\n"


decode_request = msgspec.json.Decoder(RequestMessage).decode
decode_result = msgspec.json.Decoder(ResultMessage).decode
