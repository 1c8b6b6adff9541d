"""Features of the Blob service that this server does not have yet. Requests that need one are refused.

If it were ignored, a key would not encrypt, and a policy would not protect.
"""

from typing import Final

from kyanite.services.rest.context import RequestContext
from kyanite.wire.malformed import Malformed

_HEADERS: Final = frozenset(
    {
        "x-ms-encryption-key",
        "x-ms-encryption-scope",
        "x-ms-expiry-option",
        "x-ms-source-encryption-key",
    }
)
IMMUTABILITY_HEADERS: Final = (
    "x-ms-immutability-policy-until-date",
    "x-ms-immutability-policy-mode",
    "x-ms-legal-hold",
)
"""Only some operations support these. Others refuse them, lest a client takes its data for protected."""
_CHECKED_HEADERS: Final = _HEADERS | frozenset(IMMUTABILITY_HEADERS)
_ENCRYPTION_SCOPE: Final = "ses"
"""A parameter of tokens."""
LISTED_PARTS: Final = frozenset(
    {
        "permissions",
    }
)
"""What List Blobs can include on Azure and not here."""
_CONTAINER_SCOPE: Final = "x-ms-default-encryption-scope"
_ACCOUNT_KEY: Final = "$account-encryption-key"


def check(context: RequestContext, *, may_protect: bool = False) -> None:
    """Refuse a request about a blob that needs a missing feature.

    ``may_protect`` is for the operations that support the headers of immutability.
    """
    refused = _HEADERS if may_protect else _CHECKED_HEADERS
    if not refused.isdisjoint(context.headers):
        name = next(name for name in context.headers if name in refused)
        raise Malformed("NotImplemented" if name in _HEADERS else "UnsupportedHeader", HeaderName=name)
    if _ENCRYPTION_SCOPE in context.parameters:
        raise Malformed("NotImplemented", QueryParameterName=_ENCRYPTION_SCOPE)


def check_container(context: RequestContext) -> None:
    """The same for Create Container."""
    if context.headers.get(_CONTAINER_SCOPE, _ACCOUNT_KEY) != _ACCOUNT_KEY:
        raise Malformed("NotImplemented", HeaderName=_CONTAINER_SCOPE)


def check_listing(parts: frozenset[str]) -> None:
    """The same for what List Blobs is to include."""
    if not parts.isdisjoint(LISTED_PARTS):
        raise Malformed("NotImplemented", QueryParameterName="include")
