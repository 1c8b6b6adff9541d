"""The responses of the Table service for each reason and code, beside those that all services share; and their format.

Errors are OData: JSON, or XML for clients that accept nothing else. Service properties and policies are documents like
those of the other services, and so are their errors. OData has no elements for details, so they are lines of the
message; a detail named ``Reason`` replaces the sentence of the table.
"""

from collections.abc import Mapping

import msgspec

from kyanite.rules.refusals import Reason
from kyanite.services.rest import errors as common
from kyanite.services.rest.context import Resource
from kyanite.services.rest.definition import xml_error_body
from kyanite.services.rest.errors import WireError
from kyanite.wire import xml
from kyanite.wire.http import Request

_ERROR_TYPE = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
_METADATA_SPACE = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"

_INVALID_INPUT = WireError(400, "InvalidInput", "One of the request inputs is not valid.")
_OUT_OF_RANGE = WireError(400, "OutOfRangeInput", "One of the request inputs is out of range.")

_ANYWHERE: Mapping[Reason, WireError] = {
    **common.REASONS,
    Reason.TABLE_ALREADY_EXISTS: WireError(409, "TableAlreadyExists", "The table specified already exists."),
    Reason.TABLE_NOT_FOUND: WireError(404, "TableNotFound", "The table specified does not exist."),
    Reason.ENTITY_ALREADY_EXISTS: WireError(
        409, "EntityAlreadyExists", "The specified entity already exists."
    ),
    # The list of codes has EntityNotFound; the service was seen to answer this.
    Reason.ENTITY_NOT_FOUND: WireError(404, "ResourceNotFound", "The specified resource does not exist."),
    Reason.UPDATE_CONDITION_NOT_SATISFIED: WireError(
        412,
        "UpdateConditionNotSatisfied",
        "The update condition specified in the request was not satisfied.",
    ),
    Reason.KEY_VALUE_TOO_LARGE: WireError(
        400, "KeyValueTooLarge", "A key property exceeds the maximum allowed key size."
    ),
    Reason.KEY_OUT_OF_RANGE: _OUT_OF_RANGE,
    Reason.PROPERTIES_NEED_VALUE: WireError(
        400, "PropertiesNeedValue", "The values are not specified for all properties in the entity."
    ),
    Reason.PROPERTY_NAME_INVALID: WireError(400, "PropertyNameInvalid", "The property name is invalid."),
    Reason.PROPERTY_NAME_TOO_LONG: WireError(
        400, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255)."
    ),
    Reason.PROPERTY_VALUE_TOO_LARGE: WireError(
        400,
        "PropertyValueTooLarge",
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "
        "encoded and the maximum number of characters should be 32K or less.",
    ),
    Reason.TOO_MANY_PROPERTIES: WireError(
        400,
        "TooManyProperties",
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. "
        "Each entity also has 3 system properties.",
    ),
    Reason.ENTITY_TOO_LARGE: WireError(
        400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB)."
    ),
    Reason.TOO_MANY_CHANGES: WireError(
        400, "InvalidInput", "The batch request operation exceeds the maximum 100 changes per change set."
    ),
    Reason.DIFFERENT_PARTITIONS: WireError(
        400,
        "CommandsInBatchActOnDifferentPartitions",
        "All commands in a batch must operate on same entity group.",
    ),
    Reason.DUPLICATE_ROW: WireError(
        400,
        "InvalidDuplicateRow",
        "The batch request contains multiple changes with same row key. An entity can appear only once in a batch "
        "request.",
    ),
}

REASONS: Mapping[Resource, Mapping[Reason, WireError]] = dict.fromkeys(Resource, _ANYWHERE)

CODES: Mapping[str, WireError] = {
    **common.CODES,
    "UnsupportedHttpVerb": WireError(
        405, "MethodNotAllowed", "The requested method is not allowed on the specified resource."
    ),
    **{
        error.code: error
        for error in (
            _INVALID_INPUT,
            _OUT_OF_RANGE,
            _ANYWHERE[Reason.PROPERTY_NAME_INVALID],
            WireError(400, "DuplicatePropertiesSpecified", "A property is specified more than once."),
            WireError(400, "InvalidValueType", "The value specified is invalid."),
            WireError(
                400,
                "XMethodNotUsingPost",
                "The request uses X-HTTP-Method with a Http Verb that is not POST.",
            ),
            WireError(400, "XMethodIncorrectValue", "The specified X-HTTP-Method is invalid."),
            WireError(400, "XMethodIncorrectCount", "More than one X-HTTP-Method is specified."),
            WireError(415, "AtomFormatNotSupported", "Atom format is not supported."),
            WireError(415, "JsonFormatNotSupported", "JSON format is not supported."),
            WireError(415, "MediaTypeNotSupported", "None of the provided media types are supported"),
        )
    },
}


def error_body(request: Request, code: str, message: str, detail: Mapping[str, str]) -> tuple[str, bytes]:
    if "comp=" in request.query:
        return xml_error_body(request, code, message, detail)
    return odata_error(code, with_details(message, detail), as_xml=_wants_xml(request.headers))


def with_details(message: str, detail: Mapping[str, str]) -> str:
    """The message with its details, before the lines with the request's id and the time."""
    sentence, line_end, rest = message.partition("\n")
    lines = [detail.get("Reason", sentence)]
    lines += [f"{name}:{value}" for name, value in detail.items() if name != "Reason"]
    return "\n".join(lines) + line_end + rest


def odata_error(code: str, message: str, *, as_xml: bool = False) -> tuple[str, bytes]:
    """Content type and body."""
    if as_xml:
        text = (
            f'<m:error xmlns:m="{_METADATA_SPACE}"><m:code>{xml.escape(code)}</m:code>'
            f'<m:message xml:lang="en-US">{xml.escape(xml.valid_text(message))}</m:message></m:error>'
        )
        return "application/xml", xml.document(text)
    body = {"odata.error": {"code": code, "message": {"lang": "en-US", "value": message}}}
    return _ERROR_TYPE, msgspec.json.encode(body)


def _wants_xml(headers: dict[str, str]) -> bool:
    accept = headers.get("accept", "")
    return "xml" in accept and "json" not in accept and "*/*" not in accept
