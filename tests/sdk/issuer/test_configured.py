"""Clients, users, tenants and roles of the configuration file, with the official clients."""

import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tests.sdk.issuer.environment import environment_of, kyanite_token, run_program
from tests.server_process import ServerProcess

TENANT = "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"
OTHER_TENANT = "7f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"
ADMINISTRATOR = "a0000000-0000-4000-8000-000000000001"
CERTIFIED = "a0000000-0000-4000-8000-000000000002"
READER = "a0000000-0000-4000-8000-000000000003"
STAFF = "b0000000-0000-4000-8000-000000000001"
ALICE = "c0000000-0000-4000-8000-000000000001"
ROLES = (
    "Storage Blob Data Owner",
    "Storage Queue Data Contributor",
    "Storage Table Data Contributor",
    "Storage File Data Privileged Contributor",
    "Storage Account Contributor",
)
FORMS = ("sync", "async")
ALL_OK = {"token": "ok", "blob": "ok", "queue": "ok", "table": "ok", "file": "ok"}


def write_configuration(folder: Path) -> Path:
    roles = [(principal, role, "") for principal in (ADMINISTRATOR, CERTIFIED) for role in ROLES]
    roles += [
        (READER, "Storage Blob Data Reader", ""),
        (STAFF, "Storage Blob Data Contributor", "devstoreaccount1/shared"),
    ]
    assigned = "".join(
        f'[[identity.roles]]\nprincipal = "{principal}"\nrole = "{role}"\nscope = "{scope}"\n'
        for principal, role, scope in roles
    )
    path = folder / "kyanite.toml"
    path.write_text(
        f"""
        [identity]
        dev = "builtin"
        tenant = "{TENANT}"
        other_tenants = ["{OTHER_TENANT}"]
        identity_header = "of our own"
        [[identity.clients]]
        id = "{ADMINISTRATOR}"
        name = "administrator"
        secret = "the administrator's"
        [[identity.clients]]
        id = "{CERTIFIED}"
        certificate = "client.pem"
        [[identity.clients]]
        id = "{READER}"
        secret = "the reader's"
        managed_identity = true
        [[identity.users]]
        name = "alice"
        object_id = "{ALICE}"
        groups = ["{STAFF}"]
        {assigned}
        """
    )
    return path


def write_client_certificate(path: Path) -> None:
    """A key and its certificate in one file, as CertificateCredential reads them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(pem))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("configured")
    write_client_certificate(made / "client.pem")
    return made


@pytest.fixture(scope="module")
def configured(folder: Path) -> Iterator[ServerProcess]:
    options = (
        "--config",
        str(write_configuration(folder)),
        "--identity-port",
        "0",
        "--managed-identity-port",
        "0",
    )
    with ServerProcess(*options, "--workers", "2", location=folder / "store") as started:
        yield started
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]


@pytest.fixture(scope="module")
def environment(configured: ServerProcess, folder: Path) -> dict[str, str]:
    return {
        **environment_of(configured, folder / "federated-token"),
        "AZURE_TENANT_ID": TENANT,
        "OTHER_TENANT": OTHER_TENANT,
        "AZURE_CLIENT_ID": ADMINISTRATOR,
        "AZURE_CLIENT_SECRET": "the administrator's",
        "IDENTITY_HEADER": "of our own",
    }


@pytest.mark.parametrize("form", FORMS)
def test_credentials_of_configured_clients(environment: dict[str, str], folder: Path, form: str) -> None:
    """The token of another tenant is refused with a challenge, and the client asks the tenant that it names."""
    certified = {"AZURE_CLIENT_CERTIFICATE_PATH": str(folder / "client.pem"), "AZURE_CLIENT_ID": CERTIFIED}
    found = run_program(environment, form, "client secret", "other tenant", "wrong secret")
    found |= run_program({**environment, **certified}, form, "certificate")
    assert found["client secret"] == ALL_OK
    assert found["other tenant"] == ALL_OK
    assert found["certificate"] == ALL_OK
    assert "ClientAuthenticationError" in found["wrong secret"]["token"]


@pytest.mark.parametrize("form", FORMS)
def test_the_development_client_is_gone(environment: dict[str, str], form: str) -> None:
    known = {
        "AZURE_CLIENT_ID": "22222222-2222-4222-8222-222222222222",
        "AZURE_CLIENT_SECRET": "kyanite-development-secret",
    }
    (found,) = run_program({**environment, **known}, form, "client secret").values()
    assert "AADSTS700016" in found["token"]
    assert "ok" not in found.values()


@pytest.mark.parametrize("form", FORMS)
def test_the_managed_identity_is_the_one_that_is_marked(environment: dict[str, str], form: str) -> None:
    (found,) = run_program(environment, form, "managed identity of App Service").values()
    assert found["token"] == "ok"
    # It may read, and the program writes.
    assert "AuthorizationPermissionMismatch" in found["blob"]


class StaticToken:
    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


def service_of(server: ServerProcess, principal: str) -> BlobServiceClient:
    token = StaticToken(kyanite_token(server, "--principal", principal))
    authority = server.endpoints["identity_ca"]
    return BlobServiceClient(server.endpoints["blob"], token, connection_verify=authority, retry_total=0)


def test_what_principals_may_do_by_their_roles(configured: ServerProcess) -> None:
    with (
        service_of(configured, "administrator") as administrator,
        service_of(configured, READER) as reader,
        service_of(configured, "alice") as alice,
    ):
        for name in ("shared", "private"):
            administrator.create_container(name).upload_blob("a", b"content")
        assert reader.get_blob_client("private", "a").download_blob().readall() == b"content"
        with pytest.raises(HttpResponseError, match="AuthorizationPermissionMismatch"):
            reader.get_blob_client("private", "a").delete_blob()
        alice.get_blob_client("shared", "hers").upload_blob(b"hers")
        assert alice.get_blob_client("shared", "a").download_blob().readall() == b"content"
        with pytest.raises(HttpResponseError, match="AuthorizationPermissionMismatch"):
            alice.get_blob_client("private", "a").download_blob()
        with pytest.raises(HttpResponseError, match="AuthorizationPermissionMismatch"):
            alice.create_container("third")
