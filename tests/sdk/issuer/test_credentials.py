"""Credentials of azure-identity, unchanged and offline, with the official clients of all four services."""

import pytest

from tests.sdk.issuer.environment import run_program

ACCEPTED = (
    "client secret",
    "environment",
    "default, with a secret",
    "default, with a managed identity",
    "workload",
    "managed identity of a virtual machine",
    "managed identity of App Service",
    "managed identity by client id",
)
REFUSED = {
    "wrong secret": "ClientAuthenticationError: ",
    "managed identity that is unknown": "CredentialUnavailableError: ",
}
ALL_OK = {"token": "ok", "blob": "ok", "queue": "ok", "table": "ok", "file": "ok"}
FORMS = ("sync", "async")


@pytest.fixture(scope="session")
def outcomes(environment: dict[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    """Of every credential and both forms of the clients."""
    return {form: run_program(environment, form, *ACCEPTED, *REFUSED) for form in FORMS}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ACCEPTED)
def test_a_credential_opens_all_services(
    outcomes: dict[str, dict[str, dict[str, str]]], form: str, name: str
) -> None:
    assert outcomes[form][name] == ALL_OK


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_credential_is_the_error_that_the_library_has_for_it(
    outcomes: dict[str, dict[str, dict[str, str]]], form: str, name: str
) -> None:
    found = outcomes[form][name]
    assert found["token"].startswith(REFUSED[name])
    assert "ok" not in found.values()
