"""Entity group transactions: a batch with one change set of up to a hundred changes, or with a single query.

The response is 202 also when a change is refused. Then no change is done, and the change set of the response has one
part, with the status of the change that failed; its message begins with that change's number. What is wrong with the
batch as a whole is refused as a whole.
"""

from collections.abc import Sequence
from typing import Final

from kyanite.model.tables import entity
from kyanite.model.tables.change import Change
from kyanite.model.tables.entity import ChangeRefused, Written
from kyanite.model.tables.table import TableKey
from kyanite.rules import entities
from kyanite.rules.authorization import (
    Access,
    AccessedResource,
    authorize,
    may_change_entities,
    shared_keys,
    within,
)
from kyanite.rules.entities import Act
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.services.rest.error_responses import formatted
from kyanite.services.rest.refused_requests import refusal_of
from kyanite.services.rest.subrequests import part_of, path_and_query, subrequest
from kyanite.services.table import errors
from kyanite.services.table.changes import (
    ACCESS,
    MAX_BODY_BYTES,
    act_of,
    authorize_change,
    change_of,
    check_insertion,
    etag_header,
    insertion_of,
)
from kyanite.services.table.entity import get_entity, query_entities
from kyanite.services.table.entity_json import entity_body
from kyanite.services.table.formats import NO_CONTENT, Level, json_headers, level_in, preference_of
from kyanite.services.table.paths import check_tunnel, entity_paths, quoted_key, read_path
from kyanite.slices import Sliced, in_slices
from kyanite.values import iso_text
from kyanite.wire import uri
from kyanite.wire.batch import (
    MULTIPART,
    EmbeddedRequest,
    decode_change_set,
    decode_parts,
    decode_requests,
    encode_parts,
    encode_response,
    header_lines,
    is_multipart,
    nested,
)
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed

_BYTES_PER_SLICE: Final = 32 * 1024
_QUERY_MAX_BYTES: Final = 256 * 1024
READ: Final = Access(account="o r", service="r", role="entities/read")
_ANY_TOKEN: Final = Access(account="* *", service="*", writes=True, role="*")
_PART_HEAD: Final = (
    b"X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\n"
)


class _Step:
    """One request of a change set, decoded."""

    __slots__ = ("change", "request", "table")

    def __init__(self, request: EmbeddedRequest, table: str, change: Change) -> None:
        self.request = request
        self.table = table
        self.change = change


class _Failure(Exception):
    """A request of the change set cannot be read or is refused."""

    def __init__(self, index: int, cause: Refused | Malformed) -> None:
        super().__init__(str(cause))
        self.index = index
        self.cause = cause


async def entity_group_transaction(context: RequestContext) -> Response:
    # Who may change nothing may still send a query, which is short.
    may_change = may_change_entities(context.principal)
    body = await context.request.body.read_all(MAX_BODY_BYTES if may_change else _QUERY_MAX_BYTES)
    if body is None and not may_change:
        raise Refused(Reason.PERMISSION_MISMATCH)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(MAX_BODY_BYTES))
    parts = decode_parts(context.headers.get("content-type", ""), body, limit=1)
    if len(parts) != 1:
        raise _invalid("A batch holds one change set or one query, and nothing else.")
    if is_multipart(parts[0].content_type):
        requests = decode_change_set(parts[0].content_type, parts[0].body, limit=entities.MAX_CHANGES)
        return _answer(context, await _change_set(context, requests))
    return _answer(context, await _lone_query(context, decode_requests(parts)[0]))


def _answer(context: RequestContext, part: bytes) -> Response:
    boundary = f"batchresponse_{context.environment.fresh_guid()}"
    headers = [("Content-Type", f"{MULTIPART}; boundary={boundary}"), ("Cache-Control", "no-cache")]
    return Response(202, headers, encode_parts(boundary, [part]))


