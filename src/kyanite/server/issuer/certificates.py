"""TLS for a development server without a certificate of its own: a certificate authority and what it signs.

Clients refuse to send tokens over plain HTTP, and to ask for them as well. So a server that takes tokens in development
and was given no certificate makes one, for the names of this machine only. Its authority is limited to those names too:
a client that trusts it trusts it for nothing else.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kyanite.server.config import Tls
from kyanite.server.failures import Failure
from kyanite.server.issuer import private_files

_CA, _CA_KEY = "ca.pem", "ca-key.pem"
_SERVER, _SERVER_KEY = "server.pem", "server-key.pem"
_CA_DAYS = 3650
_SERVER_DAYS = 800
"""Some platforms refuse certificates that are valid for longer than 825 days."""
_RENEWED_DAYS = 60
"""A certificate that ends sooner is made anew at the start of the server."""

_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
_SERVICES = ("blob", "queue", "table", "file", "dfs")
_NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("localhost"),
    *(x509.DNSName(f"*.{name}.localhost") for name in _SERVICES),
    *(x509.DNSName(f"*.{name}.core.localhost") for name in _SERVICES),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)


@dataclass(frozen=True, slots=True)
class MadeCertificate:
    tls: Tls
    authority: Path
    """What clients have to trust."""


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def load_or_make(folder: Path, now: datetime.datetime) -> MadeCertificate:
    """The certificate in the folder of a store's issuer, made or renewed if need be. The caller holds its lock."""
    made = MadeCertificate(Tls(folder / _SERVER, folder / _SERVER_KEY), folder / _CA)
    authority = _load(folder / _CA, folder / _CA_KEY, now)
    if authority is None:
        authority = _new_authority(now)
        _save(authority, folder / _CA, folder / _CA_KEY)
        server = None
    else:
        server = _load(folder / _SERVER, folder / _SERVER_KEY, now)
    if server is None or not _is_signed_by(server.certificate, authority.certificate):
        _save(_new_server(authority, now), folder / _SERVER, folder / _SERVER_KEY)
    return made


def _load(certificate: Path, key: Path, now: datetime.datetime) -> _Pair | None:
    """None if there is none yet, or if it ends soon."""
    texts = private_files.read(certificate), private_files.read(key)
    if texts[0] is None or texts[1] is None:
        return None
    try:
        pair = x509.load_pem_x509_certificate(texts[0]), serialization.load_pem_private_key(texts[1], None)
    except (ValueError, TypeError):
        raise Failure(f"{certificate} and {key} are damaged. Without them, new ones are made.") from None
    if not isinstance(pair[1], ec.EllipticCurvePrivateKey) or pair[0].public_key() != pair[1].public_key():
        return None
    if pair[0].not_valid_after_utc < now + datetime.timedelta(days=_RENEWED_DAYS):
        return None
    return _Pair(pair[0], pair[1])


def _save(pair: _Pair, certificate: Path, key: Path) -> None:
    """The key first: with a certificate of another key, a start after a crash makes both again."""
    private_files.write(
        key,
        pair.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    private_files.write(certificate, pair.certificate.public_bytes(serialization.Encoding.PEM))


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # Several kinds, by what differs.
        return False
    return True


def _new_authority(now: datetime.datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # Each has a name of its own, so that a client that trusts two of them takes the right one.
    number = x509.random_serial_number()
    name = _name(f"Kyanite development CA {number & 0xFFFFFFFF:08x}")
    permitted: Sequence[x509.GeneralName] = (
        x509.DNSName("localhost"),
        *(x509.IPAddress(network) for network in _LOOPBACK),
    )
    builder = (
        _builder(name, name, key, number, now, _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
    )
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _new_server(authority: _Pair, now: datetime.datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate.subject
    known_as = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    builder = (
        _builder(_name("localhost"), issuer, key, x509.random_serial_number(), now, _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known_as.value), critical=False
        )
    )
    return _Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    number: int,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(number)
        # A client whose clock is a little slow trusts it too.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
