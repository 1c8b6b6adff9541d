"""Makes shared access signatures: the other direction of ``sas.py``, with its own lines.

The fields are decoded as the server would, so what the server could not read is not signed either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from kyanite.wire import sas, shared_key
from kyanite.wire.uri import decode_query


@dataclass(frozen=True, slots=True)
class SignedResource:
    """What a token is for."""

    service: str
    account: str
    container: str = ""
    """Or queue, table or share. Empty for the whole account."""
    name: str = ""
    moment: str = ""
    """Its snapshot or version, if the token is for that."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name: those that requests must have, in a user delegation SAS."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The same for parameters of the query."""


def encode(fields: Mapping[str, str], resource: SignedResource, key: bytes) -> str:
    """The token, as it is put behind the ``?`` of a URL. Raises Malformed if the fields do not go together."""
    text = string_to_sign(fields, resource)
    signed = {**_given(fields), "sig": shared_key.sign(key, text)}
    return urlencode(signed, quote_via=quote, safe="")


def string_to_sign(fields: Mapping[str, str], resource: SignedResource) -> str:
    query = decode_query(urlencode({**_given(fields), "sig": "none"}, quote_via=quote, safe=""))
    token = sas.decode(query, resource.service)
    match token:
        case sas.AccountSas():
            return token.string_to_sign(resource.account)
        case sas.ServiceSas():
            return token.string_to_sign(resource.account, resource.container, resource.name, resource.moment)
        case _:
            assert isinstance(token, sas.UserDelegationSas)
            return token.string_to_sign(
                resource.account,
                resource.container,
                resource.name,
                resource.moment,
                dict(resource.headers),
                dict(resource.parameters),
            )


def _given(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
