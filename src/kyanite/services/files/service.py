"""The File service: its tables put together."""

from kyanite.services.common.environment import Environment
from kyanite.services.common.service import Dialect, Service
from kyanite.services.files import errors
from kyanite.services.files.operations import OPERATIONS
from kyanite.services.files.paths import guardian, locate


def file_service(environment: Environment) -> Service:
    return Service(environment, DIALECT)


DIALECT = Dialect(
    word="file",
    server="Windows-Azure-File/1.0 Kyanite",
    operations=OPERATIONS,
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    guardian=guardian,
)
