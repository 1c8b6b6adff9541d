"""The Blob service: its tables put together."""

from kyanite.services.blob import batch, errors
from kyanite.services.blob.operations import OPERATIONS
from kyanite.services.rest.blob_paths import guardian, locate
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Dialect, Service


def blob_service(environment: Environment) -> Service:
    return Service(environment, DIALECT)


DIALECT = Dialect(
    word="blob",
    server=batch.SERVER,
    operations=(*OPERATIONS, *batch.OPERATIONS),
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    guardian=guardian,
)
