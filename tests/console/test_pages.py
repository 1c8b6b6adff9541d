"""Every page and every form of the console, without a browser."""

import json
from html import unescape

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, ContainerClient, RetentionPolicy
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from tests.console.visitor import Visitor
from tests.server_process import ServerProcess

ACCOUNT = "devstoreaccount1"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000"
    "050001a5f645400000000049454e44ae426082"
)
HOSTILE = "<script>alert(1)</script>\"'&/../%2e%2e/<img src=x onerror=alert(2)>.txt"


def container_of(server: ServerProcess, name: str) -> ContainerClient:
    client = BlobServiceClient(server.endpoints["blob"], credential=server.account_key)
    return client.create_container(name)


def test_one_account_is_displayed_at_once_and_its_keys_only_on_request(visitor: Visitor) -> None:
    page = visitor.get("/")
    assert page.status == 200
    assert page.address.startswith("/account")
    assert "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq" not in page.text
    revealed = visitor.send("/account/keys", account=ACCOUNT)
    assert "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq" in revealed.text


def test_a_connection_string_of_the_console_connects(visitor: Visitor) -> None:
    words = visitor.send("/account/keys", account=ACCOUNT).words
    text = next(word for word in words.split() if word.startswith("DefaultEndpointsProtocol"))
    list(BlobServiceClient.from_connection_string(text).list_containers())


def test_an_unknown_page_and_an_unknown_account(visitor: Visitor) -> None:
    assert visitor.get("/nothing").status == 404
    assert visitor.get("/containers", account="nobody").status == 404
    assert visitor.get("/static/../service.py").status == 404


def test_containers_come_and_go(visitor: Visitor) -> None:
    page = visitor.send("/containers/create", account=ACCOUNT, container="box")
    assert (page.status, "It was created." in page.text) == (200, True)
    assert "box" in visitor.get("/containers", account=ACCOUNT).words
    again = visitor.send("/containers/create", account=ACCOUNT, container="box")
    assert again.status == 409
    assert "ContainerAlreadyExists" in again.words
    visitor.send("/containers/delete", account=ACCOUNT, container="box")
    assert "box" not in visitor.get("/containers", account=ACCOUNT).words


def test_a_blob_is_uploaded_displayed_and_downloaded(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "uploads")
    where = {"account": ACCOUNT, "container": "uploads", "name": "folder/note.txt"}
    assert visitor.upload("/blob/upload", b"first words", **where).status == 201
    assert container.download_blob("folder/note.txt").readall() == b"first words"
    refused = visitor.upload("/blob/upload", b"other words", **where)
    assert refused.status == 409
    assert json.loads(refused.text)["error"] == "409 BlobAlreadyExists"
    assert visitor.upload("/blob/upload", b"second words", overwrite="1", **where).status == 201
    assert "second words" in visitor.get("/blob", **where).words
    file = visitor.get("/blob/download", **where)
    assert file.body == b"second words"
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''note.txt"
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["content-security-policy"].startswith("sandbox")
    listed = visitor.get("/blobs", account=ACCOUNT, container="uploads")
    assert "folder/" in listed.words
    assert "note.txt" not in listed.words
    assert "note.txt" in visitor.get("/blobs", account=ACCOUNT, container="uploads", prefix="folder/").words
    visitor.send("/blob/delete", **where)
    assert not container.get_blob_client("folder/note.txt").exists()


def test_a_large_upload_and_download_stream(server: ServerProcess, visitor: Visitor) -> None:
    container_of(server, "large")
    content = bytes(range(256)) * 40_000
    where = {"account": ACCOUNT, "container": "large", "name": "ten-megabytes"}
    assert visitor.upload("/blob/upload", content, "application/octet-stream", **where).status == 201
    assert visitor.get("/blob/download", **where).body == content


