"""Continuation tokens: where the next page of a query begins, in headers out and in parameters back.

They are opaque to clients. Ours look like the service's: ``1!16!cGsxMjFhMTk2NQ--``, which is a version, the length of
what follows, and a key in base64, in characters that need no encoding in a URL.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping

from kyanite.wire.malformed import bad_parameter

_MARK = "1!"


def encode_key(key: str) -> str:
    coded = b64encode(key.encode(), altchars=b"_*").decode("ascii").replace("=", "-")
    return f"{_MARK}{len(coded)}!{coded}"


def key_of(parameters: Mapping[str, str], name: str) -> str | None:
    """The key that a parameter holds, None when it was not sent or is empty."""
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
