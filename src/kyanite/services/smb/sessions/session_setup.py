"""SESSION_SETUP and LOGOFF (MS-SMB2 §3.3.5.5, §3.3.5.6).

A session is set up in two or three messages. Until the last one there is a ``PendingLogon`` only, under the id that the
session will have. While a message of a logon is being handled no other message finds that logon.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from kyanite.model import settings
from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.sessions.binding import find_elsewhere, refused_binding
from kyanite.services.smb.sessions.logon import LoggedOn, Logon
from kyanite.services.smb.sessions.security import SessionSecurity
from kyanite.services.smb.state import PendingLogon, Session
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import crypto, session
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.negotiate import SIGNING_REQUIRED, Dialect
from kyanite.wire.smb2.session import SessionSetupRequest
from kyanite.wire.smb2.status import Status

SESSIONS_MAX = 256
"""Of one connection, as is the next."""
LOGONS_MAX = 32

_NONCE_SALT_BYTES = 4


async def set_up_session(request: PartRequest) -> Answer:
    setup = session.decode_setup(request.message)
    state, delays = request.client.state, request.client.delays
    if setup.flags & session.BINDING:
        raise Failed(await refused_binding(request))
    if not _is_here(request):
        await find_elsewhere(request)
        raise Failed(Status.USER_SESSION_DELETED)
    pending = _pending_logon(request)
    existing = state.sessions.get(request.session_id)
    try:
        if pending.logon.is_challenged:
            await _delay(request)
        outcome = pending.logon.step(setup.token)
        if isinstance(outcome, LoggedOn):
            delays.succeeded(state.address)
            return await _succeed(request, setup, pending, outcome, existing)
    except (Failed, Malformed) as failure:
        if pending.logon.is_challenged and isinstance(failure, Malformed):
            delays.failed(state.address)
        if existing is not None:
            # A session whose client cannot prove again who it is, ends (§3.3.5.5.1).
            await request.client.end_session(existing)
        raise
    state.logons[request.session_id] = pending
    if _is_hashed(request):
        request.after_encoding = partial(_extend_hash, pending)
    return Answer(session.encode_setup(0, outcome.token), Status.MORE_PROCESSING_REQUIRED)


def _is_here(request: PartRequest) -> bool:
    session_id, state = request.header.session_id, request.client.state
    return not session_id or session_id in state.logons or session_id in state.sessions


def _pending_logon(request: PartRequest) -> PendingLogon:
    """The logon that the message belongs to, with the hash that covers the message."""
    state = request.client.state
    session_id = request.header.session_id
    pending = state.logons.pop(session_id, None)
    if pending is None:
        if len(state.logons) >= LOGONS_MAX or (not session_id and len(state.sessions) >= SESSIONS_MAX):
            raise Failed(Status.INSUFFICIENT_RESOURCES)
        request.session_id = session_id or _new_session_id(request)
        pending = PendingLogon(Logon(request.environment), state.integrity_hash)
    if _is_hashed(request):
        pending.integrity_hash = crypto.extend_hash(pending.integrity_hash, request.message)
    return pending


def _new_session_id(request: PartRequest) -> int:
    """Random, so that the workers need not agree on it. Some clients keep 32 bits of it only, as Samba's ids have."""
    state = request.client.state
    while True:
        session_id = int.from_bytes(request.environment.random_bytes(4), "little")
        if 0 < session_id < 0xFFFFFFFF and session_id not in state.sessions.keys() | state.logons.keys():
            return session_id


def _is_hashed(request: PartRequest) -> bool:
    return request.client.dialect is Dialect.SMB_3_1_1


def _extend_hash(pending: PendingLogon, response: Sequence[Data]) -> None:
    pending.integrity_hash = crypto.extend_hash(pending.integrity_hash, *response)


async def _delay(request: PartRequest) -> None:
    seconds = request.client.delays.delay_seconds(request.client.state.address)
    if seconds is None:
        raise Malformed("LOGON_FAILURE")
    if seconds:
        await asyncio.sleep(seconds)


async def _succeed(
    request: PartRequest,
    setup: SessionSetupRequest,
    pending: PendingLogon,
    logged_on: LoggedOn,
    existing: Session | None,
) -> Answer:
    if existing is not None:
        return _set_up_again(request, logged_on, existing)
    made = await _new_session(request, setup, pending, logged_on)
    assert made.security is not None
    registry = request.client.registry
    if setup.previous_session_id not in (0, made.id):
        await registry.end(setup.previous_session_id, made.account)
    if not await registry.add(request.client, made):
        raise Failed(Status.INSUFFICIENT_RESOURCES)
    present = request.environment.accounts.get(made.account.name)
    if present is None or present.keys != made.account.keys:
        # A key that was replaced, or an account that was removed meanwhile, opens no session.
        await registry.remove(made)
        raise Malformed("LOGON_FAILURE")
    request.client.state.sessions[made.id] = made
    request.found_session = made
    request.signed_by = made.security
    flags = session.SESSION_ENCRYPT_DATA if made.security.requires_encryption else 0
    return Answer(session.encode_setup(flags, logged_on.token))


def _set_up_again(request: PartRequest, logged_on: LoggedOn, existing: Session) -> Answer:
    """The session goes on with its keys. It belongs to one account, whose shares it has connected to."""
    if logged_on.account.name != existing.account.name:
        raise Malformed("LOGON_FAILURE")
    request.found_session = existing
    assert existing.security is not None
    flags = session.SESSION_ENCRYPT_DATA if existing.security.requires_encryption else 0
    return Answer(session.encode_setup(flags, logged_on.token))


async def _new_session(
    request: PartRequest, setup: SessionSetupRequest, pending: PendingLogon, logged_on: LoggedOn
) -> Session:
    negotiated = request.client.state.negotiated
    assert negotiated is not None
    account = logged_on.account
    properties = await settings.get(account.store.engine, account.name, "file")
    demanded = properties.protocols is not None and bool(properties.protocols.smb_encryption)
    demanded = demanded or account.settings.require_https  # In Azure that is "secure transfer", SMB included.
    requires_encryption = request.environment.requires_encryption or demanded
    if requires_encryption and not negotiated.cipher:
        raise Failed(Status.ACCESS_DENIED)
    security = SessionSecurity(
        crypto.session_keys(
            negotiated.dialect, logged_on.session_key, pending.integrity_hash, negotiated.cipher
        ),
        dialect=negotiated.dialect,
        algorithm=negotiated.signing_algorithm,
        cipher=negotiated.cipher,
        salt=request.environment.random_bytes(_NONCE_SALT_BYTES),
        requires_signing=bool(setup.security_mode & SIGNING_REQUIRED),
        requires_encryption=requires_encryption,
    )
    return Session(request.session_id, account, logged_on.user, logged_on.workstation, security)


async def log_off(request: PartRequest) -> Answer:
    session.decode_empty(request.message)
    await request.client.end_session(request.session)
    return Answer(session.EMPTY)
