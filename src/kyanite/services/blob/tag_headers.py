"""The headers about tags that operations on blobs share: tags to be stored, and conditions on tags.

Whoever sets tags by a header, or learns about them by a condition, needs the permission for tags beside that of the
operation. So each operation checks these headers where it learns which blob it is about.
"""

from dataclasses import replace
from typing import Final

from kyanite.rules import tags
from kyanite.rules.authorization import Access, AccessedResource, authorize
from kyanite.rules.preconditions import Conditions
from kyanite.rules.second_resources import READ_TAGS
from kyanite.rules.tag_expressions import InvalidExpression, decode_condition
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import one_of
from kyanite.wire import tags as wire
from kyanite.wire.malformed import Malformed, bad_header

TAGS: Final = wire.HEADER
IF_TAGS: Final = "x-ms-if-tags"
SOURCE_IF_TAGS: Final = "x-ms-source-if-tags"
_OPTION: Final = "x-ms-copy-source-tag-option"
_COPY, _REPLACE = "COPY", "REPLACE"

_WRITE_TAGS: Final = Access(account="o t", service="t", writes=True, role="blobs/tags/write")


def check_permissions(context: RequestContext) -> None:
    """Refuse headers about tags from a caller who may not set or read those of the blob."""
    headers = context.headers
    if TAGS in headers:
        _authorize(context, _WRITE_TAGS)
    if IF_TAGS in headers:
        _authorize(context, READ_TAGS)


def check_source_permissions(context: RequestContext, source: RequestContext) -> None:
    """The same for headers about the tags of the source of a copy."""
    headers = context.headers
    if SOURCE_IF_TAGS in headers or _copies(headers):
        _authorize(source, READ_TAGS)


def _authorize(context: RequestContext, access: Access) -> None:
    authorize(context.principal, access, AccessedResource("blob", context.is_read_only))


def tags_of(headers: dict[str, str]) -> Tags:
    """The tags of a blob that the request creates."""
    text = headers.get(TAGS)
    return NO_TAGS if text is None else tags.checked(wire.decode_form(text))


def copied_tags_of(headers: dict[str, str], *, may_copy: bool) -> Tags | None:
    """The tags of a copy; None for those of its source. An asynchronous copy may not take these."""
    if not _copies(headers):
        return tags_of(headers)
    if not may_copy or TAGS in headers:
        raise bad_header(_OPTION, headers[_OPTION])
    return None


def _copies(headers: dict[str, str]) -> bool:
    return one_of(headers, _OPTION, (_REPLACE, _COPY)) == _COPY


def with_tags(conditions: Conditions, headers: dict[str, str], name: str) -> Conditions:
    """The same conditions and that on tags in the header of this name, if there is one."""
    text = headers.get(name)
    if text is None:
        return conditions
    try:
        return replace(conditions, if_tags=decode_condition(text))
    except InvalidExpression as error:
        raise Malformed("InvalidHeaderValue", HeaderName=name, HeaderValue=text, Reason=str(error)) from None
