"""The responses for refusals and for requests that cannot be read, as far as all services share them.

Each service adds its own rows in its ``errors.py``. A ``Reason`` comes from a rule or the model, a code from a decoder
that could not read the request.
"""

from collections.abc import Mapping

import msgspec

from kyanite.rules.refusals import Reason


class WireError(msgspec.Struct, frozen=True):
    status: int
    code: str
    message: str


REASONS: Mapping[Reason, WireError] = {
    Reason.CONDITION_NOT_MET: WireError(
        412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."
    ),
    Reason.NOT_MODIFIED: WireError(
        304, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."
    ),
    Reason.UNSATISFIABLE_CONDITION: WireError(
        400, "UnsatisfiableCondition", "The request includes an unsatisfiable condition for this operation."
    ),
    Reason.CLIENT_CACHE_FLUSH_DELAY: WireError(
        408, "ClientCacheFlushDelay", "The specified resource state could not be flushed from an SMB client."
    ),
    Reason.INVALID_RESOURCE_NAME: WireError(
        400, "InvalidResourceName", "The specified resource name contains invalid characters."
    ),
    Reason.NAME_LENGTH_OUT_OF_RANGE: WireError(
        400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits."
    ),
    Reason.EMPTY_METADATA_KEY: WireError(
        400, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty."
    ),
    Reason.INVALID_METADATA: WireError(
        400,
        "InvalidMetadata",
        "The metadata specified is invalid. It has characters that are not permitted.",
    ),
    Reason.METADATA_TOO_LARGE: WireError(
        400, "MetadataTooLarge", "The metadata specified exceeds the maximum permissible limit."
    ),
    Reason.AUTHENTICATION_FAILED: WireError(
        403,
        "AuthenticationFailed",
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
        "correctly including the signature.",
    ),
    Reason.ACCOUNT_REQUIRES_HTTPS: WireError(
        400, "AccountRequiresHttps", "The account being accessed does not support http."
    ),
    Reason.KEY_BASED_AUTHENTICATION_NOT_PERMITTED: WireError(
        403,
        "KeyBasedAuthenticationNotPermitted",
        "Key based authentication is not permitted on this storage account.",
    ),
    Reason.PUBLIC_ACCESS_NOT_PERMITTED: WireError(
        409, "PublicAccessNotPermitted", "Public access is not permitted on this storage account."
    ),
    Reason.SETTING_IS_FIXED: WireError(
        409,
        "SettingIsFixed",
        "The operator of this server has fixed a setting that the request would change.",
    ),
    Reason.AUTHORIZATION_FAILURE: WireError(
        403, "AuthorizationFailure", "This request is not authorized to perform this operation."
    ),
    Reason.INVALID_AUTHENTICATION_INFO: WireError(
        401,
        "InvalidAuthenticationInfo",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate "
        "header.",
    ),
    Reason.NO_AUTHENTICATION_INFORMATION: WireError(
        401,
        "NoAuthenticationInformation",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate "
        "header.",
    ),
    Reason.RESOURCE_NOT_FOUND: WireError(404, "ResourceNotFound", "The specified resource does not exist."),
    Reason.PERMISSION_MISMATCH: WireError(
        403,
        "AuthorizationPermissionMismatch",
        "This request is not authorized to perform this operation using this permission.",
    ),
    Reason.PROTOCOL_MISMATCH: WireError(
        403,
        "AuthorizationProtocolMismatch",
        "This request is not authorized to perform this operation using this protocol.",
    ),
    Reason.RESOURCE_TYPE_MISMATCH: WireError(
        403,
        "AuthorizationResourceTypeMismatch",
        "This request is not authorized to perform this operation using this resource type.",
    ),
    Reason.SERVICE_MISMATCH: WireError(
        403,
        "AuthorizationServiceMismatch",
        "This request is not authorized to perform this operation using this service.",
    ),
    Reason.SOURCE_IP_MISMATCH: WireError(
        403,
        "AuthorizationSourceIPMismatch",
        "This request is not authorized to perform this operation using this source IP.",
    ),
    Reason.COPY_SOURCE_NOT_AVAILABLE: WireError(
        409, "CannotVerifyCopySource", "The copy source cannot be read at present."
    ),
    Reason.WRITE_ON_SECONDARY: WireError(
        403,
        "InsufficientAccountPermissions",
        "Write operations are not allowed.",
    ),
}

COPIES: Mapping[Reason, WireError] = {
    Reason.COPY_ID_MISMATCH: WireError(
        409,
        "CopyIdMismatch",
        "The specified copy ID did not match the copy ID for the pending copy operation.",
    ),
    Reason.NO_PENDING_COPY_OPERATION: WireError(
        409, "NoPendingCopyOperation", "There is currently no pending copy operation."
    ),
    Reason.SOURCE_CONDITION_NOT_MET: WireError(
        412,
        "SourceConditionNotMet",
        "The source condition specified using HTTP conditional header(s) is not met.",
    ),
}

