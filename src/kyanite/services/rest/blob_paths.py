"""What the paths of the Blob service name, and the ACLs of containers: for blobs and for sources of copies."""

from collections.abc import Mapping

from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules import names
from kyanite.services.rest.authentication import ContainerAcl
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.wire import iso_time
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed, bad_parameter
from kyanite.wire.uri import Target

ROOT = "$root"


def locate(request: Request, target: Target, parameters: Mapping[str, str]) -> Location:
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
    """The blob or snapshot that a read or a delete names. There are no versions yet, so none can be meant."""
    if "versionid" in context.parameters:
        raise Malformed("NotImplemented", QueryParameterName="versionid")
    text = context.parameters.get("snapshot")
    if not text:
        return BlobKey(ContainerKey(context.account.name, context.container), context.object_name)
    instant = iso_time.decode(text)
    if instant is None:
        raise bad_parameter("snapshot", text)
    return BlobKey(ContainerKey(context.account.name, context.container), context.object_name, instant)
