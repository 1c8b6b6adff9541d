"""The Queue service: its tables combined."""

from kyanite.services.queue import errors
from kyanite.services.queue.operations import OPERATIONS
from kyanite.services.queue.paths import acl_lookup, locate
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Service


def queue_service(environment: Environment) -> Service:
    return Service(environment, DEFINITION)


DEFINITION = ServiceDefinition(
    word="queue",
    server="Windows-Azure-Queue/1.0 Kyanite",
    operations=OPERATIONS,
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    acl_lookup=acl_lookup,
)
