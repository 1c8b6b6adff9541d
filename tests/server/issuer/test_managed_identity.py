"""The managed identity endpoints, in both forms."""

from dataclasses import replace

import jwt
import pytest

from kyanite.server.issuer.clients import DEVELOPMENT_CLIENT, Client, Identity
from kyanite.server.issuer.managed_identity import APP_SERVICE_PATH, IMDS_PATH, ManagedIdentity
from kyanite.wire.http import Response
from tests.server.issuer.issuers import CLIENT_ID, NOW, STORAGE, TENANT, fields_of, issuer, request

OID = DEVELOPMENT_CLIENT.identity.oid
RESOURCE_ID = (
    "/subscriptions/1/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/second"
)
SECOND = Client(
    Identity(oid="44444444-4444-4444-8444-444444444444", client_id="55555555-5555-4555-8555-555555555555"),
    is_managed_identity=True,
    resource_id=RESOURCE_ID,
)
THIRD = Client(
    Identity(oid="66666666-6666-4666-8666-666666666666", client_id="77777777-7777-4777-8777-777777777777"),
    secrets=("secret",),
)
CLIENTS = (THIRD, DEVELOPMENT_CLIENT, SECOND)
IMDS = f"{IMDS_PATH}?api-version=2018-02-01&resource={STORAGE}/"
APP_SERVICE = f"{APP_SERVICE_PATH}?api-version=2019-08-01&resource={STORAGE}"
METADATA, HEADER = {"metadata": "true"}, {"x-identity-header": "the header"}


def get(
    target: str, headers: dict[str, str], method: str = "GET", clients: tuple[Client, ...] = CLIENTS
) -> Response:
    door = ManagedIdentity(issuer(clients), "the header")
    return door(request(method, target, {"host": "127.0.0.1:10021", **headers}, secure=False))


def test_the_form_of_virtual_machines() -> None:
    response = get(IMDS, METADATA)
    assert response.status == 200
    fields = fields_of(response)
    claims = jwt.decode(fields.pop("access_token"), options={"verify_signature": False})
    assert (claims["aud"], claims["oid"], claims["tid"]) == (f"{STORAGE}/", OID, TENANT)
    assert fields == {
        "client_id": CLIENT_ID,
        "expires_in": "3599",
        "expires_on": str(NOW + 3599),
        "ext_expires_in": "3599",
        "not_before": str(NOW),
        "resource": f"{STORAGE}/",
        "token_type": "Bearer",
    }


def test_the_form_of_app_service() -> None:
    fields = fields_of(get(APP_SERVICE, HEADER))
    assert (fields["client_id"], fields["expires_on"]) == (CLIENT_ID, str(NOW + 3599))


@pytest.mark.parametrize(
    ("named", "client_id"),
    [
        ("", CLIENT_ID),
        (f"&client_id={CLIENT_ID}", CLIENT_ID),
        (f"&client_id={SECOND.id.upper()}", SECOND.id),
        (f"&object_id={SECOND.identity.oid}", SECOND.id),
        (f"&principal_id={SECOND.identity.oid}", SECOND.id),
        (f"&msi_res_id={RESOURCE_ID.lower()}", SECOND.id),
        (f"&mi_res_id={RESOURCE_ID}", SECOND.id),
    ],
)
@pytest.mark.parametrize(("target", "headers"), [(IMDS, METADATA), (APP_SERVICE, HEADER)])
def test_which_identity(target: str, headers: dict[str, str], named: str, client_id: str) -> None:
    assert fields_of(get(target + named, headers))["client_id"] == client_id


@pytest.mark.parametrize(
    "named",
    [
        f"&client_id={THIRD.id}",
        f"&client_id={TENANT}",
        f"&object_id={CLIENT_ID}",
        "&msi_res_id=/subscriptions/2",
        f"&client_id={SECOND.id}&object_id={SECOND.identity.oid}",
    ],
)
def test_no_such_identity(named: str) -> None:
    response = get(IMDS + named, METADATA)
    assert (response.status, fields_of(response)["error"]) == (400, "invalid_request")
    response = get(APP_SERVICE + named, HEADER)
    assert (response.status, fields_of(response)["statusCode"]) == (400, 400)


def test_without_managed_identities_there_is_none() -> None:
    response = get(IMDS, METADATA, clients=(THIRD, replace(SECOND, is_managed_identity=False)))
    assert (response.status, fields_of(response)["error_description"]) == (400, "Identity not found")


@pytest.mark.parametrize(
    ("target", "headers", "method", "status"),
    [
        (IMDS, {}, "GET", 400),
        (IMDS, {"metadata": "false"}, "GET", 400),
        (IMDS, {**METADATA, "x-forwarded-for": "10.0.0.1"}, "GET", 400),
        (IMDS, METADATA, "POST", 405),
        (f"{IMDS_PATH}?resource={STORAGE}", METADATA, "GET", 400),
        (f"{IMDS_PATH}?api-version=2017-01-01&resource={STORAGE}", METADATA, "GET", 400),
        (f"{IMDS_PATH}?api-version=2018-02-01", METADATA, "GET", 400),
        (f"{IMDS_PATH}?api-version=2018-02-01&resource=storage", METADATA, "GET", 400),
        (f"{IMDS}&resource=again", METADATA, "GET", 400),
        (f"{IMDS}&{'&'.join(['a=1'] * 60)}", METADATA, "GET", 400),
        (f"{IMDS}&%ff=%00", {**METADATA, "host": "attacker.example.org"}, "GET", 400),
        (IMDS, {**METADATA, "host": "127.0.0.1.example.org"}, "GET", 400),
        (IMDS, {**METADATA, "host": ""}, "GET", 400),
        (APP_SERVICE, {}, "GET", 401),
        (APP_SERVICE, METADATA, "GET", 401),
        (APP_SERVICE, {"x-identity-header": "the headeR"}, "GET", 401),
        (APP_SERVICE, {"x-identity-header": "\xff"}, "GET", 401),
        (APP_SERVICE, HEADER, "HEAD", 405),
        (f"{APP_SERVICE_PATH}?api-version=2017-09-01&resource={STORAGE}", HEADER, "GET", 400),
        ("/", METADATA, "GET", 404),
        ("/metadata/instance?api-version=2021-02-01", METADATA, "GET", 404),
        (f"/{TENANT}/oauth2/v2.0/token", METADATA, "GET", 404),
    ],
)
def test_refused(target: str, headers: dict[str, str], method: str, status: int) -> None:
    response = get(target, headers, method)
    assert response.status == status
    assert "access_token" not in fields_of(response)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.9.9.9", "[::1]:10021"])
def test_names_of_this_machine(host: str) -> None:
    assert get(IMDS, {**METADATA, "host": host}).status == 200
