"""The keys of the built-in issuer in [identity]: what they mean, and every mistake as one sentence."""

import json
import re
import tomllib
import uuid
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kyanite.server.failures import BadUsage
from kyanite.server.identity.config import Development, parse_identity
from kyanite.server.issuer.clients import (
    DEVELOPMENT_IDENTITY_HEADER,
    DEVELOPMENT_TENANT,
    AssertionSource,
    Client,
    Identity,
)
from kyanite.server.issuer.config import IssuerConfig
from tests.server.http.certificates import write_certificate
from tests.server.issuer.issuers import key

GUID = "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"
OTHER = "7f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"


def parsed(text: str) -> IssuerConfig:
    return parse_identity(tomllib.loads(text), "builtin").builtin


def test_without_keys_it_is_the_development_issuer() -> None:
    assert parsed("") == IssuerConfig(
        tenant=DEVELOPMENT_TENANT, identity_header=DEVELOPMENT_IDENTITY_HEADER, token_seconds=3599
    )


def test_all_keys(tmp_path: Path) -> None:
    certificate, _ = write_certificate(tmp_path)
    (tmp_path / "secret").write_text(" from a file \n")
    (tmp_path / "jwks").write_text(json.dumps({"keys": [key().public_jwk]}))
    found = parsed(
        f"""
        tenant = "{GUID.upper()}"
        other_tenants = ["{OTHER.upper()}"]
        token_seconds = 600
        identity_header = "mine"
        [[clients]]
        id = "{OTHER.upper()}"
        name = "backup job"
        secrets = ["one", "two"]
        secret_file = "{tmp_path}/secret"
        object_id = "{GUID}"
        groups = ["staff"]
        app_roles = ["writer"]
        certificate = "{certificate}"
        managed_identity = true
        resource_id = "/subscriptions/1"
        [[clients.federated]]
        issuer = "https://cluster"
        subject = "sub"
        jwks_file = "{tmp_path}/jwks"
        [[users]]
        name = "alice"
        object_id = "{OTHER}"
        groups = ["staff"]
        """
    )
    (client,) = found.clients
    assert (found.tenant, found.other_tenants, found.token_seconds) == (GUID, (OTHER,), 600)
    assert found.identity_header == "mine"
    assert client.identity == Identity(GUID, OTHER, ("staff",), ("writer",), "backup job")
    assert client.secrets == ("one", "two", "from a file")
    assert [type(each) for each in client.certificates] == [type(client.certificates[0])]
    assert isinstance(client.certificates[0], ec.EllipticCurvePublicKey)
    assert client.federated == (
        AssertionSource(
            "https://cluster",
            "sub",
            ("api://AzureADTokenExchange",),
            ((key().id, key().private.public_key()),),
        ),
    )
    assert (client.is_managed_identity, client.resource_id) == (True, "/subscriptions/1")
    assert found.users == (Identity(OTHER, "", ("staff",), (), "alice"),)


def test_the_example_of_the_guide(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "identity.md").read_text()
    (text,) = re.findall(r"```toml[^\n]*\n(\[identity\]\ndev = .*?)```", page, re.DOTALL)
    certificate, _ = write_certificate(tmp_path)
    certificate.rename(tmp_path / "client.pem")
    (tmp_path / "cluster.json").write_text(json.dumps({"keys": [key().public_jwk]}))
    found = parse_identity(tomllib.loads(text)["identity"], folder=tmp_path)
    assert found.development is Development.BUILTIN
    assert [client.id for client in found.builtin.clients] == [given.principal for given in found.assignments]
    assert [user.name for user in found.builtin.users] == ["alice"]


def test_files_are_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file")
    table = {"clients": [{"id": "a", "secret_file": "secret"}]}
    assert parse_identity(table, "builtin", tmp_path).builtin.clients[0].secrets == ("from a file",)


