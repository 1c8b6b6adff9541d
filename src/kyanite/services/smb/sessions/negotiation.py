"""NEGOTIATE: the dialect, the cipher and the signing algorithm of a connection (MS-SMB2 §3.3.5.3, §3.3.5.4)."""

from typing import NamedTuple

from kyanite.services.smb.environment import SmbEnvironment
from kyanite.wire import spnego
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import crypto, filetime, negotiate
from kyanite.wire.smb2.crypto import CipherId, SigningAlgorithm
from kyanite.wire.smb2.fsctl import ValidateNegotiate, encode_validate_negotiate
from kyanite.wire.smb2.negotiate import Dialect, NegotiateRequest, NegotiateResponse
from kyanite.wire.smb2.negotiate_contexts import RequestContexts, ResponseContexts

MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
"""Of a READ, a WRITE and any other request or response: as Windows has it."""

DIALECTS = (Dialect.SMB_3_1_1, Dialect.SMB_3_0_2, Dialect.SMB_3_0, Dialect.SMB_2_1)
_CIPHERS = (CipherId.AES_128_GCM, CipherId.AES_256_GCM, CipherId.AES_128_CCM, CipherId.AES_256_CCM)
"""The fastest first."""
_SIGNING = (SigningAlgorithm.AES_GMAC, SigningAlgorithm.AES_CMAC, SigningAlgorithm.HMAC_SHA256)
_CAPABILITIES = negotiate.CAPABILITY_LEASING | negotiate.CAPABILITY_LARGE_MTU
_SALT_BYTES = 32
_SECURITY_MODE = negotiate.SIGNING_ENABLED
_SECURITY_BUFFER = spnego.encode_init()


class Negotiated(NamedTuple):
    """What client and server have agreed on, and what the client had offered."""

    dialect: Dialect
    offer: NegotiateRequest
    capabilities: int
    """The server's."""
    cipher: int
    """0 if messages cannot be encrypted."""
    signing_algorithm: int


class Negotiation(NamedTuple):
    negotiated: Negotiated
    response: NegotiateResponse


def choose(offer: NegotiateRequest, environment: SmbEnvironment) -> Negotiation:
    """Choose the greatest common dialect and what goes with it."""
    dialect = _choose_dialect(offer.dialects)
    if dialect is None:
        raise Malformed("NOT_SUPPORTED")
    if dialect is Dialect.SMB_3_1_1:
        return _choose_3_1_1(offer, environment)
    capabilities, cipher = _CAPABILITIES, 0
    if dialect >= Dialect.SMB_3_0 and offer.capabilities & negotiate.CAPABILITY_ENCRYPTION:
        capabilities |= negotiate.CAPABILITY_ENCRYPTION
        cipher = CipherId.AES_128_CCM
    signing = crypto.default_signing(dialect)
    negotiated = Negotiated(dialect, offer, capabilities, cipher, signing)
    return Negotiation(negotiated, _response(dialect, capabilities, environment))


def _choose_3_1_1(offer: NegotiateRequest, environment: SmbEnvironment) -> Negotiation:
    negotiate.check_hash(offer.contexts)
    contexts = offer.contexts or RequestContexts()
    cipher = next((each for each in _CIPHERS if each in (contexts.ciphers or ())), 0)
    signing = next((each for each in _SIGNING if each in (contexts.signing_algorithms or ())), None)
    answered = ResponseContexts(
        salt=environment.random_bytes(_SALT_BYTES),
        cipher=None if contexts.ciphers is None else cipher,
        signing_algorithm=signing,
    )
    negotiated = Negotiated(
        Dialect.SMB_3_1_1,
        offer,
        _CAPABILITIES,
        cipher,
        crypto.default_signing(Dialect.SMB_3_1_1) if signing is None else signing,
    )
    return Negotiation(negotiated, _response(Dialect.SMB_3_1_1, _CAPABILITIES, environment, answered))


def choose_any(environment: SmbEnvironment) -> NegotiateResponse:
    """The response to an SMB1 negotiation: an SMB2 NEGOTIATE must follow."""
    return _response(Dialect.ANY_SMB2, _CAPABILITIES, environment)


def _choose_dialect(offered: tuple[int, ...]) -> Dialect | None:
    return next((each for each in DIALECTS if each in offered), None)


def _response(
    dialect: Dialect,
    capabilities: int,
    environment: SmbEnvironment,
    contexts: ResponseContexts | None = None,
) -> NegotiateResponse:
    return NegotiateResponse(
        _SECURITY_MODE,
        dialect,
        environment.server_guid,
        capabilities,
        MAX_PAYLOAD_BYTES,
        MAX_PAYLOAD_BYTES,
        MAX_PAYLOAD_BYTES,
        filetime.encode(environment.clock()),
        _SECURITY_BUFFER,
        contexts,
    )


def is_unchanged(negotiated: Negotiated, claimed: ValidateNegotiate) -> bool:
    """Whether NEGOTIATE carried what the client says it has sent, so that nobody has lowered the dialect."""
    offer = negotiated.offer
    return (
        claimed.capabilities == offer.capabilities
        and claimed.client_guid == offer.client_guid
        and claimed.security_mode == offer.security_mode
        and _choose_dialect(claimed.dialects) is negotiated.dialect
    )


def encode_validation(negotiated: Negotiated, environment: SmbEnvironment) -> bytes:
    """What the server had answered, for FSCTL_VALIDATE_NEGOTIATE_INFO."""
    return encode_validate_negotiate(
        capabilities=negotiated.capabilities,
        server_guid=environment.server_guid,
        security_mode=_SECURITY_MODE,
        dialect=negotiated.dialect,
    )
