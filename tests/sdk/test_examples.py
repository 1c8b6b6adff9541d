"""Every example runs unchanged against the server, and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server_process import ServerProcess

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "blob_optimistic.py": (
        "refused with 412: the blob has changed",
        r"in the end: 'first\nanother client\nmine\n'",
    ),
    "blob_pessimistic.py": (
        "other clients are refused with 412 LeaseIdMissing",
        "every client reads 'written under the lease'",
        "no other client gets the lease: 409 LeaseAlreadyPresent",
        "released: every client writes again",
    ),
    "file_shared_with_smb.py": (
        "open over SMB and shared with no one: REST reads: 409 SharingViolation",
        "the handle is listed: its client may write",
        "closed: REST reads 'written over SMB'",
        "open and shared: REST writes, and SMB reads 'written by REST!'",
        "leased over REST: SMB opens it for writing: The process cannot access the file",
        "leased over REST: SMB reads 'written by REST!'",
        "deleted over SMB while it is open: REST reads: 409 SMBDeletePending",
        "the client that has it open still reads 'written by REST!'",
        "closed: REST reads: 404 ResourceNotFound",
        "in the share: []",
    ),
    "idempotent_consumer.py": (
        "the unlucky one ships 'apples'",
        "the next one finds 'apples' shipped already",
        "the next one fails on 'broken order', attempt 3",
        "4 messages finished, 3 orders shipped, each once",
        "in the poison queue: ['broken order']",
    ),
    "table_locked_by_blob_lease.py": (
        "4 clerks sold 5 apples each: 80 of 100 are left",
        "another client cannot lock it meanwhile: 409",
    ),
    "table_optimistic.py": (
        "the other one updates by its ETag and succeeds",
        "my update by the same ETag is refused with 412: the entity has changed",
        "it is still 425-555-0105",
        "forced with *, it is 425-555-0125",
    ),
}


WITH_TOKENS = {"blob_with_token.py"}
"""These need a server with an issuer: ``tests/sdk/issuer/test_example.py`` runs them."""


@pytest.mark.parametrize("name", sorted({path.name for path in EXAMPLES.glob("*.py")} - WITH_TOKENS))
def test_an_example_does_what_it_says(server: ServerProcess, name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env={
            **os.environ,
            "AZURE_STORAGE_CONNECTION_STRING": server.connection_string,
            "SMB_PORT": str(urlsplit(server.endpoints["smb"]).port),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for line in EXPECTED[name]:
        assert line in ran.stdout
