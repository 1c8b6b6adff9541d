"""What the environment of a program says about a server with the built-in issuer, and the program run in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.server_process import ServerProcess

TENANT = "11111111-1111-4111-8111-111111111111"
CLIENT_ID = "22222222-2222-4222-8222-222222222222"
OBJECT_ID = "33333333-3333-4333-8333-333333333333"
SECRET = "kyanite-development-secret"
"""As the documentation has them: these tests would fail if they changed."""

FEDERATION_AUDIENCE = "api://AzureADTokenExchange"
PATIENCE_SECONDS = 240


def environment_of(server: ServerProcess, token_file: Path) -> dict[str, str]:
    token_file.write_text(kyanite_token(server, "--audience", FEDERATION_AUDIENCE))
    endpoints = server.endpoints
    authority = endpoints["identity_ca"]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "IDENTITY_"))},
        **{f"{name.upper()}_URL": endpoints[name] for name in ("blob", "queue", "table", "file")},
        "AZURE_TENANT_ID": TENANT,
        "AZURE_CLIENT_ID": CLIENT_ID,
        "AZURE_CLIENT_SECRET": SECRET,
        "AZURE_AUTHORITY_HOST": endpoints["identity"],
        "AZURE_FEDERATED_TOKEN_FILE": str(token_file),
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": endpoints["managed_identity"],
        "IDENTITY_ENDPOINT": f"{endpoints['managed_identity']}/msi/token",
        "IDENTITY_HEADER": "kyanite-development",
        "REQUESTS_CA_BUNDLE": authority,
        "SSL_CERT_FILE": authority,
    }


def kyanite_token(server: ServerProcess, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "kyanite.server.cli",
        "token",
        "--location",
        str(server.location),
        *options,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    return ran.stdout.strip()


ROOT = Path(__file__).parents[3]


def run_program(environment: dict[str, str], form: str, *names: str) -> dict[str, dict[str, str]]:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.sdk.issuer.program", form, *names],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    outcomes: dict[str, dict[str, str]] = json.loads(ran.stdout)
    return outcomes
