"""No keys in the program: `DefaultAzureCredential` finds out who it runs as, and asks for a token for that identity.

The same program runs in Azure, where the platform sets the environment of a managed identity, and against a server
on this machine that was started with `kyanite serve --dev-identity builtin`:

    export BLOB_URL=https://127.0.0.1:10000/devstoreaccount1
    export IDENTITY_ENDPOINT=http://127.0.0.1:10021/msi/token IDENTITY_HEADER=kyanite-development
    export REQUESTS_CA_BUNDLE=kyanite-data/identity/ca.pem
"""

import os
from uuid import uuid4

from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobServiceClient

with (
    DefaultAzureCredential() as credential,
    BlobServiceClient(os.environ["BLOB_URL"], credential) as service,
):
    container = service.create_container(f"example-{uuid4().hex[:8]}")
    container.upload_blob("greeting", "written with a token")
    print("read with a token:", repr(container.download_blob("greeting", encoding="utf-8").readall()))
    container.delete_container()
