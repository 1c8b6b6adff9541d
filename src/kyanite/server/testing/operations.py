"""What a request is, before a service has read it: by the tables of the services."""

from collections.abc import Collection, Mapping
from functools import cache

from kyanite.rules.refusals import Refused
from kyanite.server.testing.rules import Identified
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.errors import WireError
from kyanite.services.rest.operations import Router
from kyanite.wire import uri
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed


@cache
def definitions() -> Mapping[str, ServiceDefinition]:
    """Of the services that speak HTTP. They are imported when they are first needed."""
    from kyanite.services.blob.service import DEFINITION as BLOB
    from kyanite.services.files.service import DEFINITION as FILE
    from kyanite.services.queue.service import DEFINITION as QUEUE
    from kyanite.services.table.service import DEFINITION as TABLE

    return {definition.word: definition for definition in (BLOB, QUEUE, TABLE, FILE)}


@cache
def operation_names() -> Collection[str]:
    return sorted({op.name for definition in definitions().values() for op in definition.operations})


@cache
def _router(service: str) -> Router:
    return Router(definitions()[service].operations)


def identify(request: Request, service: str) -> Identified:
    """As far as the request can be read."""
    account = operation = path = ""
    try:
        target = uri.decode_target(request.headers.get("host", ""), request.path, service)
        account = target.account
        path = f"{target.first}/{target.rest}" if target.rest else target.first
        if service in definitions():
            query = uri.decode_query(request.query)
            location = definitions()[service].locate(request, target, query.first)
            headers = request.headers
            operation = _router(service).find(location.resource, request.method, query.first, headers).name
    except (Malformed, Refused):
        pass
    return Identified(service, operation, account, path, request.method)


def known_error(definition: ServiceDefinition, code: str) -> WireError | None:
    """The error of this code in the tables of a service."""
    of_reasons = (error for reasons in definition.reasons.values() for error in reasons.values())
    for error in (*definition.codes.values(), *of_reasons):
        if error.code == code:
            return error
    return None
