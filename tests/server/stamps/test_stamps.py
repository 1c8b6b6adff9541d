"""Several stamps in one server: accounts live on one each, copies between them stream, one that is away hurts none."""

import base64
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobClient, BlobServiceClient, Services, generate_account_sas
from azure.storage.fileshare import ShareServiceClient

from tests.extents.suite import MIB, noise
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess, eventually
from tests.tcp_proxy import TcpProxy

KEYS = {name: base64.b64encode(name.encode() * 8).decode() for name in ("alpha", "beta2", "gamma")}
CONFIG = """
[stamps.main]
[stamps.west]
{west}
[accounts.alpha]
keys = ["{alpha}"]
[accounts.beta2]
keys = ["{beta2}"]
stamp = "west"
versioning = true
"""


def started(folder: Path, west: str = "", *options: str) -> ServerProcess:
    path = folder / "k.toml"
    path.write_text(CONFIG.format(west=west, **KEYS))
    return ServerProcess(
        "--config", str(path), "--workers", "2", "--engine", "embedded", *options, location=folder / "store"
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with started(tmp_path) as server:
        yield server


def url_of(server: ServerProcess, account: str, service: str = "blob") -> str:
    return server.endpoints[service].rsplit("/", 1)[0] + f"/{account}"


def blobs_of(server: ServerProcess, account: str) -> BlobServiceClient:
    return BlobServiceClient(
        url_of(server, account), credential=KEYS[account], max_single_put_size=64 * MIB, retry_total=0
    )


def files_of(server: ServerProcess, account: str) -> ShareServiceClient:
    return ShareServiceClient(url_of(server, account, "file"), credential=KEYS[account], token_intent=None)


def signed(account: str, url: str) -> str:
    token = generate_account_sas(
        account,
        KEYS[account],
        "sco",
        "rwdlac",
        expiry=datetime.now(UTC) + timedelta(hours=1),
        services=Services(blob=True, fileshare=True),
    )
    return f"{url}?{token}"


def manage(server: ServerProcess, *words: str) -> str:
    command = [
        sys.executable,
        "-m",
        "kyanite.server.cli",
        *words,
        "--location",
        str(server.location),
        "--json",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return ended.stdout if ended.returncode == 0 else ended.stderr


def test_an_account_lives_on_its_stamp(server: ServerProcess) -> None:
    for account in ("alpha", "beta2"):
        box = blobs_of(server, account).create_container("box")
        box.upload_blob("small", account.encode())
        box.upload_blob("large", noise(9 * MIB))
        assert box.download_blob("small").readall() == account.encode()
        assert box.download_blob("large").readall() == noise(9 * MIB)
    west = server.location / "stamps" / "west"
    for folder in (server.location, west):
        assert sum(
            path.stat().st_size for path in (folder / "extents" / "segments").rglob("*") if path.is_file()
        )
    listed = {each["name"]: each for each in json.loads(manage(server, "account", "list"))}
    assert {name: each["stamp"] for name, each in listed.items()} == {"alpha": "main", "beta2": "west"}
    assert listed["beta2"]["settings"]["versioning"], "what is stated is applied to the stamp"
    server.kill9()
    server.start()
    assert blobs_of(server, "beta2").get_container_client("box").download_blob("small").readall() == b"beta2"
    server.stop()
    for folder in (server.location, west):
        verified = subprocess.run(
            [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(folder)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert "all as they were written" in verified.stdout


def source_blobs(server: ServerProcess) -> dict[str, bytes]:
    box = blobs_of(server, "alpha").create_container("box")
    contents = {"small": b"few bytes", "empty": b"", "large": noise(9 * MIB + 5), "medium": noise(100_000)}
    for name, data in contents.items():
        box.upload_blob(name, data, metadata={"made": name})
    box.upload_blob("pages", noise(4096), blob_type="PageBlob")
    box.upload_blob("appended", noise(50_000), blob_type="AppendBlob")
    return {**contents, "pages": noise(4096), "appended": noise(50_000)}


def test_copies_between_stamps_stream(server: ServerProcess) -> None:
    contents = source_blobs(server)
    target = blobs_of(server, "beta2").create_container("copies")
    for name, data in contents.items():
        source = signed("alpha", f"{url_of(server, 'alpha')}/box/{name}")
        copy = target.get_blob_client(name)
        answer = copy.start_copy_from_url(source)
        assert answer["copy_status"] == "success"
        assert copy.download_blob().readall() == data
        properties = copy.get_blob_properties()
        kinds = {"pages": "PageBlob", "appended": "AppendBlob"}
        assert properties.blob_type == kinds.get(name, "BlockBlob")
        assert properties.copy.status == "success"
        if name in ("small", "large"):
            assert properties.metadata == {"made": name}
    for name in ("small", "medium", "large"):
        source = signed("alpha", f"{url_of(server, 'alpha')}/box/{name}")
        put = target.get_blob_client(f"put-{name}")
        put.upload_blob_from_url(source)
        assert put.download_blob().readall() == contents[name]
        synchronous = target.get_blob_client(f"copied-{name}")
        synchronous.start_copy_from_url(source, requires_sync=True)
        assert synchronous.download_blob().readall() == contents[name]
    large = signed("alpha", f"{url_of(server, 'alpha')}/box/large")
    blocks = target.get_blob_client("blocks")
    blocks.stage_block_from_url("AAAA", large, source_offset=5, source_length=MIB)
    blocks.commit_block_list([BlobBlock("AAAA")])
    assert blocks.download_blob().readall() == contents["large"][5 : MIB + 5]
    pages = target.get_blob_client("new-pages")
    pages.create_page_blob(4096)
    pages.upload_pages_from_url(
        signed("alpha", f"{url_of(server, 'alpha')}/box/pages"), offset=0, length=4096, source_offset=0
    )
    assert pages.download_blob().readall() == contents["pages"]
    appended = target.get_blob_client("new-appended")
    appended.create_append_blob()
    appended.append_block_from_url(large, source_offset=0, source_length=1000)
    assert appended.download_blob().readall() == contents["large"][:1000]


def test_a_copy_does_not_depend_on_its_source(server: ServerProcess) -> None:
    contents = source_blobs(server)
    copy = blobs_of(server, "beta2").create_container("copies").get_blob_client("large")
    copy.start_copy_from_url(signed("alpha", f"{url_of(server, 'alpha')}/box/large"))
    blobs_of(server, "alpha").delete_container("box")
    server.stop()
    (server.location / "extents" / "segments").rename(server.location / "gone")
    server.start()
    moved = blobs_of(server, "beta2").get_container_client("copies").download_blob("large")
    assert moved.readall() == contents["large"]


def test_conditions_on_a_source_of_another_stamp(server: ServerProcess) -> None:
    source_blobs(server)
    copy = blobs_of(server, "beta2").create_container("copies").get_blob_client("small")
    source = signed("alpha", f"{url_of(server, 'alpha')}/box/small")
    etag = BlobClient.from_blob_url(source).get_blob_properties().etag
    if_same = {"x-ms-source-if-match": '"0x1"'}
    with pytest.raises(HttpResponseError) as failed:
        copy.start_copy_from_url(source, headers=if_same)
    assert failed.value.status_code == 412
    assert not copy.exists()
    copy.start_copy_from_url(source, headers={"x-ms-source-if-match": str(etag)})
    with pytest.raises(HttpResponseError) as missing:
        copy.start_copy_from_url(signed("alpha", f"{url_of(server, 'alpha')}/box/nothing"))
    assert missing.value.status_code == 404


def test_copies_of_files_between_stamps(server: ServerProcess) -> None:
    contents = source_blobs(server)
    share = files_of(server, "alpha").create_share("share")
    share.get_file_client("a.bin").upload_file(noise(5 * MIB))
    target = files_of(server, "beta2").create_share("share")
    copy = target.get_file_client("copy.bin")
    copy.start_copy_from_url(signed("alpha", f"{url_of(server, 'alpha', 'file')}/share/a.bin"))
    assert copy.download_file().readall() == noise(5 * MIB)
    from_blob = target.get_file_client("blob.bin")
    from_blob.start_copy_from_url(signed("alpha", f"{url_of(server, 'alpha')}/box/large"))
    assert from_blob.download_file().readall() == contents["large"]
    ranges = target.get_file_client("ranges.bin")
    ranges.create_file(1024)
    source = signed("alpha", f"{url_of(server, 'alpha', 'file')}/share/a.bin")
    ranges.upload_range_from_url(source, offset=0, length=512, source_offset=100)
    assert ranges.download_file().readall() == noise(5 * MIB)[100:612] + bytes(512)


def test_zeros_are_not_copied(server: ServerProcess) -> None:
    """A page blob and a file of a terabyte, with a few pages in each."""
    box = blobs_of(server, "alpha").create_container("box")
    disk = box.get_blob_client("disk")
    disk.create_page_blob(1 << 40)
    for at, length in ((512, 1024), (1 << 30, 65536), (3 << 30, 4 * MIB)):
        disk.upload_page(noise(length), at, length)
    copy = blobs_of(server, "beta2").create_container("box").get_blob_client("disk")
    copy.start_copy_from_url(signed("alpha", f"{url_of(server, 'alpha')}/box/disk"))
    assert copy.get_blob_properties().size == 1 << 40
    for at, length in ((512, 1024), (1 << 30, 65536), (3 << 30, 4 * MIB)):
        expected = bytes(512) + noise(length) + bytes(512)
        assert copy.download_blob(offset=at - 512, length=length + 1024).readall() == expected
    assert len(list(copy.list_page_ranges())) == 3
    share = files_of(server, "alpha").create_share("share")
    sparse = share.get_file_client("sparse")
    sparse.create_file(1 << 40)
    sparse.upload_range(noise(100_000), 5 << 30, 100_000)
    copied = files_of(server, "beta2").create_share("share").get_file_client("sparse")
    copied.start_copy_from_url(signed("alpha", f"{url_of(server, 'alpha', 'file')}/share/sparse"))
    assert copied.download_file(offset=5 << 30, length=100_001).readall() == noise(100_000) + bytes(1)
    server.stop()
    verified = subprocess.run(
        [
            sys.executable,
            "-m",
            "kyanite.server.cli",
            "verify",
            "--location",
            str(server.location / "stamps" / "west"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "all as they were written" in verified.stdout, verified.stdout


def metric(server: ServerProcess, name: str, label: str = "") -> float:
    """One of a stamp, or of the main stamp, which has no label."""
    with urllib.request.urlopen(f"{server.endpoints['admin']}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(rf"^{re.escape(name + label)} (.+)$", text, re.MULTILINE)
    return -1 if found is None else float(found[1])


def test_metrics_are_those_of_each_stamp(tmp_path: Path) -> None:
    options = ("--admin-port", "0", "--testing", "--scrub-mib-per-second", "1000")
    with started(tmp_path, "", *options) as server:
        west, name = '{stamp="west"}', "kyanite_engine_transactions_total"
        eventually(lambda: min(metric(server, name), metric(server, name, west)) >= 0)
        before = metric(server, name), metric(server, name, west)
        box = blobs_of(server, "beta2").create_container("box")
        for number in range(50):
            box.upload_blob(str(number), b"x")
        eventually(lambda: metric(server, name, west) >= before[1] + 51)
        assert metric(server, name) < before[0] + 50
        maintained = "kyanite_maintenance_steps_total"
        steps = metric(server, maintained, west)
        assert steps >= 0
        box.delete_container()
        eventually(lambda: metric(server, maintained, west) > steps)
        blobs_of(server, "alpha").create_container("box").upload_blob("a", noise(4 * MIB))
        body = json.dumps({"advance_seconds": 61}).encode()
        request = urllib.request.Request(f"{server.endpoints['admin']}/testing/clock", body, method="POST")
        urllib.request.urlopen(request, timeout=10).close()
        passes = "kyanite_scrub_passes_total"
        eventually(lambda: metric(server, passes) == metric(server, passes, west) == 1)
        read = "kyanite_scrub_bytes_total"
        assert metric(server, read) >= 4 * MIB > metric(server, read, west)
        assert (
            metric(server, "kyanite_damaged_extents") == metric(server, "kyanite_damaged_extents", west) == 0
        )


def test_names_of_accounts_are_unique_over_stamps(server: ServerProcess) -> None:
    assert "on the stamp west" in manage(server, "account", "add", "beta2")
    assert "There is an account alpha already, on the stamp main" in manage(
        server, "account", "add", "alpha", "--stamp", "west"
    )
    assert "There is no stamp 'south'" in manage(server, "account", "add", "gamma", "--stamp", "south")
    added = json.loads(manage(server, "account", "add", "gamma", "--stamp", "west"))
    blobs = BlobServiceClient(url_of(server, "gamma"), credential=added["keys"][0], retry_total=0)
    blobs.create_container("box").upload_blob("a", noise(100_000))
    assert "already, on the stamp west" in manage(server, "account", "add", "gamma")
    rotated = json.loads(manage(server, "account", "rotate-key", "gamma", "1"))
    with pytest.raises(HttpResponseError, match="AuthenticationFailed"):
        blobs.get_container_client("box").get_container_properties()
    fresh = BlobServiceClient(url_of(server, "gamma"), credential=rotated["keys"][0], retry_total=0)
    assert fresh.get_container_client("box").download_blob("a").readall() == noise(100_000)
    assert "is removed" in manage(server, "account", "remove", "gamma", "--with-data")
    assert "gamma" not in {each["name"] for each in json.loads(manage(server, "account", "list"))}


def test_a_stamp_is_added_while_others_are_served(server: ServerProcess) -> None:
    box = blobs_of(server, "alpha").create_container("box")
    stopping = threading.Event()
    served = [0]

    def requests() -> None:
        while not stopping.is_set():
            box.upload_blob("a", b"x", overwrite=True)
            assert box.download_blob("a").readall() == b"x"
            served[0] += 1

    failures: list[BaseException] = []

    def watched() -> None:
        try:
            requests()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=watched)
    thread.start()
    try:
        assert "The stamp south is served" in manage(server, "stamp", "add", "south")
        added = json.loads(manage(server, "account", "add", "gamma", "--stamp", "south"))
        before = served[0]
        while served[0] < before + 5 and not failures:
            time.sleep(0.01)
    finally:
        stopping.set()
        thread.join()
    assert not failures
    gamma = BlobServiceClient(url_of(server, "gamma"), credential=added["keys"][0])
    for _ in range(10):  # Whichever worker it is.
        gamma.get_service_properties()
    gamma.create_container("box").upload_blob("large", noise(5 * MIB))
    assert "There is a stamp south already" in manage(server, "stamp", "add", "south")
    assert "There is a stamp west already" in manage(server, "stamp", "add", "west")
    assert "The name of a stamp" in manage(server, "stamp", "add", "No")
    listed = {each["name"]: each for each in json.loads(manage(server, "stamp", "list"))}
    assert listed.keys() == {"main", "west", "south"}
    assert all(each["is_open"] for each in listed.values())
    server.stop()
    server.start()
    gamma = BlobServiceClient(url_of(server, "gamma"), credential=added["keys"][0])
    assert gamma.get_container_client("box").download_blob("large").readall() == noise(5 * MIB)


def test_a_stamp_that_is_away_does_not_hurt_the_others(
    tmp_path: Path, postgres_server: PostgresServer, seaweed: SeaweedServer
) -> None:
    """Neither at the start nor later; and it comes back by itself."""
    schema = f"stamp_{sha256(bytes(tmp_path)).hexdigest()[:12]}"
    with TcpProxy(postgres_server.port) as proxy:
        engine = postgres_server.url(schema=schema).replace(f":{postgres_server.port}", f":{proxy.port}")
        west = f'engine = "{engine}"\nextents = "{seaweed.url(schema)}"\n'
        proxy.cut()
        with started(tmp_path, west) as server:
            box = blobs_of(server, "alpha").create_container("box")
            box.upload_blob("large", noise(9 * MIB))
            assert any(line.get("message") == "stamp not served" for line in server.log)
            listed = {each["name"]: each["is_open"] for each in json.loads(manage(server, "stamp", "list"))}
            assert listed == {"main": True, "west": False}
            assert "is away" in manage(server, "account", "add", "gamma")
            with pytest.raises(HttpResponseError):
                blobs_of(server, "beta2").create_container("box")
            proxy.restore()
            retried(lambda: blobs_of(server, "beta2").create_container("box"))
            copy = blobs_of(server, "beta2").get_blob_client("box", "copy")
            source = signed("alpha", f"{url_of(server, 'alpha')}/box/large")
            retried(lambda: copy.start_copy_from_url(source))  # The other worker may open it later.
            assert copy.download_blob().readall() == noise(9 * MIB)
            proxy.cut()
            assert box.download_blob("large").readall() == noise(9 * MIB)
            box.upload_blob("more", noise(100_000))
            with pytest.raises(HttpResponseError) as away:
                copy.get_blob_properties()
            assert away.value.status_code in (500, 503)
            proxy.restore()
            retried(copy.get_blob_properties)
            assert copy.download_blob().readall() == noise(9 * MIB)


def retried(call: Callable[[], object]) -> None:
    """Until it succeeds."""
    deadline = time.monotonic() + 60
    while True:
        try:
            call()
        except HttpResponseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
