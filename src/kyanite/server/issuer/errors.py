"""What the token endpoint refuses: a row for each, with the numbers that Entra gives them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OAuthError:
    status: int
    error: str
    """The code of RFC 6749, section 5.2."""
    number: int
    """Of ``AADSTS…``, which clients and people look up."""
    sentence: str


class TokenRefused(Exception):
    def __init__(self, error: OAuthError, detail: str = "") -> None:
        super().__init__(error.sentence)
        self.error = error
        self.detail = detail
        """What of the request is meant; never a secret."""


MALFORMED = OAuthError(400, "invalid_request", 9000411, "The request is malformed.")
TOO_LONG = OAuthError(413, "invalid_request", 9000411, "The request is too long.")
MISSING_PARAMETER = OAuthError(400, "invalid_request", 900144, "The request lacks a parameter.")
UNKNOWN_TENANT = OAuthError(400, "invalid_request", 90002, "This issuer has no such tenant.")
UNSUPPORTED_GRANT = OAuthError(
    400, "unsupported_grant_type", 70003, "The development issuer supports client_credentials only."
)
UNKNOWN_CLIENT = OAuthError(400, "unauthorized_client", 700016, "This issuer has no such client.")
NO_CREDENTIAL = OAuthError(
    401, "invalid_client", 7000216, "The request has neither a client_secret nor a client_assertion."
)
WRONG_SECRET = OAuthError(401, "invalid_client", 7000215, "The client secret is wrong.")
WRONG_ASSERTION = OAuthError(401, "invalid_client", 700027, "The client assertion is not accepted.")
BAD_SCOPE = OAuthError(400, "invalid_scope", 70011, "The scope is to be one resource, followed by /.default.")
BAD_RESOURCE = OAuthError(400, "invalid_resource", 500011, "The resource is no URI and no application id.")
NO_LOG_IN = OAuthError(
    400, "unsupported_response_type", 700051, "The development issuer has no log-in for users."
)
NOT_FOUND = OAuthError(404, "invalid_request", 90023, "The development issuer has no such endpoint.")
WRONG_METHOD = OAuthError(405, "invalid_request", 900561, "The endpoint does not take this method.")
