"""The Blob service: its tables put together, and what its paths mean."""

from kyanite.model import container
from kyanite.model.container import ContainerKey
from kyanite.rules import names
from kyanite.services.blob import errors
from kyanite.services.blob.operations import OPERATIONS
from kyanite.services.common.access import Policed
from kyanite.services.common.environment import Environment
from kyanite.services.common.exchange import Exchange, Resource
from kyanite.services.common.service import Dialect, Service

ROOT = "$root"


def blob_service(environment: Environment) -> Service:
    return Service(environment, DIALECT)


def locate(exchange: Exchange) -> Resource:
    """A path of one name is a container when the query says so, and otherwise a blob of the root container."""
    target = exchange.target
    exchange.container, exchange.object_name = target.first, target.rest
    if not target.first:
        return Resource.SERVICE
    if not target.rest:
        if "restype" in exchange.parameters or exchange.request.path.endswith("/"):
            names.check_container(target.first)
            return Resource.CONTAINER
        exchange.container, exchange.object_name = ROOT, target.first
    names.check_container(exchange.container)
    names.check_blob(exchange.object_name, exchange.container)
    return Resource.OBJECT


async def guardian(exchange: Exchange) -> Policed | None:
    key = ContainerKey(exchange.account.name, exchange.container)
    record = await container.find(exchange.environment.engine, key)
    return None if record is None else Policed(record.policies, record.public_access)


DIALECT = Dialect(
    word="blob",
    server="Windows-Azure-Blob/1.0 Kyanite",
    operations=OPERATIONS,
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    guardian=guardian,
)
