"""What the paths of the Blob service mean, and who guards what they name: also asked where a blob is copied from."""

from kyanite.model.blobs import container
from kyanite.model.blobs.blob import BlobKey
from kyanite.model.blobs.container import ContainerKey
from kyanite.rules import names
from kyanite.services.rest.access import Policed
from kyanite.services.rest.context import Exchange, Resource
from kyanite.wire import iso_time
from kyanite.wire.malformed import Malformed, bad_parameter

ROOT = "$root"


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


def readable_key_of(exchange: Exchange) -> BlobKey:
    """The blob or snapshot that a read or a delete names. There are no versions yet, so none can be meant."""
    if "versionid" in exchange.parameters:
        raise Malformed("NotImplemented", QueryParameterName="versionid")
    text = exchange.parameters.get("snapshot")
    if not text:
        return BlobKey(ContainerKey(exchange.account.name, exchange.container), exchange.object_name)
    instant = iso_time.decode(text)
    if instant is None:
        raise bad_parameter("snapshot", text)
    return BlobKey(ContainerKey(exchange.account.name, exchange.container), exchange.object_name, instant)
