"""The error that decoders raise for malformed input.

It has Azure's error code, because the code of each kind of malformed input is part of the wire format:
``InvalidHeaderValue`` for one header, ``InvalidQueryParameterValue`` for a parameter, and so on. The table of status
and message by code is each service's ``errors.py``.
"""


class Malformed(Exception):
    """A request that cannot be decoded. ``detail`` becomes elements of the error body, in order."""

    def __init__(self, code: str, **detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.why = ""
        """A sentence that is more exact than what clients are told, for those who ask later."""


def bad_header(name: str, value: str) -> Malformed:
    return Malformed("InvalidHeaderValue", HeaderName=name, HeaderValue=value)


def missing_header(name: str) -> Malformed:
    return Malformed("MissingRequiredHeader", HeaderName=name)


def bad_parameter(name: str, value: str, reason: str = "") -> Malformed:
    detail = {"QueryParameterName": name, "QueryParameterValue": value}
    if reason:
        detail["Reason"] = reason
    return Malformed("InvalidQueryParameterValue", **detail)


def missing_parameter(name: str) -> Malformed:
    return Malformed("MissingRequiredQueryParameter", QueryParameterName=name)


def parameter_out_of_range(name: str, value: str, minimum: int, maximum: int) -> Malformed:
    return Malformed(
        "OutOfRangeQueryParameterValue",
        QueryParameterName=name,
        QueryParameterValue=value,
        MinimumAllowed=str(minimum),
        MaximumAllowed=str(maximum),
    )
