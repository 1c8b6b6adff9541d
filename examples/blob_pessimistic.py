"""Pessimistic concurrency: take a lease, and no other client can write while you hold it.

Reading needs no lease. A write without the lease's id, or with another one, is refused until the lease is released.

    AZURE_STORAGE_CONNECTION_STRING="UseDevelopmentStorage=true" python examples/blob_pessimistic.py
"""

import os
import uuid

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, StorageErrorCode


def main() -> None:
    service = BlobServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    container = service.create_container(f"pessimistic-{uuid.uuid4()}")
    blob = container.get_blob_client("report.txt")
    blob.upload_blob("draft")

    lease = blob.acquire_lease(lease_duration=15)
    print("leased for 15 seconds")
    blob.upload_blob("written under the lease", overwrite=True, lease=lease)
    print("the holder writes")
    try:
        blob.upload_blob("written without the lease", overwrite=True)
    except HttpResponseError as error:
        print(
            f"other clients are refused with {error.status_code} {StorageErrorCode(error.error_code).value}"
        )
    print(f"every client reads {blob.download_blob(encoding='utf-8').readall()!r}")
    try:
        blob.acquire_lease(lease_duration=15)
    except HttpResponseError as error:
        print(
            f"no other client gets the lease: {error.status_code} {StorageErrorCode(error.error_code).value}"
        )

    lease.release()
    blob.upload_blob("written after the release", overwrite=True)
    print("released: every client writes again")
    container.delete_container()


if __name__ == "__main__":
    main()