def test_metadata_and_tags_are_edited(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "edited")
    container.upload_blob("x", b"1")
    where = {"account": ACCOUNT, "container": "edited", "name": "x"}
    visitor.send("/blob/metadata", metadata="Colour = blue\nsize=2", **where)
    visitor.send("/blob/tags", tags="state = <new>", **where)
    blob = container.get_blob_client("x")
    assert blob.get_blob_properties().metadata == {"Colour": "blue", "size": "2"}
    refused = visitor.send("/blob/metadata", metadata="kind=ж", **where)
    assert (refused.status, "plain characters" in refused.words) == (400, True)
    # Tags have fewer characters than XML, and the service says so.
    assert blob.get_blob_tags() == {}
    visitor.send("/blob/tags", tags="state = new", **where)
    assert blob.get_blob_tags() == {"state": "new"}
    page = visitor.get("/blob", **where).words
    assert "state = new" in page
    assert "size = 2" in page


def test_snapshots_are_made_listed_and_deleted(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "history")
    container.upload_blob("x", b"old")
    where = {"account": ACCOUNT, "container": "history", "name": "x"}
    visitor.send("/blob/snapshot", **where)
    container.upload_blob("x", b"new", overwrite=True)
    snapshot = next(each.snapshot for each in container.list_blobs(include=["snapshots"]) if each.snapshot)
    assert snapshot in visitor.get("/blob", **where).words
    assert visitor.get("/blob/download", snapshot=snapshot, **where).body == b"old"
    assert visitor.get("/blob", snapshot=snapshot, **where).status == 200
    visitor.send("/blob/promote", snapshot=snapshot, **where)
    assert container.download_blob("x").readall() == b"old"
    container.upload_blob("x", b"new", overwrite=True)
    visitor.send("/blob/delete", snapshot=snapshot, **where)
    assert snapshot not in visitor.get("/blob", **where).words
    assert container.download_blob("x").readall() == b"new"


def test_deleted_blobs_are_listed_and_restored(server: ServerProcess, visitor: Visitor) -> None:
    client = BlobServiceClient(server.endpoints["blob"], credential=server.account_key)
    before = client.get_service_properties()["delete_retention_policy"]
    client.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=1))
    try:
        container = container_of(server, "lost")
        container.upload_blob("x", b"kept")
        container.delete_blob("x")
        where = {"account": ACCOUNT, "container": "lost"}
        assert "Download" not in visitor.get("/blobs", **where).words
        assert "deleted" in visitor.get("/blobs", deleted="1", flat="1", **where).words
        page = visitor.get("/blob", name="x", **where)
        assert "was deleted" in page.words
        visitor.send("/blob/undelete", name="x", **where)
        assert container.download_blob("x").readall() == b"kept"
    finally:
        client.set_service_properties(delete_retention_policy=before)


def test_previews_of_text_json_csv_and_pictures(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "previews")
    for name, content in {
        "a.json": b'{"b":[1]}',
        "a.csv": b'name,price\n"<b>x</b>",2\n',
        "a.html": b"<h1>not a heading</h1>",
        "a.png": PNG,
        "long.txt": b"0123456789abcdef" * 20_000,
        "binary": b"\0\1",
    }.items():
        container.upload_blob(name, content)
    where = {"account": ACCOUNT, "container": "previews"}
    assert "&#34;b&#34;: [" in visitor.get("/blob", name="a.json", **where).text
    csv = visitor.get("/blob", name="a.csv", **where).text
    assert "<td>price</td>" in csv
    assert "<td>&lt;b&gt;x&lt;/b&gt;</td>" in csv
    assert "&lt;h1&gt;not a heading" in visitor.get("/blob", name="a.html", **where).text
    assert "Only the beginning is shown" in visitor.get("/blob", name="long.txt", **where).words
    assert "Preview" not in visitor.get("/blob", name="binary", **where).words
    assert "/blob/image?type=image%2Fpng" in visitor.get("/blob", name="a.png", **where).text
    image = visitor.get("/blob/image", name="a.png", type="image/png", **where)
    assert (image.headers["content-type"], image.body) == ("image/png", PNG)
    assert image.headers["content-security-policy"].startswith("sandbox")
    # Stored bytes never become a page, whatever the address says.
    for kind in ("text/html", "image/svg+xml", ""):
        assert visitor.get("/blob/image", name="a.html", type=kind, **where).status == 404


