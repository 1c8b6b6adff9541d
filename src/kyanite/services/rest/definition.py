"""What distinguishes one service from another, as tables."""

from collections.abc import Callable, Mapping

import msgspec

from kyanite.rules.refusals import Reason
from kyanite.services.rest.authentication import AclLookup
from kyanite.services.rest.context import Locate, Resource
from kyanite.services.rest.errors import WireError
from kyanite.services.rest.operations import Op
from kyanite.wire import xml
from kyanite.wire.http import Request

ErrorBody = Callable[[Request, str, str, Mapping[str, str]], tuple[str, bytes]]
"""Content type and body of an error, from the request and the error's code, message and details."""


def xml_error_body(_: Request, code: str, message: str, detail: Mapping[str, str]) -> tuple[str, bytes]:
    return "application/xml", xml.error_body(code, message, detail)


class ServiceDefinition(msgspec.Struct, frozen=True):
    word: str
    """Its word in host names and signatures: blob, queue, table, file."""
    server: str
    """The value of its Server header."""
    operations: tuple[Op, ...]
    reasons: Mapping[Resource, Mapping[Reason, WireError]]
    """The response for each reason, by the kind of resource: refusals about leases name it."""
    codes: Mapping[str, WireError]
    """The response for each code of a request that cannot be read."""
    locate: Locate
    acl_lookup: AclLookup
    error_body: ErrorBody = xml_error_body
    server_written: frozenset[str] = frozenset()
    """Containers that the server alone writes (``rules/system_containers.py``)."""
    message_as_reason: bool = True
    """Whether the status line of an error has its message; otherwise it has HTTP's phrase for the status."""
