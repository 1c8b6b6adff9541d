"""Create Permission and Get Permission: security descriptors of a share, by key."""

import json

from kyanite.model.files import security_descriptors
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.files.properties import (
    PERMISSION_FORMS as FORMS,
)
from kyanite.services.files.properties import (
    checked_descriptor,
    decode_permission_key,
    encode_permission_key,
)
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import share_of
from kyanite.services.rest.headers import base64_text, one_of, required
from kyanite.wire import security_descriptor
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed

_BODY_MAX_BYTES = 512 * 1024
_DESCRIPTOR_MAX_BYTES = 64 * 1024


async def create_permission(context: RequestContext) -> Response:
    key = share_of(context)
    text = await _descriptor_of(context)
    stored = await security_descriptors.create(context.store.engine, key, text)
    return Response(
        201,
        [
            ("x-ms-file-permission-key", encode_permission_key(stored)),
            ("x-ms-request-server-encrypted", "true"),
        ],
    )


async def get_permission(context: RequestContext) -> Response:
    key = decode_permission_key(required(context.headers, "x-ms-file-permission-key"))
    form = one_of(context.headers, "x-ms-file-permission-format", FORMS, FORMS[0])
    text = await security_descriptors.get(context.store.engine, share_of(context), key)
    if form == "Binary":
        text = base64_text(_bytes_of(text))
    body = json.dumps({"permission": text, "format": form.lower()}).encode()
    return Response(200, [("Content-Type", "application/json")], body)


def _bytes_of(text: str) -> bytes:
    try:
        return security_descriptor.encode(text)
    except ValueError:
        raise Refused(Reason.INVALID_PERMISSION) from None


async def _descriptor_of(context: RequestContext) -> str:
    body = await context.request.body.read_all(_BODY_MAX_BYTES)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_BODY_MAX_BYTES))
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("InvalidInput") from None
    text = document.get("permission") if isinstance(document, dict) else None
    form = document.get("format", FORMS[0]) if isinstance(document, dict) else ""
    if not isinstance(text, str) or not isinstance(form, str) or form.capitalize() not in FORMS:
        raise Malformed("InvalidInput")
    if len(text) > _DESCRIPTOR_MAX_BYTES:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_DESCRIPTOR_MAX_BYTES))
    return checked_descriptor(text, form.capitalize())