def test_a_hostile_name_is_text_on_every_page(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "hostile")
    name = HOSTILE.replace("/../", "/x/")
    where = {"account": ACCOUNT, "container": "hostile"}
    assert visitor.upload("/blob/upload", b"1", "text/plain", name=name, **where).status == 201
    assert [each.name for each in container.list_blobs()] == [name]
    for page in (
        visitor.get("/blobs", flat="1", **where),
        visitor.get("/blobs", prefix=name[:10], **where),
        visitor.get("/blob", name=name, **where),
        visitor.get("/blob", name=name + "?", **where),
        visitor.get("/nothing", name=name),
    ):
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
    assert name in visitor.get("/blob", name=name, **where).words
    assert visitor.get("/blob/download", name=name, **where).body == b"1"


def test_queues_are_peeked_filled_and_emptied(server: ServerProcess, visitor: Visitor) -> None:
    visitor.send("/queues/create", account=ACCOUNT, queue="work")
    queue = QueueServiceClient(server.endpoints["queue"], credential=server.account_key).get_queue_client(
        "work"
    )
    where = {"account": ACCOUNT, "queue": "work"}
    visitor.send("/queue/add", text="<b>first</b> & so on", **where)
    visitor.send("/queue/add", text="second", **where)
    page = visitor.get("/queue", **where)
    assert "<b>first</b> & so on" in page.words
    assert "<b>first" not in page.text
    dequeued = visitor.send("/queue/take", count="1", seconds="60", **where)
    assert "Taken" in dequeued.words
    receipt = dequeued.text.split('name="receipt" value="')[1].partition('"')[0]
    message = dequeued.text.split('name="message" value="')[1].partition('"')[0]
    visitor.send("/queue/delete", message=message, receipt=receipt, **where)
    assert [each.content for each in queue.peek_messages(max_messages=5)] == ["second"]
    visitor.send("/queue/clear", **where)
    assert queue.peek_messages() == []
    assert visitor.send("/queue/take", count="33", **where).status == 400
    visitor.send("/queues/delete", **where)
    assert "work" not in visitor.get("/queues", account=ACCOUNT).words.split()


def test_tables_are_filtered_and_edited(server: ServerProcess, visitor: Visitor) -> None:
    visitor.send("/tables/create", account=ACCOUNT, table="Prices")
    credential = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={server.account_key};"
    service = TableServiceClient.from_connection_string(
        f"{credential}TableEndpoint={server.endpoints['table']}"
    )
    table = service.get_table_client("Prices")
    where = {"account": ACCOUNT, "table": "Prices"}
    for row in ("a'b", "c"):
        entity = {"PartitionKey": "p 1", "RowKey": row, "Price": 5, "Big": "7", "Big@odata.type": "Edm.Int64"}
        assert visitor.send("/entity/save", entity=json.dumps(entity), **where).status == 200
    assert {each["Big"].value for each in table.list_entities()} == {7}
    assert "a'b" in visitor.get("/table", **where).words
    filtered = visitor.get("/table", filter="RowKey eq 'c'", **where).words
    assert "a'b" not in filtered
    assert visitor.get("/table", filter="RowKey eq", **where).status == 400
    keys = {"partition": "p 1", "row": "a'b"}
    page = visitor.get("/entity", **keys, **where)
    etag = unescape(page.text.split('name="etag" value="')[1].partition('"')[0])
    changed = {"PartitionKey": "p 1", "RowKey": "a'b", "Price": 6}
    assert visitor.send("/entity/save", entity=json.dumps(changed), etag=etag, **keys, **where).status == 200
    assert table.get_entity("p 1", "a'b")["Price"] == 6
    # Another has saved it since, so the old page is refused.
    late = visitor.send("/entity/save", entity=json.dumps(changed), etag=etag, **keys, **where)
    assert (late.status, "UpdateConditionNotSatisfied" in late.words) == (412, True)
    moved = json.dumps({**changed, "RowKey": "z"})
    assert visitor.send("/entity/save", entity=moved, etag=etag, **keys, **where).status == 400
    assert visitor.send("/entity/save", entity="{", **where).status == 400
    visitor.send("/entity/delete", **keys, **where)
    assert [each["RowKey"] for each in table.list_entities()] == ["c"]
    visitor.send("/tables/delete", **where)
    assert list(service.list_tables()) == []


