"""TLS from a certificate file and a key file."""

import ssl

from kyanite.server.config import Tls
from kyanite.server.failures import BadUsage


def tls_context(tls: Tls) -> ssl.SSLContext:
    """A server's context, or one sentence on which file is at fault."""
    for path in (tls.cert, tls.key):
        try:
            path.open("rb").close()
        except OSError as error:
            raise BadUsage(f"Cannot read {path}: {error.strerror}.") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadUsage(
                f"The key in {tls.key} does not belong to the certificate in {tls.cert}."
            ) from None
        raise BadUsage(
            f"There is no usable certificate in {tls.cert} with a usable key in {tls.key}."
        ) from None
    except _Encrypted:
        raise BadUsage(f"The key in {tls.key} is protected by a password; give one without.") from None
    return context


class _Encrypted(Exception):
    """The key file asked for a password."""


def _no_password() -> str:
    # Without this callback OpenSSL would ask the terminal and hang a server that has one.
    raise _Encrypted