LEASE_ACTIONS: Mapping[Reason, WireError] = {
    Reason.LEASE_ALREADY_PRESENT: WireError(409, "LeaseAlreadyPresent", "There is already a lease present."),
    Reason.LEASE_ID_MISMATCH_WITH_LEASE_OPERATION: WireError(
        409,
        "LeaseIdMismatchWithLeaseOperation",
        "The lease ID specified did not match the lease ID for the resource.",
    ),
    Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED: WireError(
        409,
        "LeaseIsBreakingAndCannotBeAcquired",
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
    ),
    Reason.LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED: WireError(
        409,
        "LeaseIsBreakingAndCannotBeChanged",
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
    ),
    Reason.LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED: WireError(
        409,
        "LeaseIsBrokenAndCannotBeRenewed",
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    ),
    Reason.LEASE_NOT_PRESENT_WITH_LEASE_OPERATION: WireError(
        409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource."
    ),
    Reason.INFINITE_LEASE_DURATION_REQUIRED: WireError(
        412,
        "InfiniteLeaseDurationRequired",
        "The lease ID matched, but the lease must be of infinite duration.",
    ),
}
"""Refusals of lease actions, the same for whatever is leased."""


def lease_uses(resource: str, word: str) -> Mapping[Reason, WireError]:
    """Refusals of using something leased; their codes name the resource."""
    return {
        Reason.LEASE_ID_MISMATCH: WireError(
            412,
            f"LeaseIdMismatchWith{resource}Operation",
            f"The lease ID specified did not match the lease ID for the {word}.",
        ),
        Reason.LEASE_NOT_PRESENT: WireError(
            412,
            f"LeaseNotPresentWith{resource}Operation",
            f"There is currently no lease on the {word}.",
        ),
        Reason.LEASE_ID_MISSING: WireError(
            412,
            "LeaseIdMissing",
            f"There is currently a lease on the {word} and no lease ID was specified in the request.",
        ),
        Reason.LEASE_LOST: WireError(
            412, "LeaseLost", f"A lease ID was specified, but the lease for the {word} has expired."
        ),
    }


CODES: Mapping[str, WireError] = {
    error.code: error
    for error in (
        REASONS[Reason.AUTHENTICATION_FAILED],
        WireError(
            400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format."
        ),
        WireError(400, "MissingRequiredHeader", "A required HTTP header was not specified."),
        WireError(400, "UnsupportedHeader", "One of the headers specified in the request is not supported."),
        WireError(
            400,
            "InvalidQueryParameterValue",
            "Value for one of the query parameters specified in the request URI is invalid.",
        ),
        WireError(
            400,
            "OutOfRangeQueryParameterValue",
            "One of the query parameters specified in the request URI is outside the permissible range.",
        ),
        WireError(
            400,
            "MissingRequiredQueryParameter",
            "A query parameter that's mandatory for this request is not specified.",
        ),
        WireError(
            400,
            "UnsupportedQueryParameter",
            "One of the query parameters specified in the request URI is not supported.",
        ),
        WireError(400, "InvalidUri", "The requested URI does not represent any resource on the server."),
        WireError(400, "RequestUrlFailedToParse", "The url in the request could not be parsed."),
        WireError(400, "InvalidInput", "One of the request inputs is not valid."),
        WireError(400, "OutOfRangeInput", "One of the request inputs is out of range."),
        WireError(400, "InvalidMd5", "The MD5 value specified in the request is invalid."),
        WireError(
            400,
            "Md5Mismatch",
            "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
        ),
        WireError(
            400,
            "Crc64Mismatch",
            "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
        ),
        WireError(
            400,
            "BothCrc64AndMd5HeaderPresent",
            "Both x-ms-content-crc64 header and Content-MD5 header are present.",
        ),
        WireError(400, "InvalidXmlDocument", "XML specified is not syntactically valid."),
        WireError(
            400,
            "InvalidXmlNodeValue",
            "The value for one of the XML nodes is not in the correct format.",
        ),
        WireError(
            400, "MissingRequiredXmlNode", "A required XML node was not specified in the request body."
        ),
        WireError(
            400, "UnsupportedXmlNode", "One of the XML nodes specified in the request body is not supported."
        ),
        WireError(
            400,
            "InvalidAuthenticationInfo",
            "Authentication information is not given in the correct format. Check the value of Authorization "
            "header.",
        ),
        WireError(
            403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request."
        ),
        WireError(405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb."),
        WireError(411, "MissingContentLengthHeader", "The Content-Length header was not specified."),
        WireError(
            413,
            "RequestBodyTooLarge",
            "The request body is too large and exceeds the maximum permissible limit.",
        ),
        WireError(
            408, "RequestTimeout", "The request body did not arrive completely or not in the time allowed."
        ),
        WireError(
            500,
            "InternalError",
            "Server encountered an internal error. Please try again after some time.",
        ),
        WireError(500, "OperationTimedOut", "Operation could not be completed within the specified time."),
        WireError(501, "NotImplemented", "This operation of the service is not implemented by this server."),
        WireError(503, "ServerBusy", "The server is busy."),
        WireError(
            507, "InsufficientStorage", "The server has no space left to store what the request brought."
        ),
    )
}
