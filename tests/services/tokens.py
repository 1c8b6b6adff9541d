"""Shared access signatures for the account of the harness, made by the vendor's library."""

import base64
from datetime import UTC, datetime, timedelta

from azure.storage.blob import (
    AccountSasPermissions,
    BlobSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
)

from tests.services.harness import ACCOUNT, Harness

KEY = base64.b64encode(ACCOUNT.keys[0]).decode()


def in_an_hour(harness: Harness) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=harness.clock.now // 10, hours=1)


def blob_token(
    blobs: Harness,
    name: str,
    *,
    container: str = "box",
    permission: str = "r",
    address: str | None = None,
    protocol: str | None = None,
    version: str | None = None,
) -> str:
    return str(
        generate_blob_sas(
            ACCOUNT.name,
            container,
            name,
            account_key=KEY,
            permission=BlobSasPermissions.from_string(permission),
            expiry=in_an_hour(blobs),
            ip=address,
            protocol=protocol,
            version_id=version,
        )
    )


def account_token(harness: Harness, permission: str) -> str:
    """A token for the blobs of the account."""
    return str(
        generate_account_sas(
            ACCOUNT.name,
            KEY,
            ResourceTypes(object=True),
            AccountSasPermissions.from_string(permission),  # type: ignore[no-untyped-call]
            in_an_hour(harness),
        )
    )
