"""What the paths of the File service name, and the ACLs of shares: for files and for sources of copies."""

from kyanite.model.files import share
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath
from kyanite.rules import file_names, names
from kyanite.services.rest.authentication import ContainerAcl
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.services.rest.headers import flag_of
from kyanite.values import Instant
from kyanite.wire import iso_time
from kyanite.wire.http import Request
from kyanite.wire.malformed import bad_parameter
from kyanite.wire.uri import Target

_TRAILING_DOT = "x-ms-allow-trailing-dot"


def locate(_: Request, target: Target, parameters: dict[str, str]) -> Location:
    """A path of one name is the share when the query says so, and otherwise its root directory."""
    if not target.first:
        return Location(Resource.SERVICE, target.first, target.rest)
    names.check_share(target.first)
    is_share = not target.rest and parameters.get("restype", "").lower() == "share"
    return Location(Resource.CONTAINER if is_share else Resource.OBJECT, target.first, target.rest)


async def acl_lookup(context: RequestContext) -> ContainerAcl | None:
    record = await share.find(context.store.engine, ShareKey(context.account.name, context.container))
    return None if record is None else ContainerAcl(record.policies)


def share_of(context: RequestContext) -> ShareKey:
    """The share that a write names. Snapshots are read-only."""
    text = context.parameters.get("sharesnapshot")
    if text is not None:
        raise bad_parameter("sharesnapshot", text)
    return ShareKey(context.account.name, context.container)


def readable_share_of(context: RequestContext) -> ShareKey:
    """The share or snapshot that a read, a delete or a lease names."""
    instant = instant_of(context, "sharesnapshot")
    return ShareKey(context.account.name, context.container, instant)


def instant_of(context: RequestContext, parameter: str) -> Instant | None:
    text = context.parameters.get(parameter)
    if not text:
        return None
    instant = iso_time.decode(text)
    if instant is None:
        raise bad_parameter(parameter, text)
    return instant


def path_of(context: RequestContext) -> FilePath:
    return FilePath(share_of(context), names_of(context, context.object_name))


def readable_path_of(context: RequestContext) -> FilePath:
    return FilePath(readable_share_of(context), names_of(context, context.object_name))


def names_of(context: RequestContext, path: str, header: str = _TRAILING_DOT) -> tuple[str, ...]:
    return file_names.split(path, keeps_trailing_dots=flag_of(context.headers, header))
