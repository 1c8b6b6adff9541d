"""Requests of every shape to the issuer's endpoints: an answer in JSON, never a failure, and no token without proof."""

from string import printable

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.server.issuer.clients import DEVELOPMENT_CLIENT
from kyanite.server.issuer.managed_identity import APP_SERVICE_PATH, IMDS_PATH, ManagedIdentity
from kyanite.wire.http import Response
from tests.profiles import examples
from tests.server.issuer.issuers import (
    CLIENT_ID,
    OTHER_TENANT,
    SECRET,
    STORAGE,
    TENANT,
    answer_to,
    fields_of,
    issuer,
    key,
    request,
)
from tests.server.issuer.test_assertions import by_issuer, send

ISSUER = issuer()
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(printable, max_size=200),
    st.sampled_from(
        ["", "true", STORAGE, f"{STORAGE}/.default", CLIENT_ID, "2018-02-01", "2019-08-01", "a.b.c", "%"]
    ),
)
PARTS = st.sampled_from(
    [TENANT, OTHER_TENANT, "common", "v2.0", ".well-known", "openid-configuration", "discovery", "keys", "instance",
     "oauth2", "token", "authorize", "metadata", "identity", "msi", "", "..", "%2e%2e", "%00", "a"]
)  # fmt: skip
PATHS = st.one_of(
    st.lists(PARTS, max_size=6).map(lambda parts: "/" + "/".join(parts)),
    st.sampled_from(
        [
            f"/{TENANT}/oauth2/v2.0/token",
            f"/{TENANT}/oauth2/token",
            f"/{TENANT}/v2.0/.well-known/openid-configuration",
            IMDS_PATH,
            APP_SERVICE_PATH,
        ]
    ),
    st.text(printable, max_size=60),
)
METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
NAMES = st.sampled_from(
    ["grant_type", "client_id", "scope", "resource", "client_assertion", "client_assertion_type", "claims",
     "api-version", "object_id", "principal_id", "msi_res_id", "mi_res_id", "a"]
)  # fmt: skip
VALUES = st.one_of(
    TEXTS,
    st.sampled_from(["client_credentials", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"]),
)
FORMS = st.one_of(
    st.binary(max_size=200),
    st.lists(st.tuples(NAMES, VALUES), max_size=8).map(
        lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "replace")
    ),
)
LATIN = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=60)
HEADERS = st.fixed_dictionaries(
    {"content-type": st.sampled_from(["application/x-www-form-urlencoded", "", "text/plain"])},
    optional={
        "authorization": st.one_of(
            LATIN, st.sampled_from(["Basic Og==", "Basic YTpi", "Basic ,", "Bearer a"])
        ),
        "client-request-id": LATIN,
        "host": st.one_of(LATIN, st.sampled_from(["localhost", "127.0.0.1:1", "a..b"])),
        "x-identity-header": LATIN,
    },
)
EXPECTED = {200, 400, 401, 404, 405, 413}


def check(response: Response) -> None:
    assert response.status in EXPECTED
    fields = fields_of(response)
    assert isinstance(fields, dict)
    assert "access_token" not in fields
    assert SECRET not in str(fields)


@given(METHODS, PATHS, st.text(printable, max_size=60), HEADERS, FORMS)
@settings(max_examples=examples(100))
def test_the_port_for_clients(
    method: str, path: str, query: str, headers: dict[str, str], body: bytes
) -> None:
    check(answer_to(ISSUER, method, f"{path}?{query}", headers, body))


@given(METHODS, PATHS, FORMS, HEADERS)
@settings(max_examples=examples(100))
def test_the_managed_identity_port(method: str, path: str, query: bytes, headers: dict[str, str]) -> None:
    door = ManagedIdentity(ISSUER, "the header")
    target = f"{path}?{query.decode('latin-1')}"
    check(door(request(method, target, {"host": "127.0.0.1", **headers}, secure=False)))


@pytest.mark.parametrize("part", [0, 1, 2])
@given(st.data())
@settings(max_examples=examples(30))
def test_a_good_assertion_that_was_changed(part: int, data: st.DataObject) -> None:
    """One character of one of its three parts."""
    parts = jwt.encode(by_issuer(), key().private, "RS256", {"kid": key().id}).split(".")
    # The last character of a part has bits that mean nothing.
    at = data.draw(st.integers(0, len(parts[part]) - 2))
    other = data.draw(st.sampled_from("ABCxyz019-_.= é").filter(lambda each: each != parts[part][at]))
    parts[part] = parts[part][:at] + other + parts[part][at + 1 :]
    response = send(DEVELOPMENT_CLIENT, ".".join(parts))
    assert response.status == 401
    assert "access_token" not in fields_of(response)
