"""What the paths of the Blob service name, and the ACLs of containers: for blobs and for sources of copies."""

from typing import Final

from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules import names
from kyanite.services.rest.authentication import ContainerAcl
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.values import Instant
from kyanite.wire import iso_time
from kyanite.wire.http import Request
from kyanite.wire.malformed import bad_parameter
from kyanite.wire.uri import Target

ROOT: Final = "$root"


def locate(request: Request, target: Target, parameters: dict[str, str]) -> Location:
    """A path of one name is a container when the query says so, and otherwise a blob of the root container."""
    container, name = target.first, target.rest
    if not container:
        return Location(Resource.SERVICE, container, name)
    if not name:
        if "restype" in parameters or request.path.endswith("/"):
            names.check_container(container)
            return Location(Resource.CONTAINER, container)
        container, name = ROOT, container
    if "\\" in name:
        name = names.blob_name(name)
    names.check_container(container)
    names.check_blob(name, container)
    return Location(Resource.OBJECT, container, name)


async def acl_lookup(context: RequestContext) -> ContainerAcl | None:
    key = ContainerKey(context.account.name, context.container)
    record = await container.find(context.store.engine, key)
    return None if record is None else ContainerAcl(record.policies, record.public_access)


def readable_key_of(context: RequestContext) -> BlobKey:
    """The blob, snapshot or version that a read or a delete names."""
    key, parameters = ContainerKey(context.account.name, context.container), context.parameters
    if "snapshot" not in parameters and "versionid" not in parameters:
        return BlobKey(key, context.object_name)
    snapshot, version = _instant_of(parameters, "snapshot"), _instant_of(parameters, "versionid")
    if snapshot is not None and version is not None:
        raise bad_parameter("versionid", parameters["versionid"], "A snapshot has no versions.")
    return BlobKey(key, context.object_name, snapshot, version)


def _instant_of(parameters: dict[str, str], name: str) -> Instant | None:
    """A parameter that names a snapshot or a version; None when it is absent or empty."""
    text = parameters.get(name)
    if not text:
        return None
    instant = iso_time.decode(text)
    if instant is None:
        raise bad_parameter(name, text)
    return instant
