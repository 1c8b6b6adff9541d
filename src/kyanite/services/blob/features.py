"""What requests can ask of blobs that is not there yet.

They are refused: left out in silence, a condition would not hold, a key would not encrypt, a tag would be lost.
"""

from kyanite.services.rest.context import RequestContext
from kyanite.wire.malformed import Malformed

_HEADERS = frozenset(
    {
        "x-ms-encryption-key",
        "x-ms-encryption-scope",
        "x-ms-expiry-option",
        "x-ms-if-tags",
        "x-ms-immutability-policy-until-date",
        "x-ms-legal-hold",
        "x-ms-source-encryption-key",
        "x-ms-source-if-tags",
        "x-ms-tags",
    }
)
_PARAMETERS = frozenset({"deletetype", "ses", "versionid"})
_CONTAINER_SCOPE = "x-ms-default-encryption-scope"
_ACCOUNT_KEY = "$account-encryption-key"


def check(context: RequestContext) -> None:
    """Refuse a request about a blob that asks for what is not there."""
    if not context.headers.keys().isdisjoint(_HEADERS):
        name = next(name for name in context.headers if name in _HEADERS)
        raise Malformed("NotImplemented", HeaderName=name)
    if not _PARAMETERS.isdisjoint(context.parameters):
        name = next(name for name in context.parameters if name in _PARAMETERS)
        raise Malformed("NotImplemented", QueryParameterName=name)


def check_container(context: RequestContext) -> None:
    """The same for a container that is to be created."""
    if context.headers.get(_CONTAINER_SCOPE, _ACCOUNT_KEY) != _ACCOUNT_KEY:
        raise Malformed("NotImplemented", HeaderName=_CONTAINER_SCOPE)
