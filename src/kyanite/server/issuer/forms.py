"""Parameters of requests to the development issuer: forms and queries, each name once."""

import base64
import binascii
import re
from urllib.parse import parse_qsl, unquote_plus

from kyanite.server.issuer.errors import MALFORMED, TokenRefused

PARAMETERS_MAX = 50
AUDIENCE_CHARACTERS_MAX = 1024
_AUDIENCE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>\\^`{|}\x00-\x1f\x7f]+|[0-9a-fA-F-]{36}")


def decode(text: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        raise TokenRefused(MALFORMED, f"It has more than {PARAMETERS_MAX} parameters.") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise TokenRefused(MALFORMED, "It has a parameter twice.")
    return parameters


def basic_credentials(authorization: str) -> tuple[str, str]:
    """The id and the secret of a client, form-encoded before base64 (RFC 6749, section 2.3.1)."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, ValueError):
        text = ""
    client_id, colon, secret = text.partition(":")
    if not colon:
        raise TokenRefused(MALFORMED, "Its Authorization header has no id and secret of a client.")
    return unquote_plus(client_id), unquote_plus(secret)


def is_audience(text: str) -> bool:
    """Whether a token can be for this: an absolute URI, or the id of an application."""
    return len(text) <= AUDIENCE_CHARACTERS_MAX and _AUDIENCE.fullmatch(text) is not None
