"""Names are plain words: Azure's for what Azure has, the field's for the rest.

A name that needs a glossary of ours fails here, with the words to use instead. All definitions are checked: modules,
classes, functions, arguments, variables and attributes, cut into words at underscores and capitals.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

INSTEAD = {
    "grave graves": "freed extent",
    "chore chores": "pending compaction",
    "sweep sweeps sweeper sweeping swept upkeep caretaker": "garbage collection, maintenance",
    "stack stacks": "layer view",
    "board roster": "shared state, process table",
    "turnstile turn turns": "write lock, fair accept",
    "outlet post": "response writer, process context",
    "settle settles settled settling": "commit",
    "look looks looked looking place places placed": "look up, location",
    "ask asks asked asking draft drafts guard guards guarded": "request, new blob, access conditions",
    "exchange exchanges dialect dialects": "request context, service definition",
    "standing generation generations": "message state, message set id",
    "told shown sounds": "returned, formatted, response for",
    "estate estates executor executors": "dead process, its cleaner",
    "demolition demolitions demolish": "purge",
    "hold": "pinned read",
    "bell bells ring rings rang listen listens listener listeners": "notifications, notify, subscribe",
    "office offices": "checkpoint leader",
    "packer packers parcel parcels": "batch writer, pending write",
    "loosen loosens loosened aside": "preserve for snapshots, snapshot copy",
    "see sees seen": "read, at a time",
    "guardian guardians policed": "ACL lookup, container ACL",
    "intake intakes taken": "upload, received body",
    "strip strips band bands leap leaps": "key ranges, skip scan",
    "nobody somebody whoever": "no other process, another client, the caller",
    "life_line in_hand let_go taking_apart taken_apart take_apart set_aside": "parent-death pipe, open, sealed, purge",
}
PLAIN = {word: plain for words, plain in INSTEAD.items() for word in words.split()}

EXCEPTIONS = {
    "legal_hold": "Azure's name for it.",
    "look_up look_ups": "The plain word itself.",
    "dialect dialects": "What SMB calls its versions.",
    "key_exchange": "NTLM's name for it.",
    "by_post": "POST, the method of HTTP.",
    "file_generation_mismatch": "Azure's name for it.",
}
ALLOWED = {name for names in EXCEPTIONS for name in names.split()}

WHOLE_NAMES = {
    "POST": "The method of HTTP.",
    "stack": "What contextlib calls an ExitStack.",
}

SENTENCE_WORDS = {"hold", "look", "looks", "post", "see", "seen", "sees"}
"""Plain in the sentences that tests have as their names."""

SOCKET_WORDS = {"listen", "listener", "listeners"}
SOCKET_PACKAGES = (
    "bench",
    "src/kyanite/server",
    "tests/bench",
    "tests/faults",
    "tests/server",
    "tests/services",
    "tests/smb",
    "tests/wire/smb2",
)
"""Sockets listen there. In the engine there are subscriptions."""


def packages() -> list[str]:
    """The folders with modules, relative to the root."""
    tops = (ROOT / name for name in ("src", "tests", "bench", "clients", "documentation", "examples"))
    folders = {path.parent for top in tops for path in top.rglob("*.py")}
    return sorted(str(folder.relative_to(ROOT)) for folder in folders if folder.name != "394e107")


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def definitions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def private_words(name: str, package: str) -> list[str]:
    """The words of a name that need a glossary."""
    if name in WHOLE_NAMES:
        return []
    joined = "_".join(words_of(name))
    for allowed in ALLOWED:
        joined = re.sub(rf"(?<![a-z]){allowed}(?![a-z])", "", joined)
    exempt = SOCKET_WORDS if package.startswith(SOCKET_PACKAGES) else set()
    if name.startswith("test_"):
        exempt = exempt | SENTENCE_WORDS
    joined = "_".join(word for word in joined.split("_") if word not in exempt)
    return [word for word in PLAIN if re.search(rf"(?<![a-z]){word}(?![a-z])", joined)]


@pytest.mark.parametrize("package", packages())
def test_names_are_plain_words(package: str) -> None:
    found = []
    for path in sorted((ROOT / package).glob("*.py")):
        names = {path.stem, *definitions(ast.parse(path.read_text()))}
        for name in sorted(names):
            found += [f"{path.name}: {name}: {PLAIN[word]}" for word in private_words(name, package)]
    assert not found, f"{len(found)} names in {package}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PackedParcel", ["parcel"]),
        ("is_in_hand", ["in_hand"]),
        ("_MAX_LOOKED_AT", ["looked"]),
        ("GraveKey", ["grave"]),
        ("look_up", []),
        ("has_legal_hold", []),
        ("take_hold", ["hold"]),
        ("placeholder", []),
        ("POST", []),
        ("post_box", ["post"]),
        ("holder", []),
    ],
)
def test_private_words_are_recognised(name: str, words: list[str]) -> None:
    assert private_words(name, "src/kyanite/model") == words


def test_words_of_sockets_are_plain_where_sockets_are() -> None:
    assert private_words("listener", "src/kyanite/server/http") == []
    assert private_words("listener", "src/kyanite/engine") == ["listener"]


def test_verbs_are_plain_in_sentences() -> None:
    assert private_words("test_readers_see_a_whole_commit", "tests/engine") == []
    assert private_words("see", "tests/engine") == ["see"]
