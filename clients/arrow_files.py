"""pyarrow's AzureFileSystem, which is built on the client library for C++: files, folders, and what is not there."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import AzureFileSystem, FileSelector, FileType

from clients.checks import (
    ACCOUNT,
    CONTAINER,
    ENDPOINT,
    KEY,
    ODD_NAMES,
    TOKEN,
    WRONG_KEY,
    check,
    expect,
    refused,
    some_bytes,
)

MISSING_CONTAINER = f"{CONTAINER}-missing"


def file_system(**credential: str) -> AzureFileSystem:
    """Both addresses are that of the Blob service, as one gives them for an account with a flat namespace."""
    address = urlsplit(ENDPOINT)
    return AzureFileSystem(
        ACCOUNT,
        blob_storage_authority=address.netloc,
        blob_storage_scheme=address.scheme,
        dfs_storage_authority=address.netloc,
        dfs_storage_scheme=address.scheme,
        **credential,
    )


FILES = file_system(account_key=KEY)


def at(name: str) -> str:
    return f"{CONTAINER}/{name}"


def write(name: str, data: bytes, metadata: Mapping[str, str] | None = None) -> None:
    with FILES.open_output_stream(at(name), metadata=metadata) as stream:
        stream.write(data)


def append(name: str, data: bytes) -> None:
    with FILES.open_append_stream(at(name)) as stream:
        stream.write(data)


def read(name: str, files: AzureFileSystem = FILES) -> bytes:
    with files.open_input_stream(at(name)) as stream:
        return bytes(stream.read())


def kind_of(name: str) -> FileType:
    return FILES.get_file_info(at(name)).type


def listed(name: str, **how: bool) -> dict[str, int | None]:
    """The sizes of the files below, by their names; None for folders."""
    found = FILES.get_file_info(FileSelector(at(name).rstrip("/"), **how))
    return {info.path.removeprefix(f"{CONTAINER}/"): info.size for info in found}


def contents() -> None:
    with check("files are written and read"):
        for name, data in (("small", b"hello"), ("empty", b""), ("large", some_bytes(20_000_000))):
            write(name, data)
            expect(read(name) == data, True)
            expect(FILES.get_file_info(at(name)).size, len(data))
    with check("names that have to be encoded"):
        for name in ODD_NAMES:
            write(f"odd/{name}", name.encode())
            expect(read(f"odd/{name}"), name.encode())
        expect(sorted(listed("odd")), sorted(f"odd/{name}" for name in ODD_NAMES))
    with check("a file is read from anywhere in it"):
        data = some_bytes(20_000_000)
        with FILES.open_input_file(at("large")) as file:
            expect(file.size(), len(data))
            file.seek(12_345_678)
            expect(file.read(1000) == data[12_345_678:12_346_678], True)
            expect(file.read_at(5000, 19_999_000) == data[19_999_000:], True)
    with check("a file has a type and metadata"):
        write("typed", b"x", {"Content-Type": "text/x-own", "Cache-Control": "no-cache", "own": "1"})
        with FILES.open_input_stream(at("typed")) as stream:
            found = stream.metadata()
        names = ("Content-Type", "Cache-Control", "own")
        expect([found[name] for name in names], [b"text/x-own", b"no-cache", b"1"])
    with check("a file is appended to, and made by it"):
        for data in (b"first", b" and second"):
            append("log", data)
        expect(read("log"), b"first and second")
        append("small", b", again")
        expect(read("small"), b"hello, again")
    with check("a file is overwritten"):
        write("small", b"hello")
        expect(read("small"), b"hello")


def folders() -> None:
    with check("folders are made, with and without those above"):
        FILES.create_dir(at("a/b/c"))
        expect([kind_of(name) for name in ("a", "a/b", "a/b/c")], [FileType.Directory] * 3)
        refused(FileNotFoundError, lambda: FILES.create_dir(at("x/y/z"), recursive=False))
    with check("a folder is listed, and all below it"):
        write("tree/one", b"1")
        write("tree/sub/two", b"22")
        write("tree/sub/deep/three", b"333")
        expect(listed("tree"), {"tree/one": 1, "tree/sub": None})
        expect(
            listed("tree", recursive=True),
            {
                "tree/one": 1,
                "tree/sub": None,
                "tree/sub/two": 2,
                "tree/sub/deep": None,
                "tree/sub/deep/three": 3,
            },
        )
        expect(listed("", recursive=True).items() >= listed("tree", recursive=True).items(), True)
    with check("containers are made, listed and removed"):
        name = f"{CONTAINER}-other"
        FILES.create_dir(name)
        expect(name in [info.path for info in FILES.get_file_info(FileSelector(""))], True)
        FILES.delete_dir(name)
        expect(FILES.get_file_info(name).type, FileType.NotFound)


def copies() -> None:
    with check("a file is copied, also over another and over itself"):
        write("source", b"source")
        for target in ("copies/new", "small", "source"):
            FILES.copy_file(at("source"), at(target))
            expect(read(target), b"source")
    with check("a large file is copied"):
        FILES.copy_file(at("large"), at("copies/large"))
        expect(read("copies/large") == read("large"), True)
    with check("a copy of what is not there is refused"):
        refused(OSError, FILES.copy_file, at("none"), at("copies/none"), saying="404")
        expect(kind_of("copies/none"), FileType.NotFound)
    with check("the namespace is found to be flat, so nothing is moved"):
        refused(NotImplementedError, FILES.move, at("source"), at("moved"), saying="Hierarchical Namespace")
        expect(read("source"), b"source")


def missing() -> None:
    with check("what is not there is told to be missing"):
        names = [at("none"), at("none/none"), MISSING_CONTAINER, f"{MISSING_CONTAINER}/none"]
        expect([info.type for info in FILES.get_file_info(names)], [FileType.NotFound] * 4)
    with check("opening what is not there raises FileNotFoundError"):
        for name in (at("none"), f"{MISSING_CONTAINER}/none"):
            refused(FileNotFoundError, FILES.open_input_stream, name)
            refused(FileNotFoundError, FILES.open_input_file, name)
    with check("listing what is not there raises FileNotFoundError, unless allowed"):
        for name in (at("none"), MISSING_CONTAINER):
            refused(FileNotFoundError, FILES.get_file_info, FileSelector(name))
            expect(FILES.get_file_info(FileSelector(name, allow_not_found=True)), [])
    with check("deleting what is not there raises FileNotFoundError, unless allowed"):
        for name in (at("none"), f"{MISSING_CONTAINER}/none"):
            refused(FileNotFoundError, FILES.delete_file, name)
        refused(FileNotFoundError, FILES.delete_dir, at("none"))
        refused(FileNotFoundError, FILES.delete_dir_contents, at("none"))
        FILES.delete_dir_contents(at("none"), missing_dir_ok=True)
    with check("writing to a container that is not there is refused"):
        refused(OSError, FILES.open_output_stream, f"{MISSING_CONTAINER}/new", saying="ContainerNotFound")


def tables() -> None:
    table = pa.table({"year": [2025, 2025, 2026], "value": [1.5, 2.5, 3.5], "name": ["a", "b", "ä"]})
    with check("a Parquet file is written, and read column by column"):
        pq.write_table(table, at("tables/one.parquet"), filesystem=FILES)
        expect(pq.read_table(at("tables/one.parquet"), filesystem=FILES).equals(table), True)
        found = pq.read_table(at("tables/one.parquet"), columns=["value"], filesystem=FILES)
        expect(found.to_pydict(), {"value": [1.5, 2.5, 3.5]})
    with check("a partitioned dataset is written, found again and filtered"):
        parts = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
        ds.write_dataset(table, at("tables/many"), format="parquet", partitioning=parts, filesystem=FILES)
        found = ds.dataset(at("tables/many"), format="parquet", partitioning=parts, filesystem=FILES)
        expect(found.count_rows(), 3)
        expect(found.to_table(filter=ds.field("year") == 2026, columns=["name"]).to_pydict(), {"name": ["ä"]})
    with check("a dataset is written over another, whose files are deleted first"):
        ds.write_dataset(
            table.slice(0, 1),
            at("tables/many"),
            format="parquet",
            partitioning=parts,
            filesystem=FILES,
            existing_data_behavior="delete_matching",
        )
        again = ds.dataset(at("tables/many"), format="parquet", partitioning=parts, filesystem=FILES)
        expect(sorted(again.to_table().column("name").to_pylist()), ["a", "ä"])


def access() -> None:
    with check("a token opens the account"):
        by_token = file_system(sas_token=f"?{TOKEN}")
        expect(read("source", by_token), b"source")
        expect(by_token.get_file_info(at("none")).type, FileType.NotFound)
    with check("a wrong key is refused"):
        stranger = file_system(account_key=WRONG_KEY)
        refused(OSError, read, "source", stranger, saying="AuthenticationFailed")


def deletion() -> None:
    with check("a file is deleted, and the folder it was in is kept"):
        FILES.delete_file(at("tree/sub/deep/three"))
        expect(
            [kind_of("tree/sub/deep/three"), kind_of("tree/sub/deep")],
            [FileType.NotFound, FileType.Directory],
        )
    with check("a folder is deleted with all below it, in batches"):
        for number in range(300):
            write(f"many/{number % 3}/{number}", b"")
        FILES.delete_dir(at("many"))
        expect(kind_of("many"), FileType.NotFound)
    with check("what a folder or a container holds is deleted"):
        FILES.delete_dir_contents(at("tree"))
        expect((kind_of("tree"), listed("tree", recursive=True)), (FileType.Directory, {}))
        FILES.delete_dir_contents(CONTAINER)
        expect(listed("", recursive=True), {})


if __name__ == "__main__":
    for checks in (contents, folders, copies, missing, tables, access, deletion):
        checks()
