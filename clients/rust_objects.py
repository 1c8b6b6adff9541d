"""obstore's AzureStore, which is built on the object_store library for Rust: objects, conditions, lists, copies."""

from datetime import timedelta
from typing import Any
from urllib.request import urlopen

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    NotModifiedError,
    PermissionDeniedError,
    PreconditionError,
)
from obstore.store import AzureStore

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

MIB = 1024 * 1024


def store_in(container: str, **more: Any) -> AzureStore:
    """A store that tries everything once, so that no failure hides behind a second try."""
    settings = {"account_key": KEY} | more
    return AzureStore(
        container,
        account_name=ACCOUNT,
        endpoint=ENDPOINT,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
        **{name: value for name, value in settings.items() if value},
    )


STORE = store_in(CONTAINER)
MISSING = store_in(f"{CONTAINER}-missing")


def read(path: str, store: AzureStore = STORE, **options: Any) -> bytes:
    wanted: Any = options or None
    return bytes(store.get(path, options=wanted).bytes())


def paths(listed: Any) -> list[str]:
    return [each["path"] for each in listed]


def contents() -> None:
    with check("objects are put and got"):
        for path, data in (("small", b"hello"), ("empty", b""), ("deep/er/one", b"1")):
            STORE.put(path, data)
            expect(read(path), data)
    with check("names that have to be encoded"):
        for name in ODD_NAMES:
            STORE.put(f"odd/{name}", name.encode())
            expect(read(f"odd/{name}"), name.encode())
        expect(sorted(paths(STORE.list("odd").collect())), sorted(f"odd/{name}" for name in ODD_NAMES))
    with check("an object goes up in parts, at once and as a stream"):
        data = some_bytes(20_000_000)
        STORE.put("large", data, chunk_size=5 * MIB, use_multipart=True)
        expect(read("large") == data, True)
        STORE.put("streamed", iter([data[:MIB], data[MIB : 2 * MIB], b"end"]))
        expect(read("streamed") == data[: 2 * MIB] + b"end", True)
        with obstore.open_writer(STORE, "written", buffer_size=MIB) as writer:
            for _ in range(5):
                writer.write(data[:700_000])
        expect(read("written") == data[:700_000] * 5, True)
    with check("parts of an object are read"):
        expect(bytes(STORE.get_range("large", start=12_345_678, length=1000)), data[12_345_678:12_346_678])
        starts, ends = [0, 10_000_000, 300], [3, 10_000_100, 600]
        found = [bytes(each) for each in STORE.get_ranges("large", starts=starts, ends=ends)]
        expect(found, [data[start:end] for start, end in zip(starts, ends, strict=True)])
        expect(read("small", range={"offset": 2}), b"llo")
        expect(bytes(STORE.get_range("small", start=2, end=100)), b"llo")
        refused(GenericError, lambda: STORE.get_range("small", start=100, end=105), saying="InvalidRange")
        reader = obstore.open_reader(STORE, "large")
        reader.seek(19_999_990)
        expect(bytes(reader.read()) == data[19_999_990:], True)
    with check("an object has attributes and metadata"):
        attributes = {
            "Content-Type": "text/x-own",
            "Content-Encoding": "own",
            "Content-Language": "de",
            "Content-Disposition": "inline",
            "Cache-Control": "no-cache",
            "own": "1",
        }
        STORE.put("typed", b"x", attributes=attributes)
        expect(dict(STORE.get("typed").attributes), attributes)
        STORE.put("typed in parts", iter([b"x"]), attributes=attributes)
        expect(dict(STORE.get("typed in parts").attributes), attributes)
    with check("an object's head"):
        head = STORE.head("small")
        expect((head["path"], head["size"]), ("small", 5))
        expect(head["e_tag"], STORE.get("small").meta["e_tag"])


def conditions() -> None:
    with check("an object is created once"):
        STORE.put("once", b"1", mode="create")
        refused(AlreadyExistsError, lambda: STORE.put("once", b"2", mode="create"))
        expect(read("once"), b"1")
    with check("an object is updated if nobody else has changed it"):
        first = STORE.head("once")
        STORE.put("once", b"2", mode={"e_tag": first["e_tag"]})
        refused(PreconditionError, lambda: STORE.put("once", b"3", mode={"e_tag": first["e_tag"]}))
        refused(PreconditionError, lambda: STORE.put("none", b"3", mode={"e_tag": first["e_tag"]}))
        expect(read("once"), b"2")
    with check("an object is read on conditions"):
        head = STORE.head("once")
        expect(read("once", if_match=head["e_tag"]), b"2")
        refused(PreconditionError, lambda: read("once", if_match=first["e_tag"]))
        expect(read("once", if_none_match=first["e_tag"]), b"2")
        refused(NotModifiedError, lambda: read("once", if_none_match=head["e_tag"]))
        refused(NotModifiedError, lambda: read("once", if_modified_since=head["last_modified"]))
        before = head["last_modified"] - timedelta(hours=1)
        refused(PreconditionError, lambda: read("once", if_unmodified_since=before))