def test_shares_have_directories_files_and_snapshots(server: ServerProcess, visitor: Visitor) -> None:
    visitor.send("/shares/create", account=ACCOUNT, share="docs")
    service = ShareServiceClient(server.endpoints["file"], credential=server.account_key)
    share = service.get_share_client("docs")
    where = {"account": ACCOUNT, "share": "docs"}
    visitor.send("/share/directory", name="letters", **where)
    content = b"0123456789abcdef" * 300_000
    path = "letters/long & letter.txt"
    assert visitor.upload("/file/upload", content, path=path, **where).status == 201
    assert share.get_file_client(path).download_file().readall() == content
    assert visitor.upload("/file/upload", b"", path=path, **where).status == 409
    assert visitor.upload("/file/upload", b"", path="letters/empty", **where).status == 201
    listed = visitor.get("/share", path="letters", **where)
    assert "long & letter.txt" in listed.words
    assert "long & letter" not in listed.text
    assert visitor.get("/file", path=path, **where).status == 200
    assert visitor.get("/file/download", path=path, **where).body == content
    visitor.send("/file/metadata", path=path, metadata="a=b", **where)
    assert share.get_file_client(path).get_file_properties().metadata == {"a": "b"}
    visitor.send("/shares/snapshot", **where)
    visitor.send("/file/delete", path=path, **where)
    visitor.send("/file/delete", path="letters/empty", **where)
    snapshot = next(each.snapshot for each in service.list_shares(include_snapshots=True) if each.snapshot)
    assert "long" not in visitor.get("/share", path="letters", **where).words
    assert "long" in visitor.get("/share", path="letters", snapshot=snapshot, **where).words
    assert visitor.get("/file/download", path=path, snapshot=snapshot, **where).body == content
    visitor.send("/share/directory/delete", path="letters", **where)
    assert "empty" in visitor.get("/share", **where).words
    visitor.send("/shares/delete", **where)
    assert "docs" not in visitor.get("/shares", account=ACCOUNT).words.split()


def test_an_archived_blob_has_a_page_without_a_preview(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "archive")
    container.upload_blob("old.txt", b"words").set_standard_blob_tier("Archive")
    page = visitor.get("/blob", account=ACCOUNT, container="archive", name="old.txt")
    assert page.status == 200
    assert "Archive" in page.words
    assert "Preview" not in page.words


def test_versions_are_listed_and_read(server: ServerProcess, visitor: Visitor) -> None:
    with ServerProcess("--console-port", "0", "--in-memory", "--config", _versioning(server)) as other:
        container = container_of(other, "versions")
        container.upload_blob("x", b"old")
        old = str(container.get_blob_client("x").get_blob_properties().version_id)
        container.upload_blob("x", b"new", overwrite=True)
        there = Visitor(other.endpoints["console"])
        where = {"account": ACCOUNT, "container": "versions", "name": "x"}
        assert old in there.get("/blob", **where).words
        assert there.get("/blob/download", version=old, **where).body == b"old"
        assert "Version" in there.get("/blob", version=old, **where).words
        there.send("/blob/delete", **where)
        assert "only previous versions" in there.get("/blob", **where).words
        there.send("/blob/promote", version=old, **where)
        assert container.download_blob("x").readall() == b"old"
        assert there.send("/blob/promote", **where).status == 400
        there.send("/blob/delete", version=old, **where)
        assert old not in there.get("/blob", **where).words


def _versioning(server: ServerProcess) -> str:
    path = server.location / "versioning.toml"
    path.write_text(f'[accounts.{ACCOUNT}]\nkeys = ["{server.account_key}"]\nversioning = true\n')
    return str(path)


def test_a_container_pages(server: ServerProcess, visitor: Visitor) -> None:
    container = container_of(server, "many")
    for number in range(130):
        container.upload_blob(f"{number:03}", b"")
    where = {"account": ACCOUNT, "container": "many"}
    first = visitor.get("/blobs", **where)
    assert "099" in first.words
    assert "100" not in first.words.split()
    link = first.text.split('rel="next" href="')[1].partition('"')[0].replace("&amp;", "&")
    second = visitor.get(link)
    assert "129" in second.words
    assert 'rel="next"' not in second.text
