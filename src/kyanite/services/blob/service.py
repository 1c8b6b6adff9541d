"""The Blob service, built from its tables."""

from kyanite.rules.system_containers import SERVER_WRITTEN
from kyanite.services.blob import batch, errors
from kyanite.services.blob.operations import OPERATIONS
from kyanite.services.rest.blob_paths import acl_lookup, locate
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Service


def blob_service(environment: Environment) -> Service:
    return Service(environment, DEFINITION)


DEFINITION = ServiceDefinition(
    word="blob",
    server=batch.SERVER,
    operations=(*OPERATIONS, *batch.OPERATIONS),
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    acl_lookup=acl_lookup,
    server_written=frozenset(SERVER_WRITTEN),
)
