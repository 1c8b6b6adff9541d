"""The keys and certificates of an issuer: made once, closed to others, renewed, and refused when they are damaged."""

import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from cryptography import x509

from kyanite.server.failures import Failure
from kyanite.server.issuer import certificates, signing_key
from kyanite.server.tls import tls_context

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def test_the_signing_key_is_made_once(tmp_path: Path) -> None:
    assert signing_key.load(tmp_path) is None
    made = signing_key.load_or_make(tmp_path)
    again = signing_key.load_or_make(tmp_path)
    assert made.id == again.id
    assert made.public_jwk == again.public_jwk
    assert made.private.key_size == 2048


def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    (tmp_path / "signing-key.pem.new").touch(mode=0o644)  # What a crash has left.
    signing_key.load_or_make(tmp_path)
    certificates.load_or_make(tmp_path, NOW)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"signing-key.pem", "ca.pem", "ca-key.pem", "server.pem", "server-key.pem"}
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"]
)
def test_a_damaged_signing_key(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "signing-key.pem").write_bytes(text)
    with pytest.raises(Failure, match="no usable RSA key"):
        signing_key.load_or_make(tmp_path)


def test_a_key_of_another_kind_does_not_sign(tmp_path: Path) -> None:
    certificates.load_or_make(tmp_path, NOW)
    (tmp_path / "server-key.pem").rename(tmp_path / "signing-key.pem")
    with pytest.raises(Failure, match="no usable RSA key"):
        signing_key.load_or_make(tmp_path)


def names_of(path: Path) -> tuple[int, int]:
    """The serial numbers of the authority and of what it has signed."""
    return tuple(  # type: ignore[return-value]
        x509.load_pem_x509_certificate((path / name).read_bytes()).serial_number
        for name in ("ca.pem", "server.pem")
    )


def test_the_certificate_is_made_once_and_renewed_in_time(tmp_path: Path) -> None:
    certificates.load_or_make(tmp_path, NOW)
    made = names_of(tmp_path)
    certificates.load_or_make(tmp_path, NOW + 700 * DAY)
    assert names_of(tmp_path) == made
    certificates.load_or_make(tmp_path, NOW + 750 * DAY)
    renewed = names_of(tmp_path)
    assert renewed[0] == made[0]
    assert renewed[1] != made[1]
    certificates.load_or_make(tmp_path, NOW + 3600 * DAY)
    assert names_of(tmp_path)[0] != made[0]
    assert names_of(tmp_path)[1] != renewed[1]


def test_a_crash_between_the_files_leaves_nothing_that_does_not_fit(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        certificates.load_or_make(folder, NOW)
    for name in ("ca-key.pem", "server-key.pem", "ca.pem"):
        (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
        made = certificates.load_or_make(tmp_path / "a", NOW)
        assert greeted(made, "localhost")


def test_damaged_certificates(tmp_path: Path) -> None:
    certificates.load_or_make(tmp_path, NOW)
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(Failure, match="are damaged"):
        certificates.load_or_make(tmp_path, NOW)


def greeted(made: certificates.MadeCertificate, name: str) -> bool:
    """Whether a client that trusts the authority connects to a server of this name."""
    server, client = tls_context(made.tls), ssl.create_default_context(cafile=str(made.authority))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    here, there = socket.socketpair()
    with here, there:

        def serve() -> None:
            try:
                server.wrap_socket(there, server_side=True).close()
            except OSError:
                there.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            client.wrap_socket(here, server_hostname=name).close()
        except ssl.SSLError:
            here.close()
            return False
        finally:
            thread.join()
    return True


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("devstoreaccount1.blob.localhost", True),
        ("devstoreaccount1.queue.core.localhost", True),
        ("127.0.0.2", False),
        ("example.org", False),
    ],
)
def test_for_which_names_clients_trust_the_certificate(tmp_path: Path, name: str, is_good: bool) -> None:
    assert greeted(certificates.load_or_make(tmp_path, NOW), name) is is_good


def test_the_authority_is_good_for_this_machine_only(tmp_path: Path) -> None:
    certificates.load_or_make(tmp_path, NOW)
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert {str(name.value) for name in limits.value.permitted_subtrees or ()} == {
        "localhost",
        "127.0.0.0/8",
        "::1/128",
    }
