"""The responses of the Queue service for each reason and code, beside those that all services share."""

from collections.abc import Mapping

from kyanite.rules.refusals import Reason
from kyanite.services.rest import errors as common
from kyanite.services.rest.context import Resource
from kyanite.services.rest.errors import WireError

CODES: Mapping[str, WireError] = common.CODES

_ANYWHERE: Mapping[Reason, WireError] = {
    **common.REASONS,
    Reason.QUEUE_ALREADY_EXISTS: WireError(409, "QueueAlreadyExists", "The specified queue already exists."),
    Reason.QUEUE_NOT_FOUND: WireError(404, "QueueNotFound", "The specified queue does not exist."),
    # Also for a pop receipt that is no longer the latest. The list of codes has PopReceiptMismatch for that, but
    # users of every client report this one.
    Reason.MESSAGE_NOT_FOUND: WireError(404, "MessageNotFound", "The specified message does not exist."),
    Reason.INVISIBLE_UNTIL_EXPIRY: CODES["InvalidQueryParameterValue"],
    Reason.INVISIBLE_BEYOND_EXPIRY: CODES["OutOfRangeQueryParameterValue"],
}

REASONS: Mapping[Resource, Mapping[Reason, WireError]] = dict.fromkeys(Resource, _ANYWHERE)
