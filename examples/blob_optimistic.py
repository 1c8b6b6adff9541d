"""Optimistic concurrency: write only if no other client has written since you read.

Two writers read the same blob. The first to write back succeeds; the second is refused because its ETag is old, reads
again and tries again. Nothing is locked and no update is lost.

    AZURE_STORAGE_CONNECTION_STRING="UseDevelopmentStorage=true" python examples/blob_optimistic.py
"""

import os
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.storage.blob import BlobClient, BlobServiceClient


def add_line(blob: BlobClient, line: str, interrupt: BlobClient | None = None) -> None:
    """Append a line to the blob's text, however often another client writes in between."""
    while True:
        download = blob.download_blob(encoding="utf-8")
        text, etag = download.readall(), download.properties.etag
        print(f"read {text!r} with ETag {etag}")
        if interrupt is not None:
            interrupt.upload_blob(text + "another client\n", overwrite=True)
            print("meanwhile another client writes")
            interrupt = None
        try:
            blob.upload_blob(
                text + line, overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified
            )
        except ResourceModifiedError as error:
            print(f"refused with {error.status_code}: the blob has changed, so read it again")
        else:
            print("written")
            return


def main() -> None:
    service = BlobServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    container = service.create_container(f"optimistic-{uuid.uuid4()}")
    blob = container.get_blob_client("list.txt")
    blob.upload_blob("first\n")
    add_line(blob, "mine\n", interrupt=container.get_blob_client("list.txt"))
    print(f"in the end: {blob.download_blob(encoding='utf-8').readall()!r}")
    container.delete_container()


if __name__ == "__main__":
    main()