async def _change_set(context: RequestContext, requests: Sequence[EmbeddedRequest]) -> bytes:
    authorize(context.principal, _ANY_TOKEN, _accessed(context))
    boundary = f"changesetresponse_{context.environment.fresh_guid()}"
    try:
        steps = await in_slices(_read(context, requests))
        _check_allowed(context, steps)
        written = await _apply(context, steps)
        parts = _responses(context, steps, written)
    except _Failure as failure:
        parts = [_failed(context, failure)]
    return nested(boundary, encode_parts(boundary, parts))


def _read(context: RequestContext, requests: Sequence[EmbeddedRequest]) -> Sliced[list[_Step]]:
    if len(requests) > entities.MAX_CHANGES:
        raise _Failure(entities.MAX_CHANGES - 1, Refused(Reason.TOO_MANY_CHANGES))
    steps: list[_Step] = []
    locations: dict[str, Location] = {}
    inserted: EmbeddedRequest | None = None
    read_bytes = 0
    for index, request in enumerate(requests):
        read_bytes += len(request.body)
        if read_bytes > _BYTES_PER_SLICE:
            read_bytes = 0
            yield
        try:
            location = locations.get(request.target)
            if location is None:
                location = locations[request.target] = _locate(context, request.target)
            if location.resource is Resource.ENTITIES and request.method == "POST":
                if inserted is None or request.headers is not inserted.headers:
                    check_tunnel(request.method, request.headers)
                    check_insertion(request.headers)
                    inserted = request
                change = insertion_of(request.body)
                if change is None:
                    raise Refused(Reason.PROPERTIES_NEED_VALUE)
            else:
                change = _change_of(request, location)
            steps.append(_Step(request, location.container, change))
        except (Refused, Malformed) as cause:
            raise _Failure(index, cause) from None
    return steps


def _check_allowed(context: RequestContext, steps: Sequence[_Step]) -> None:
    """A caller who may not do all of a batch may do nothing of it: the batch is refused, not one of its changes."""
    principal, accessed = within(context.principal, steps[0].table if steps else ""), _accessed(context)
    for act in {step.change.act for step in steps}:
        authorize(principal, ACCESS[act], accessed)
    is_limited = shared_keys(principal) is not None
    for index, step in enumerate(steps):
        if is_limited:
            authorize_change(context, step.change)
        if step.table != steps[0].table or context.container:
            _check_table(context, step, steps[0], index)
    refusal = entities.check_group([step.change for step in steps])
    if refusal is not None:
        raise _Failure(*refusal)


def _accessed(context: RequestContext) -> AccessedResource:
    return AccessedResource("table", context.is_read_only)


def _check_table(context: RequestContext, step: _Step, first: _Step, index: int) -> None:
    """All changes are of one table; if a token opened the batch, of the table it was made for."""
    if context.container and step.table.lower() != context.container.lower():
        raise Refused(Reason.AUTHORIZATION_FAILURE)
    if step.table.lower() != first.table.lower():
        raise _Failure(index, Refused(Reason.DIFFERENT_PARTITIONS))


def _change_of(request: EmbeddedRequest, location: Location) -> Change:
    """The change of an entity that the path names."""
    check_tunnel(request.method, request.headers)
    if location.resource is not Resource.OBJECT:
        raise Malformed("UnsupportedHttpVerb")
    act = act_of(request.method, request.headers)
    return change_of(act, *location.keys, request.headers, request.body)


def _locate(context: RequestContext, target: str) -> Location:
    """What a request names by a path or by a URL with any host."""
    path, _ = path_and_query(target)
    root = context.request.path.removesuffix("/").removesuffix("$batch")
    if not path.startswith(root):
        raise Malformed("InvalidUri")
    return read_path(uri.decode_percent(path[len(root) :]))


async def _apply(context: RequestContext, steps: Sequence[_Step]) -> Written:
    key = TableKey(context.account.name, steps[0].table)
    try:
        return await entity.apply(context.store.engine, key, [step.change for step in steps])
    except ChangeRefused as refusal:
        raise _Failure(refusal.index, refusal) from None
    except Refused as refusal_of_all:
        raise _Failure(0, refusal_of_all) from None


