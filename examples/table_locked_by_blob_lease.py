"""A table locked through a blob: tables have no leases, so all agree on a blob whose lease is the right to write.

Each clerk takes the lease, reads the stock, thinks, writes it back without any condition, and releases the lease. They
keep out of each other's way only because every one of them asks for the lease first: the lease protects the blob, and
the table by agreement. If a clerk dies, the lease ends by itself.

    AZURE_STORAGE_CONNECTION_STRING="UseDevelopmentStorage=true" python examples/table_locked_by_blob_lease.py
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient

CLERKS, SALES = 4, 5


@contextmanager
def locked(lock: BlobClient) -> Iterator[None]:
    """Wait for the lease of the blob, and hold it."""
    while True:
        try:
            lease = lock.acquire_lease(lease_duration=15)
            break
        except HttpResponseError as error:
            if error.status_code != 409:
                raise
            time.sleep(0.01)
    try:
        yield
    finally:
        lease.release()


def sell(stock: TableClient, lock: BlobClient) -> None:
    for _ in range(SALES):
        with locked(lock):
            apples = stock.get_entity("fruit", "apples")
            apples["Count"] -= 1
            stock.upsert_entity(apples)


def main() -> None:
    settings = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    stock = TableServiceClient.from_connection_string(settings).create_table(f"stock{uuid.uuid4().hex}")
    stock.create_entity({"PartitionKey": "fruit", "RowKey": "apples", "Count": 100})
    container = BlobServiceClient.from_connection_string(settings).create_container(f"locks-{uuid.uuid4()}")
    lock = container.upload_blob(stock.table_name, b"")

    clerks = [Thread(target=sell, args=(stock, lock)) for _ in range(CLERKS)]
    for clerk in clerks:
        clerk.start()
    for clerk in clerks:
        clerk.join()
    left = stock.get_entity("fruit", "apples")["Count"]
    print(f"{CLERKS} clerks sold {SALES} apples each: {left} of 100 are left")

    with locked(lock):
        try:
            lock.acquire_lease(lease_duration=15)
        except HttpResponseError as error:
            print(f"another client cannot lock it meanwhile: {error.status_code}")
    stock.delete_table()
    container.delete_container()


if __name__ == "__main__":
    main()