def lists() -> None:
    names = [f"list/{number:02}" for number in range(20)]
    for name in [*names, "list/sub/one", "list/sub/two"]:
        STORE.put(name, name.encode())
    with check("objects are listed by a prefix"):
        expect(paths(STORE.list("list").collect()), [*names, "list/sub/one", "list/sub/two"])
        expect(paths(STORE.list("list/sub").collect()), ["list/sub/one", "list/sub/two"])
        expect(paths(STORE.list("li").collect()), [])
        expect({each["path"]: each["size"] for each in STORE.list("list/sub").collect()}["list/sub/one"], 12)
    with check("objects are listed from an offset on, in chunks"):
        expect(
            paths(STORE.list("list", offset="list/17").collect()),
            [*names[18:], "list/sub/one", "list/sub/two"],
        )
        expect(paths(STORE.list("list", offset="list/17x").collect())[0], "list/18")
        chunks = STORE.list("list", chunk_size=5)
        expect([path for chunk in chunks for path in paths(chunk)], [*names, "list/sub/one", "list/sub/two"])
    with check("objects are listed with a delimiter"):
        found = STORE.list_with_delimiter("list")
        expect((found["common_prefixes"], paths(found["objects"])), (["list/sub"], names))
        expect("list" in STORE.list_with_delimiter()["common_prefixes"], True)
    with check("a store may begin below a prefix"):
        below = store_in(CONTAINER, prefix="list/sub")
        expect((paths(below.list().collect()), read("one", below)), (["one", "two"], b"list/sub/one"))


def copies() -> None:
    with check("an object is copied, also over another"):
        STORE.copy("small", "copied")
        STORE.copy("empty", "copied")
        expect(read("copied"), b"")
        STORE.copy("large", "copied")
        expect(read("copied") == read("large"), True)
    with check("an object is copied if there is none yet"):
        STORE.copy("small", "copied once", overwrite=False)
        refused(AlreadyExistsError, lambda: STORE.copy("empty", "copied once", overwrite=False))
        expect(read("copied once"), b"hello")
    with check("an object is renamed, and if there is none yet"):
        STORE.rename("copied", "renamed")
        refused(FileNotFoundError, STORE.head, "copied")
        refused(AlreadyExistsError, lambda: STORE.rename("renamed", "small", overwrite=False))
        expect((read("renamed") == read("large"), read("small")), (True, b"hello"))
        STORE.rename("renamed", "renamed again", overwrite=False)
        refused(FileNotFoundError, STORE.head, "renamed")
    with check("a copy or a rename of what is not there is refused"):
        refused(FileNotFoundError, STORE.copy, "none", "copied")
        refused(FileNotFoundError, STORE.rename, "none", "copied")
        refused(FileNotFoundError, STORE.head, "copied")


def missing() -> None:
    with check("the head, the content and the deletion of what is not there raise FileNotFoundError"):
        for store in (STORE, MISSING):
            refused(FileNotFoundError, store.head, "none")
            refused(FileNotFoundError, store.get, "none")
        refused(FileNotFoundError, lambda: STORE.get_range("none", start=0, end=1))
        refused(FileNotFoundError, STORE.delete, "none")
    with check("a container that is not there takes nothing and lists nothing"):
        refused(FileNotFoundError, MISSING.put, "new", b"")
        refused(GenericError, lambda: MISSING.list().collect(), saying="ContainerNotFound")


def access() -> None:
    with check("a token opens the container"):
        expect(read("small", store_in(CONTAINER, account_key="", sas_key=TOKEN)), b"hello")
    with check("a signed address opens one object"):
        address = obstore.sign(STORE, "GET", "small", timedelta(hours=1))
        with urlopen(address) as answer:
            expect(answer.read(), b"hello")
    with check("a wrong key is refused"):
        stranger = store_in(CONTAINER, account_key=WRONG_KEY)
        refused(PermissionDeniedError, stranger.head, "small")
        refused(PermissionDeniedError, stranger.put, "small", b"")
        expect(read("small"), b"hello")


def deletion() -> None:
    with check("an object is deleted"):
        STORE.delete("small")
        refused(FileNotFoundError, STORE.head, "small")
    with check("many objects are deleted, in batches"):
        for number in range(300):
            STORE.put(f"many/{number}", b"")
        STORE.delete([f"many/{number}" for number in range(300)])
        expect(paths(STORE.list("many").collect()), [])
        STORE.delete(paths(STORE.list().collect()))
        expect(STORE.list().collect(), [])


if __name__ == "__main__":
    for checks in (contents, conditions, lists, copies, missing, access, deletion):
        checks()
