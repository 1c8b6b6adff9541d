"""What the paths of the Blob service mean, and who guards what they name: also asked where a blob is copied from."""

from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules import names
from kyanite.services.rest.access import ContainerAcl
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.wire import iso_time
from kyanite.wire.malformed import Malformed, bad_parameter

ROOT = "$root"


def locate(context: RequestContext) -> Resource:
    """A path of one name is a container when the query says so, and otherwise a blob of the root container."""
    target = context.target
    context.container, context.object_name = target.first, target.rest
    if not target.first:
        return Resource.SERVICE
    if not target.rest:
        if "restype" in context.parameters or context.request.path.endswith("/"):
            names.check_container(target.first)
            return Resource.CONTAINER
        context.container, context.object_name = ROOT, target.first
    names.check_container(context.container)
    names.check_blob(context.object_name, context.container)
    return Resource.OBJECT


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
