"""The Table service: its tables combined."""

from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Service
from kyanite.services.table import errors
from kyanite.services.table.operations import OPERATIONS
from kyanite.services.table.paths import acl_lookup, locate


def table_service(environment: Environment) -> Service:
    return Service(environment, DEFINITION)


DEFINITION = ServiceDefinition(
    word="table",
    server="Windows-Azure-Table/1.0 Kyanite",
    operations=OPERATIONS,
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    acl_lookup=acl_lookup,
    error_body=errors.error_body,
    message_as_reason=False,
)
