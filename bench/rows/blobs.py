"""Blob rows of one request each: puts, gets, uploads, downloads and lists."""

from dataclasses import dataclass, replace

from bench.load.single_request import send_request
from bench.load.works import KIB, MIB, Content, gets, lists, puts
from bench.report.bars import AtLeast
from bench.rows.row import Row
from bench.servers.peers import Server

SMALL = Content.of(KIB)
MIDDLING = Content.of(64 * KIB)
LARGE = Content.of(MIB)
QUARTER = Content.of(64 * MIB)
HUGE = Content.of(256 * MIB)


@dataclass(frozen=True, slots=True)
class Blobs:
    """Blobs that rows read."""

    container: str
    names: tuple[str, ...]
    content: Content

    def __str__(self) -> str:
        return f"{len(self.names):,} blobs"

    def fill(self, server: Server) -> None:
        server.fill(self.container, self.names, self.content)


SMALL_BLOBS = Blobs("small", tuple(f"blob-{number:04}" for number in range(1000)), SMALL)
MIDDLING_BLOBS = Blobs("middling", tuple(f"blob-{number:04}" for number in range(200)), MIDDLING)
LARGE_BLOBS = Blobs("large", tuple(f"blob-{number:04}" for number in range(64)), LARGE)
HUGE_BLOB = Blobs("huge", ("blob",), HUGE)
LISTED_BLOBS = Blobs(
    "listed",
    tuple(f"folder-{number // 100:03}/blob-{number:05}" for number in range(20_000)),
    Content(b"x", 1),
)


def _put_row(label: str, content: Content, lanes: int, *bars: AtLeast) -> Row:
    name = f"put-{label}/{lanes}"
    container = f"put-{label}-{lanes}"

    def check(server: Server) -> None:
        _check_content(server, container, "0-0-0", content)

    return Row(
        name=name,
        title=f"Put Blob {_size(content)}",
        lanes=lanes,
        work=lambda server, series: puts(server.site, container, content, series),
        check=check,
        container=container,
        bars=bars,
    )


def _signed_get_row(label: str, dataset: Blobs, lanes: int) -> Row:
    """With a Shared Key signature of its own in every request, as the official clients send by default."""
    row = _get_row(label, dataset, lanes)
    return replace(
        row,
        name=f"get-{label}-key/{lanes}",
        title=f"{row.title}, Shared Key",
        work=lambda server, series: gets(server.site, dataset.container, dataset.names, signed=True),
        nginx_too=False,
    )


def _get_row(label: str, dataset: Blobs, lanes: int, *bars: AtLeast) -> Row:
    return Row(
        name=f"get-{label}/{lanes}",
        title=f"Get Blob {_size(dataset.content)}",
        lanes=lanes,
        work=lambda server, series: gets(server.site, dataset.container, dataset.names),
        check=lambda server: _check_content(server, dataset.container, dataset.names[-1], dataset.content),
        dataset=dataset,
        nginx_too=True,
        bars=bars,
    )


def _upload_row(content: Content, lanes: int, *bars: AtLeast) -> Row:
    container = f"upload-{lanes}"

    def check(server: Server) -> None:
        _check_content(server, container, "0-0-0", content)

    return Row(
        name=f"upload-256m/{lanes}",
        title="upload 256 MiB" if lanes == 1 else f"upload {lanes} × {content.size // MIB} MiB",
        lanes=lanes,
        work=lambda server, series: puts(server.site, container, content, series),
        check=check,
        container=container,
        unit=" MiB/s",
        units_per_operation=content.size / MIB,
        bars=bars,
    )


def _download_row(lanes: int, *bars: AtLeast) -> Row:
    return Row(
        name=f"download-256m/{lanes}",
        title="download 256 MiB",
        lanes=lanes,
        work=lambda server, series: gets(server.site, HUGE_BLOB.container, HUGE_BLOB.names),
        check=lambda server: _check_content(server, HUGE_BLOB.container, HUGE_BLOB.names[0], HUGE),
        dataset=HUGE_BLOB,
        unit=" MiB/s",
        units_per_operation=HUGE.size / MIB,
        nginx_too=True,
        bars=bars,
    )


def _list_row(
    label: str, title: str, lanes: int, query: str, element: bytes, expected: int, *bars: AtLeast
) -> Row:
    def check(server: Server) -> None:
        head = server.site.head("GET", f"/{LISTED_BLOBS.container}", f"restype=container&comp=list&{query}")
        found = send_request(server.site, head, 200).count(element)
        if found != expected:
            raise RuntimeError(f"{server.name} listed {found} instead of {expected}")

    return Row(
        name=f"list-{label}/{lanes}",
        title=title,
        lanes=lanes,
        work=lambda server, series: lists(server.site, LISTED_BLOBS.container, query),
        check=check,
        dataset=LISTED_BLOBS,
        bars=bars,
    )


def _list_rows(
    lanes: int, page: tuple[AtLeast, ...], prefix: tuple[AtLeast, ...], delimiter: tuple[AtLeast, ...]
) -> list[Row]:
    return [
        _list_row("page", "list 5,000 of 20,000", lanes, "maxresults=5000", b"<Blob>", 5000, *page),
        _list_row(
            "prefix", "list by prefix, 100 of 20,000", lanes, "prefix=folder-042/", b"<Blob>", 100, *prefix
        ),
        _list_row(
            "delimiter", "list 200 folders of 20,000", lanes, "delimiter=/", b"<BlobPrefix>", 200, *delimiter
        ),
    ]


def _check_content(server: Server, container: str, name: str, content: Content) -> None:
    """Read the blob back, or of a huge one its last piece."""
    last = (content.times - 1) * len(content.piece)
    span = f"Range: bytes={last}-{content.size - 1}\r\n" if last else ""
    head = server.site.head("GET", f"/{container}/{name}", headers=span)
    if send_request(server.site, head, 206 if last else 200) != content.piece:
        raise RuntimeError(f"{server.name} gave back something else than was put")


def _size(content: Content) -> str:
    return f"{content.size // MIB} MiB" if content.size >= MIB else f"{content.size // KIB} KiB"


def _azurite(times: float) -> AtLeast:
    return AtLeast(times, "azurite")


def _nginx(times: float) -> AtLeast:
    return AtLeast(times, "nginx")


BLOB_ROWS: tuple[Row, ...] = (
    _put_row("1k", SMALL, 1),
    _put_row("1k", SMALL, 32, _azurite(10)),
    _get_row("1k", SMALL_BLOBS, 1),
    _get_row("1k", SMALL_BLOBS, 32, _azurite(15), _nginx(0.3)),
    _signed_get_row("1k", SMALL_BLOBS, 32),
    _put_row("64k", MIDDLING, 1),
    _put_row("64k", MIDDLING, 32),
    _get_row("64k", MIDDLING_BLOBS, 1),
    _get_row("64k", MIDDLING_BLOBS, 32),
    _put_row("1m", LARGE, 1),
    _put_row("1m", LARGE, 32),
    _get_row("1m", LARGE_BLOBS, 1),
    _get_row("1m", LARGE_BLOBS, 32),
    _upload_row(HUGE, 1, _azurite(8)),
    _upload_row(QUARTER, 4, _azurite(8)),
    _download_row(1, _azurite(1.5), _nginx(0.5)),
    _download_row(4, _azurite(1.5), _nginx(0.5)),
    *_list_rows(1, (), (), ()),
    *_list_rows(32, (_azurite(25),), (_azurite(25),), (_azurite(100),)),
)
"""The bars are those of the design, which sets most of them for 32 clients."""
