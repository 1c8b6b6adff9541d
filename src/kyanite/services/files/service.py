"""The File service: its tables put together."""

from kyanite.services.common.environment import Environment
from kyanite.services.common.file_paths import guardian, locate
from kyanite.services.common.service import Dialect, Service
from kyanite.services.files import errors
from kyanite.services.files.operations import OPERATIONS


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