def test_an_object_id_follows_from_tenant_and_client() -> None:
    text = f'tenant = "{GUID}"\n[[clients]]\nid = "App"'
    (client,) = parsed(text).clients
    assert client == Client(Identity(str(uuid.uuid5(uuid.UUID(GUID), "app")), "app"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('tenant = "acme"', "identity.tenant must be a GUID."),
        ('other_tenants = ["acme"]', "identity.other_tenants must be GUIDs."),
        ("token_seconds = 59", "identity.token_seconds must be from 60 to 86400."),
        ("token_seconds = true", "identity.token_seconds must be a whole number."),
        ("identity_header = 1", "identity.identity_header must be a text."),
        (
            'identity_header = "…"',
            "identity.identity_header must be what a header can be: ASCII on one line.",
        ),
        ("[clients]", "identity.clients must be a list of tables."),
        ('[[clients]]\nsecret = "s"', "identity.clients[1].id is missing."),
        (
            '[[clients]]\nid = "a/b"',
            "identity.clients[1].id must be a GUID, or letters, digits, dots and hyphens.",
        ),
        ('[[clients]]\nid = "a"\nkey = 1', "identity.clients[1].key is no known setting."),
        ('[[clients]]\nid = "a"\nobject_id = "b"', "identity.clients[1].object_id must be a GUID."),
        (
            '[[clients]]\nid = "a"\nmanaged_identity = 1',
            "identity.clients[1].managed_identity must be true or false.",
        ),
        ('[[clients]]\nid = "a"\n[[clients]]\nid = "A"', "identity.clients has the id 'a' twice."),
        (
            '[[clients]]\nid = "a"\nresource_id = "/r"\n[[clients]]\nid = "b"\nresource_id = "/R"',
            "identity.clients has the resource_id '/r' twice.",
        ),
        (
            f'[[clients]]\nid = "a"\nobject_id = "{GUID}"\n[[users]]\nobject_id = "{GUID}"',
            f"identity.clients or users has the object_id '{GUID}' twice.",
        ),
        (
            f'[[clients]]\nid = "a"\nname = "n"\n[[users]]\nobject_id = "{GUID}"\nname = "n"',
            "identity.clients or users has the name 'n' twice.",
        ),
        ('[[users]]\nname = "alice"', "identity.users[1].object_id is missing."),
        (
            '[[clients]]\nid = "a"\nsecret_file = "/nowhere"',
            "identity.clients[1].secret_file cannot be read: /nowhere: No such file or directory.",
        ),
        (
            '[[clients]]\nid = "a"\ncertificate = "/dev/null"',
            "identity.clients[1].certificate has no RSA or P-256 key: /dev/null.",
        ),
        (
            '[[clients]]\nid = "a"\nsecret_file = "/dev/null"',
            "identity.clients[1].secret_file is empty.",
        ),
        (
            '[[clients]]\nid = "a"\n[[clients.federated]]\nissuer = "i"',
            "identity.clients[1].federated[1].jwks_file is missing.",
        ),
        (
            '[[clients]]\nid = "a"\n[[clients.federated]]\njwks_file = "/dev/null"',
            "identity.clients[1].federated[1].jwks_file has no RSA or P-256 public key: /dev/null.",
        ),
    ],
)
def test_mistakes(text: str, sentence: str) -> None:
    with pytest.raises(BadUsage) as refused:
        parsed(text)
    assert refused.value.sentence == sentence


@pytest.mark.parametrize(
    "made",
    [
        rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key(),
        ec.generate_private_key(ec.SECP384R1()).public_key(),
    ],
)
def test_keys_that_are_not_used(tmp_path: Path, made: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> None:
    path = tmp_path / "public.pem"
    pem = serialization.Encoding.PEM
    path.write_bytes(made.public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(BadUsage, match="has no RSA or P-256 key"):
        parsed(f'[[clients]]\nid = "a"\ncertificate = "{path}"')


def test_a_key_set_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "jwks"
    for text in ("", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "AAAA"}]}', '{"keys": 1}'):
        path.write_text(text)
        with pytest.raises(BadUsage, match="has no RSA or P-256 public key"):
            parsed(f'[[clients]]\nid = "a"\n[[clients.federated]]\njwks_file = "{path}"')


def test_no_secret_is_displayed() -> None:
    found = parsed('identity_header = "hidden"\n[[clients]]\nid = "a"\nsecret = "hidden"')
    assert "hidden" not in repr(found)


def test_where_the_issuer_is_off_its_keys_are_refused() -> None:
    for text in ("token_seconds = 600", f'[[users]]\nobject_id = "{GUID}"', 'identity_header = "x"'):
        with pytest.raises(BadUsage, match="are those of the built-in issuer"):
            parse_identity(tomllib.loads(text))
