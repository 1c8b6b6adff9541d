"""A request to change an entity, alone or inside a batch, decoded for the model.

An update has an If-Match, an upsert has none. The keys are those of the path; Azure ignores the keys in the body of an
update.
"""

from collections.abc import Mapping
from typing import Final

from kyanite.model.tables.change import Change
from kyanite.rules.authorization import Access, AccessedResource, authorize, shared_keys
from kyanite.rules.entities import ANY, Act
from kyanite.services.rest.context import RequestContext
from kyanite.services.table.formats import check_content_type
from kyanite.wire import edm
from kyanite.wire.malformed import Malformed, missing_header

MAX_BODY_BYTES: Final = 4 * 1024 * 1024

_UPDATE: Final = Access(account="o u", service="u", writes=True, role="entities/update|entities/write")
_UPSERT: Final = Access(
    account="o a&u", service="a&u", writes=True, role="entities/add&entities/update|entities/write"
)
ACCESS: Final[Mapping[Act, Access]] = {
    Act.INSERT: Access(account="o a", service="a", writes=True, role="entities/add|entities/write"),
    Act.UPDATE: _UPDATE,
    Act.MERGE: _UPDATE,
    Act.INSERT_OR_REPLACE: _UPSERT,
    Act.INSERT_OR_MERGE: _UPSERT,
    Act.DELETE: Access(account="o d", service="d", writes=True, role="entities/delete"),
}
"""What the caller needs for each."""

_ACTS: Final = {
    ("PUT", True): Act.UPDATE,
    ("PUT", False): Act.INSERT_OR_REPLACE,
    ("MERGE", True): Act.MERGE,
    ("MERGE", False): Act.INSERT_OR_MERGE,
    ("PATCH", True): Act.MERGE,
    ("PATCH", False): Act.INSERT_OR_MERGE,
    ("DELETE", True): Act.DELETE,
    ("DELETE", False): Act.DELETE,
}


def act_of(method: str, headers: dict[str, str]) -> Act:
    """What a request to the path of an entity does to it."""
    meant = headers.get("x-http-method", method).upper()
    act = _ACTS.get((meant, "if-match" in headers))
    if act is None:
        raise Malformed("UnsupportedHttpVerb")
    return act


def check_insertion(headers: dict[str, str]) -> None:
    check_content_type(headers)
    if "if-match" in headers:
        raise Malformed("InvalidInput", Reason="An insertion takes no If-Match.")


def insertion_of(body: bytes) -> Change | None:
    """None when the body lacks a key."""
    partition_key, row_key, properties = edm.decode_entity(body)
    if partition_key is None or row_key is None:
        return None
    return Change(Act.INSERT, partition_key, row_key, properties)


def change_of(act: Act, partition_key: str, row_key: str, headers: dict[str, str], body: bytes) -> Change:
    if_match = _if_match(headers)
    if act is Act.DELETE:
        if if_match is None:
            raise missing_header("If-Match")
        return Change(act, partition_key, row_key, {}, if_match)
    check_content_type(headers)
    # An empty body has no properties: some clients send it to merge the keys alone.
    properties = edm.decode_properties(body) if body else {}
    return Change(act, partition_key, row_key, properties, if_match or ANY)


def _if_match(headers: dict[str, str]) -> str | None:
    """The ETag inside its weak mark and quotes, or ``*``; None without the header."""
    if "if-none-match" in headers:
        raise Malformed("InvalidInput", Reason="If-None-Match is not supported for entities.")
    text = headers.get("if-match")
    if text is None or text == ANY:
        return text
    if not (text.startswith(('W/"', 'w/"')) and text.endswith('"') and len(text) > len('W/""')):
        raise Malformed("InvalidInput", Reason=f"The If-Match value is no ETag of an entity: '{text}'.")
    return text[3:-1]


def authorize_change(context: RequestContext, change: Change) -> None:
    """Refuse a change of an entity that a token is not for. Its keys may be known only from the body."""
    if shared_keys(context.principal) is not None:
        resource = AccessedResource("table", context.is_read_only, (change.partition_key, change.row_key))
        authorize(context.principal, ACCESS[change.act], resource)


def etag_header(etag: str) -> tuple[str, str]:
    return "ETag", f'W/"{etag}"'
