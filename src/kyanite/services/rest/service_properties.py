"""Get and Set … Service Properties, and Get … Service Stats, for any service."""

from functools import partial

from kyanite.model import settings
from kyanite.model.accounts import Account
from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.rules.authorization import Access
from kyanite.rules.refusals import Explained, Reason, Refused
from kyanite.rules.system_containers import LOGS
from kyanite.service_properties import DeleteRetention, Logging, ServiceProperties
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.services.rest.operations import Op, query
from kyanite.wire import service_properties as wire
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed

_MAX_BYTES = 64 * 1024
_TOKENS_SINCE = {"file": "2024-11-04"}
"""Since which version an OAuth caller may do this, where that is later than for other operations of the service."""


def properties_operations(title: str, elements: frozenset[str]) -> tuple[Op, ...]:
    """The rows of a service whose properties have these elements."""
    named, service = query("service", "properties"), title.lower()
    since = _TOKENS_SINCE.get(service, "")
    read = Access(account="s r", role=f"{service}Services/read", role_since=since)
    write = Access(account="s w", writes=True, role=f"{service}Services/write", role_since=since)
    get = partial(_get_properties, service=service, elements=elements)
    change = partial(_set_properties, service=service, elements=elements)
    return (
        Op(f"Get {title} Service Properties", "GET", Resource.SERVICE, named, get, read),
        Op(f"Set {title} Service Properties", "PUT", Resource.SERVICE, named, change, write),
    )


def stats_operation(title: str) -> Op:
    named = query("service", "stats")
    access = Access(account="s r", role=f"{title.lower()}Services/read")
    return Op(f"Get {title} Service Stats", "GET", Resource.SERVICE, named, _get_stats, access)


async def _get_properties(context: RequestContext, *, service: str, elements: frozenset[str]) -> Response:
    properties = await settings.get(context.store.engine, context.account.name, service)
    return Response(200, [("Content-Type", "application/xml")], wire.encode(properties, elements))


async def _set_properties(context: RequestContext, *, service: str, elements: frozenset[str]) -> Response:
    document = await context.request.body.read_all(_MAX_BYTES)
    if document is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_MAX_BYTES))
    change = wire.decode(document, elements)
    _check_implemented(change)
    account = context.account
    if service == "blob" and change.logging is not None and _is_on(change.logging):
        await container.create_if_missing(context.store.engine, ContainerKey(account.name, LOGS))
    check = partial(_check_not_fixed, account) if account.fixed and service == "blob" else None
    await settings.update(context.store.engine, account.name, service, change, check)
    return Response(202)


def _is_on(logging: Logging) -> bool:
    return logging.read or logging.write or logging.delete


def _check_not_fixed(account: Account, before: ServiceProperties, after: ServiceProperties) -> None:
    """What the operator states for an account is not for clients to change."""
    old, new = before.delete_retention or DeleteRetention(), after.delete_retention or DeleteRetention()
    changed = {
        "blob_soft_delete_days": old.retention.days != new.retention.days,
        "allow_permanent_delete": old.allow_permanent_delete != new.allow_permanent_delete,
    }
    for setting, where in account.fixed.items():
        if changed.get(setting):
            text = f"The setting {setting} is stated by {where} and cannot be changed here."
            raise Refused(Reason.SETTING_IS_FIXED, Explained(text))


def _check_implemented(change: ServiceProperties) -> None:
    """Refuse to turn on what the server does not do yet."""
    website = change.static_website
    if website is not None and website.enabled:
        raise Malformed("NotImplemented", XmlNodeName="StaticWebsite")


async def _get_stats(context: RequestContext) -> Response:
    """Only the secondary answers, as in Azure: the primary has no replication state."""
    if not context.target.secondary:
        raise Malformed("InvalidQueryParameterValue", QueryParameterName="comp", QueryParameterValue="stats")
    body = wire.encode_stats(context.environment.clock())
    return Response(200, [("Content-Type", "application/xml")], body)
