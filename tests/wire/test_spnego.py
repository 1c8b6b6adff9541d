"""SPNEGO tokens, against captured ones and against pyspnego."""

import pytest
from spnego._spnego import NegState as OracleState
from spnego._spnego import NegTokenInit as OracleInit
from spnego._spnego import NegTokenResp as OracleResp
from spnego._spnego import unpack_token

from kyanite.wire import spnego
from kyanite.wire.malformed import Malformed
from kyanite.wire.spnego import NTLMSSP, NegState, NegTokenInit, NegTokenResp, RawToken
from tests.wire.smb2 import recorded_logon

KERBEROS = bytes.fromhex("2a864886f712010202")
NTLMSSP_NAME, KERBEROS_NAME = "1.3.6.1.4.1.311.2.2.10", "1.2.840.113554.1.2.2"


def test_the_hint_of_the_server() -> None:
    at = recorded_logon.NEGOTIATE_RESPONSE.index(bytes.fromhex("604806062b0601050502"))
    assert spnego.encode_init() == recorded_logon.NEGOTIATE_RESPONSE[at : at + 74]


def test_the_tokens_of_smbclient() -> None:
    first = spnego.decode(recorded_logon.FIRST_SETUP_REQUEST[88:])
    assert isinstance(first, NegTokenInit)
    assert first.mechanisms == (NTLMSSP,)
    assert first.prefers_ntlmssp
    assert first.mechanism_list == bytes.fromhex("300c060a2b06010401823702020a")
    assert first.token is not None
    assert first.token.startswith(spnego.NTLMSSP_SIGNATURE)
    last = spnego.decode(recorded_logon.LAST_SETUP_REQUEST[88:])
    assert isinstance(last, NegTokenResp)
    assert (last.state, last.mechanism) == (None, None)
    assert last.token is not None
    assert last.token.startswith(spnego.NTLMSSP_SIGNATURE)
    assert last.mic == recorded_logon.CLIENT_LIST_MIC


def test_the_answers_of_smbd() -> None:
    response = recorded_logon.FIRST_SETUP_RESPONSE
    challenge = response[response.index(spnego.NTLMSSP_SIGNATURE) :]
    written = spnego.encode_resp(NegState.ACCEPT_INCOMPLETE, names_ntlmssp=True, token=challenge)
    assert written == recorded_logon.FIRST_SETUP_RESPONSE[72:]
    written = spnego.encode_resp(NegState.ACCEPT_COMPLETED, mic=recorded_logon.SERVER_LIST_MIC)
    assert written == recorded_logon.LAST_SETUP_RESPONSE[72:]
    assert spnego.encode_resp(NegState.ACCEPT_COMPLETED) == bytes.fromhex("a1073005a0030a0100")


def test_a_client_that_prefers_kerberos() -> None:
    written = OracleInit([KERBEROS_NAME, NTLMSSP_NAME], mech_token=b"x" * 300).pack()
    found = spnego.decode(memoryview(written))
    assert isinstance(found, NegTokenInit)
    assert found.mechanisms == (KERBEROS, NTLMSSP)
    assert not found.prefers_ntlmssp
    assert found.token == b"x" * 300
    assert found.mic is None


@pytest.mark.parametrize("length", [0, 1, 100, 127, 128, 255, 256, 70_000])
def test_responses_both_ways(length: int) -> None:
    token, mic = b"t" * length, b"m" * 16
    written = spnego.encode_resp(NegState.REJECT, names_ntlmssp=True, token=token, mic=mic)
    read = unpack_token(written)
    assert isinstance(read, OracleResp)
    assert (read.neg_state, read.supported_mech) == (OracleState.reject, NTLMSSP_NAME)
    assert (read.response_token, read.mech_list_mic) == (token, mic)
    oracle = OracleResp(OracleState.request_mic, NTLMSSP_NAME, token, mic).pack()
    assert spnego.decode(oracle) == NegTokenResp(NegState.REQUEST_MIC, NTLMSSP, token, mic)


def test_ntlmssp_without_spnego() -> None:
    assert spnego.decode(b"NTLMSSP\0rest") == RawToken(b"NTLMSSP\0rest")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "60",
        "6003",
        "6000",
        "6080" + "00" * 20,
        "608400000001" + "00" * 4,
        "a100",
        "a1023000" + "00",
        "a1073005a0030a0200",
        "a1083006a0040a020000",
        "a1073005a0030b0100",
        "a10c300aa0030a0100a0030a0100",
        "a1073005a5030a0100",
        "a10730059f030a0100",
        "6008 0606 2b0601050502",
        "600a 0606 2b0601050503 a000",
        "600e 0606 2b0601050502 a004 3002 a000",
        "6010 0606 2b0601050502 a006 3004 a002 3000",
        "6012 0606 2b0601050502 a008 3006 a004 3002 0400",
        "30030a0100",
    ],
)
def test_malformed_tokens(token: str) -> None:
    with pytest.raises(Malformed, match="LOGON_FAILURE"):
        spnego.decode(bytes.fromhex(token))
