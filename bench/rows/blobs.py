"""Blob rows of one small request each: puts, gets and lists."""

from dataclasses import dataclass, replace

from bench.load.single_request import send_request
from bench.load.works import FIRST_PUT, KIB, MIB, Content, gets, lists, puts
from bench.rows.row import Row
from bench.servers.peers import Server

SMALL = Content.of(KIB)
MIDDLING = Content.of(64 * KIB)
LARGE = Content.of(MIB)


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


def _put_row(label: str, content: Content, lanes: int) -> Row:
    name = f"put-{label}/{lanes}"
    container = f"put-{label}-{lanes}"

    def check(server: Server) -> None:
        check_content(server, container, FIRST_PUT, content)

    return Row(
        name=name,
        title=f"Put Blob {size_text(content)}",
        lanes=lanes,
        work=lambda server, series: puts(server.site, container, content, series),
        check=check,
        container=container,
    )


def _signed_get_row(label: str, dataset: Blobs, lanes: int) -> Row:
    """With a Shared Key signature of its own in every request, as the official clients send by default."""
    row = _get_row(label, dataset, lanes)
    return replace(
        row,
        name=f"get-{label}-key/{lanes}",
        title=f"{row.title}, Shared Key",
        work=lambda server, series: gets(
            server.site, dataset.container, dataset.names, signed=True, small=True
        ),
        beside=(),
    )


def _get_row(label: str, dataset: Blobs, lanes: int) -> Row:
    return Row(
        name=f"get-{label}/{lanes}",
        title=f"Get Blob {size_text(dataset.content)}",
        lanes=lanes,
        work=lambda server, series: gets(
            server.site, dataset.container, dataset.names, small=dataset.content.size <= KIB
        ),
        check=lambda server: check_content(server, dataset.container, dataset.names[-1], dataset.content),
        dataset=dataset,
        beside=("nginx",),
    )


def list_rows(count: int) -> list[Row]:
    """Lists of so many blobs, a hundred to a folder."""
    names = tuple(f"folder-{number // 100:03}/blob-{number:05}" for number in range(count))
    blobs = Blobs("listed", names, Content(b"x", 1))
    folders = count // 100
    return [
        row
        for lanes in (1, 32)
        for row in (
            _list_row(
                "page", f"list 5,000 of {count:,} blobs", lanes, blobs, "maxresults=5000", b"<Blob>", 5000
            ),
            _list_row(
                "prefix",
                f"list by prefix, 100 of {count:,} blobs",
                lanes,
                blobs,
                "prefix=folder-042/",
                b"<Blob>",
                100,
            ),
            _list_row(
                "delimiter",
                f"list {folders} folders of {count:,} blobs",
                lanes,
                blobs,
                "delimiter=/",
                b"<BlobPrefix>",
                folders,
            ),
        )
    ]


def _list_row(
    label: str, title: str, lanes: int, blobs: Blobs, query: str, element: bytes, expected: int
) -> Row:
    def check(server: Server) -> None:
        head = server.site.head("GET", f"/{blobs.container}", f"restype=container&comp=list&{query}")
        found = send_request(server.site, head, 200).count(element)
        if found != expected:
            raise RuntimeError(f"{server.name} listed {found} instead of {expected}")

    return Row(
        name=f"list-{label}/{lanes}",
        title=title,
        lanes=lanes,
        work=lambda server, series: lists(server.site, blobs.container, query),
        check=check,
        dataset=blobs,
    )


def check_content(server: Server, container: str, name: str, content: Content) -> None:
    """Read the blob back, or of a huge one its last piece."""
    last = (content.times - 1) * len(content.piece)
    span = f"Range: bytes={last}-{content.size - 1}\r\n" if last else ""
    head = server.site.head("GET", f"/{container}/{name}", headers=span)
    if send_request(server.site, head, 206 if last else 200) != content.piece:
        raise RuntimeError(f"{server.name} gave back something else than was put")


def size_text(content: Content) -> str:
    return f"{content.size // MIB} MiB" if content.size >= MIB else f"{content.size // KIB} KiB"


BLOB_ROWS: tuple[Row, ...] = (
    _put_row("1k", SMALL, 1),
    _put_row("1k", SMALL, 32),
    _get_row("1k", SMALL_BLOBS, 1),
    _get_row("1k", SMALL_BLOBS, 32),
    _signed_get_row("1k", SMALL_BLOBS, 32),
    _put_row("64k", MIDDLING, 1),
    _put_row("64k", MIDDLING, 32),
    _get_row("64k", MIDDLING_BLOBS, 1),
    _get_row("64k", MIDDLING_BLOBS, 32),
    _put_row("1m", LARGE, 1),
    _put_row("1m", LARGE, 32),
    _get_row("1m", LARGE_BLOBS, 1),
    _get_row("1m", LARGE_BLOBS, 32),
)
