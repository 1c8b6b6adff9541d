"""Continuation tokens: where the next page of a query begins. Responses have them as headers, requests as parameters.

They are opaque to clients. They look like Azure's: ``1!16!cGsxMjFhMTk2NQ--`` is a version, the length of the rest, and
a key in base64, in characters that need no encoding in a URL.
"""

import binascii
from base64 import b64decode, b64encode

from kyanite.wire.malformed import bad_parameter

_MARK = "1!"


def encode_key(key: str) -> str:
    coded = b64encode(key.encode(), altchars=b"_*").decode("ascii").replace("=", "-")
    return f"{_MARK}{len(coded)}!{coded}"


def key_of(parameters: dict[str, str], name: str) -> str | None:
    """The key in a parameter, None when the parameter is missing or empty."""
    text = parameters.get(name)
    if not text:
        return None
    try:
        mark, length, coded = text.split("!")
        if mark != _MARK[:-1] or int(length) != len(coded):
            raise ValueError(text)
        return b64decode(coded.replace("-", "="), altchars=b"_*", validate=True).decode()
    except (ValueError, binascii.Error):
        raise bad_parameter(name, text, "The continuation token was not given out by this server.") from None
