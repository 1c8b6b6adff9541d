"""The Table service: its tables put together."""

from kyanite.services.rest.environment import Environment
from kyanite.services.rest.service import Dialect, Service
from kyanite.services.table import errors
from kyanite.services.table.operations import OPERATIONS
from kyanite.services.table.paths import guardian, locate


def table_service(environment: Environment) -> Service:
    return Service(environment, DIALECT)


DIALECT = Dialect(
    word="table",
    server="Windows-Azure-Table/1.0 Kyanite",
    operations=OPERATIONS,
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    guardian=guardian,
    error_body=errors.error_body,
    message_as_reason=False,
)
