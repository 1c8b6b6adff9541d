"""Cutting signatures and tokens out of what people get to see: logs, and explanations of refusals."""

import re
from urllib.parse import unquote

_SIGNATURE = re.compile(r"(?i)\b(sig=|access_token=|bearer +(?!tokens?[.,;]?(?:\s|$)))[^&\s\"'\\]+")
_SECRETS = ("sig", "access_token")
_SIGNED_SECRET = re.compile(
    r"(?im)^(sig|x-ms-copy-source-authorization|x-ms-encryption-key|x-ms-source-encryption-key):.+$"
)


def cut_secrets(text: str) -> str:
    """The text with the signature of every shared access signature and every bearer token in it left out."""
    return _SIGNATURE.sub(r"\1...", text)


def cut_query(query: str) -> str:
    """A query as it came, without signatures and tokens: the value of ``sig``, however spelt, wherever else it is."""
    parts = [part.partition("=") for part in query.split("&")]
    signatures = {unquote(value) for name, _, value in parts if unquote(name).lower() in _SECRETS}
    return "&".join(
        ("sig" if unquote(name).lower() == "sig" else name) + equals + "..."
        if equals and value and unquote(value) in signatures
        else name + equals + value
        for name, equals, value in parts
    )


def cut_string_to_sign(text: str) -> str:
    """A string to sign has a parameter or a header on each line."""
    return cut_secrets(_SIGNED_SECRET.sub(r"\1:...", text))
