"""Something in every service, for pages to show."""

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from tests.server_process import ServerProcess

_CSV = b"peak,metres\nMont Blanc,4806\nMatterhorn,4478\nEiger,3967\n"


def fill(server: ServerProcess) -> None:
    blobs = BlobServiceClient(server.endpoints["blob"], credential=server.account_key)
    pictures = blobs.create_container("pictures")
    for name, content in {
        "readme.md": b"# Pictures\n",
        "trips/alps.csv": _CSV,
        "trips/plan.json": b'{"days": 3}',
        "portraits/a.txt": b"a",
    }.items():
        pictures.upload_blob(name, content)
    pictures.get_blob_client("trips/alps.csv").create_snapshot()
    blobs.create_container("backups")
    queue = QueueServiceClient(server.endpoints["queue"], credential=server.account_key).create_queue(
        "orders"
    )
    queue.send_message("one tea")
    tables = TableServiceClient.from_connection_string(server.connection_string)
    table = tables.create_table("Prices")
    for row, price in (("apple", 3), ("pear", 4)):
        table.create_entity({"PartitionKey": "fruit", "RowKey": row, "Price": price, "Fresh": True})
    share = ShareServiceClient(server.endpoints["file"], credential=server.account_key).create_share("team")
    share.create_directory("letters")
    for name in ("offer.txt", "notes.txt"):
        share.get_file_client(f"letters/{name}").upload_file(b"Dear customer,\n")
