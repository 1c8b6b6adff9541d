"""The File service: its tables put together."""

from kyanite.services.files import errors
from kyanite.services.files.operations import OPERATIONS
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.file_paths import acl_lookup, locate
from kyanite.services.rest.service import Service


def file_service(environment: Environment) -> Service:
    return Service(environment, DEFINITION)


DEFINITION = ServiceDefinition(
    word="file",
    server="Windows-Azure-File/1.0 Kyanite",
    operations=OPERATIONS,
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    acl_lookup=acl_lookup,
)
