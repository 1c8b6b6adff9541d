"""A logon by NTLMv2, in SPNEGO or without it (MS-NLMP §3.2.5, RFC 4178).

The user is the name of an account, in any domain, and the password is the base64 text of one of its keys. Whatever is
wrong is one ``Malformed`` with LOGON_FAILURE, so that a client does not learn what; except for a response to the
challenge that is none, which is INVALID_PARAMETER as in Windows.
"""

import base64
import hmac
from functools import lru_cache
from typing import NamedTuple

from kyanite.model.accounts import Account
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.wire import ntlm, ntlm_keys, spnego
from kyanite.wire.malformed import Malformed
from kyanite.wire.ntlm_keys import LogonMessages
from kyanite.wire.smb2 import filetime
from kyanite.wire.spnego import NegState, NegTokenInit, NegTokenResp

_COMPUTER = "KYANITE"
_DNS_COMPUTER = "kyanite"
_CHALLENGE_BYTES = 8
_NO_ACCOUNT = bytes(16)
"""A hash that no password is known to have, so that an unknown user takes as long as a known one."""


class Continued(NamedTuple):
    """The client has to send another token."""

    token: bytes


class LoggedOn(NamedTuple):
    token: bytes
    account: Account
    user: str
    workstation: str
    session_key: bytes


@lru_cache(maxsize=1024)
def password_hash(key: bytes) -> bytes:
    """Of a key of an account, whose password is its base64 text."""
    return ntlm_keys.nt_hash(base64.b64encode(key).decode("ascii"))


class Logon:
    """One logon, from its first token to its last."""

    def __init__(self, environment: SmbEnvironment) -> None:
        self._environment = environment
        self._is_raw = False
        self._mechanism_list = b""
        self._needs_list_mic = False
        self._negotiate: bytes | None = None
        self._challenge = b""
        self._server_challenge = b""

    @property
    def is_challenged(self) -> bool:
        """Whether the next token is to prove that the client knows the password."""
        return self._negotiate is not None

    def step(self, data: memoryview) -> Continued | LoggedOn:
        token = spnego.decode(data)
        if isinstance(token, NegTokenInit):
            return self._begin(token)
        if isinstance(token, NegTokenResp):
            if not self._mechanism_list or token.token is None:
                raise _failure()
            return self._ntlm(token.token, token.mic)
        self._is_raw = True
        return self._ntlm(token.token, None)

    def _begin(self, init: NegTokenInit) -> Continued | LoggedOn:
        if self._mechanism_list or self.is_challenged or spnego.NTLMSSP not in init.mechanisms:
            raise _failure()
        self._mechanism_list = init.mechanism_list
        self._needs_list_mic = not init.prefers_ntlmssp
        if init.prefers_ntlmssp and init.token is not None:
            return self._ntlm(init.token, None)
        # The token, if there is one, is of a mechanism that is not spoken here.
        return Continued(spnego.encode_resp(NegState.ACCEPT_INCOMPLETE, names_ntlmssp=True))

    def _ntlm(self, token: bytes, mic: bytes | None) -> Continued | LoggedOn:
        if self._is_raw and self._mechanism_list:
            raise _failure()
        return self._check(token, mic) if self.is_challenged else self._challenged(token)

    def _challenged(self, token: bytes) -> Continued:
        flags = ntlm.challenge_flags(ntlm.decode_negotiate(token).flags)
        info = ntlm.encode_target_info(
            computer=_COMPUTER,
            domain=_COMPUTER,
            dns_computer=_DNS_COMPUTER,
            dns_domain="",
            now=filetime.encode(self._environment.clock()),
        )
        self._negotiate = token
        self._server_challenge = self._environment.random_bytes(_CHALLENGE_BYTES)
        self._challenge = ntlm.encode_challenge(
            flags=flags, server_challenge=self._server_challenge, target_name=_COMPUTER, target_info=info
        )
        if self._is_raw:
            return Continued(self._challenge)
        return Continued(
            spnego.encode_resp(NegState.ACCEPT_INCOMPLETE, names_ntlmssp=True, token=self._challenge)
        )

    def _check(self, token: bytes, mic: bytes | None) -> LoggedOn:
        assert self._negotiate is not None
        authenticate = ntlm.decode_authenticate(token)
        if not ntlm_keys.is_well_formed(authenticate):
            raise Malformed("INVALID_PARAMETER")
        messages = LogonMessages(self._negotiate, self._challenge, token, self._server_challenge)
        account = self._environment.accounts.get(authenticate.user.lower())
        if account is not None and not account.settings.shared_key_access:
            account = None  # Its keys open nothing.
        hashes = [_NO_ACCOUNT] if account is None else [password_hash(key) for key in account.keys]
        found = [ntlm_keys.session_key(messages, authenticate, each) for each in hashes]
        key = next((each for each in found if each is not None), None)
        if account is None or key is None:
            raise _failure()
        user = f"{authenticate.domain}\\{authenticate.user}" if authenticate.domain else authenticate.user
        answer = self._answer(key, authenticate.flags, mic)
        return LoggedOn(answer, account, user, authenticate.workstation, key)

    def _answer(self, key: bytes, flags: int, mic: bytes | None) -> bytes:
        """The last token. The list of mechanisms is signed by the server if the client has signed it."""
        if self._is_raw:
            return b""
        if mic is None:
            if self._needs_list_mic:
                raise _failure()
            return spnego.encode_resp(NegState.ACCEPT_COMPLETED)
        if not hmac.compare_digest(ntlm_keys.client_list_mic(key, flags, self._mechanism_list), mic):
            raise _failure()
        own = ntlm_keys.server_list_mic(key, flags, self._mechanism_list)
        return spnego.encode_resp(NegState.ACCEPT_COMPLETED, mic=own)


def _failure() -> Malformed:
    return Malformed("LOGON_FAILURE")