def _responses(context: RequestContext, steps: Sequence[_Step], written: Written) -> list[bytes]:
    changed = _PART_HEAD + header_lines([etag_header(written.etag)])
    # All changes are of one partition.
    folder = context.endpoint + entity_paths(written.table_name, steps[0].change.partition_key)
    parts: list[bytes] = []
    wish: _Wish | None = None
    for step, text in zip(steps, written.texts, strict=True):
        request, change = step.request, step.change
        if change.act is Act.INSERT:
            if wish is None or wish.headers is not request.headers:
                wish = _Wish(request.headers, changed)
            address = f"{folder}{quoted_key(change.row_key)}')".encode("latin-1")
            parts.append(_inserted(context, wish, written.table_name, text, address, request.content_id))
        else:
            head = _PART_HEAD if change.act is Act.DELETE else changed
            parts.append(encode_response(204, head, content_id=request.content_id))
    return parts


class _Wish:
    """What the headers of an insertion say about its response. The requests of a batch mostly share them."""

    __slots__ = ("applied", "has_content", "head", "headers", "level")

    def __init__(self, headers: dict[str, str], changed: bytes) -> None:
        """``changed`` is what the heads of all changes have."""
        self.headers = headers
        preference = preference_of(headers)
        self.has_content = preference != NO_CONTENT
        self.applied = f"Preference-Applied: {preference}\r\n".encode("latin-1") if preference else b""
        self.level = level_in(headers.get("accept", "")) if self.has_content else Level.MINIMAL
        self.head = changed + (header_lines(json_headers(self.level)[:1]) if self.has_content else b"")


def _inserted(
    context: RequestContext, wish: _Wish, table_name: str, text: bytes, address: bytes, content_id: str | None
) -> bytes:
    if wish.has_content:
        head = b"%bLocation: %b\r\n%b" % (wish.head, address, wish.applied)
        return encode_response(201, head, entity_body(context, table_name, text, wish.level), content_id)
    head = b"%bLocation: %b\r\nDataServiceId: %b\r\n%b" % (wish.head, address, address, wish.applied)
    return encode_response(204, head, content_id=content_id)


def _failed(context: RequestContext, failure: _Failure) -> bytes:
    error, _, detail = formatted(failure.cause, errors.REASONS[Resource.BATCH], errors.CODES)
    environment, request = context.environment, context.request
    now = environment.clock()
    request.error_code = error.code
    environment.refusals.add(refusal_of("table", request, failure.cause, error.status, now))
    message = f"{error.message}\nRequestId:{context.request_id}\nTime:{iso_text(now)}"
    content_type, body = errors.odata_error(
        error.code, f"{failure.index}:{errors.with_details(message, detail)}"
    )
    return encode_response(error.status, _PART_HEAD + header_lines([("Content-Type", content_type)]), body)


async def _lone_query(context: RequestContext, request: EmbeddedRequest) -> bytes:
    """A query alone in a batch: for keys that are too long for a URL."""
    if request.method != "GET":
        raise _invalid("Outside of a change set a batch may hold a query only.")
    location = _locate(context, request.target)
    if context.container and location.container.lower() != context.container.lower():
        raise Refused(Reason.AUTHORIZATION_FAILURE)
    headers = {**request.headers, "host": context.headers.get("host", "")}
    inner = subrequest(context, request.method, *path_and_query(request.target), headers)
    part = part_of(context, inner, location, READ)
    try:
        response = await (get_entity if location.resource is Resource.OBJECT else query_entities)(part)
    except (Refused, Malformed) as cause:
        return _failed(context, _Failure(0, cause))
    assert isinstance(response.body, bytes)
    return encode_response(response.status, header_lines(response.headers), response.body)


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)
