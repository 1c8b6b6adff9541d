"""The pages, the marks of their generated parts, and their code blocks."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
_PART = re.compile(r"(<!-- generated: ([a-z -]+) -->\n).*?(<!-- generated: end -->)", re.DOTALL)
_FENCE = re.compile(r"^( *)(```+)(.*)$")
_DRAWN = ("text", "mermaid")
"""What is no code: output, trees of files, pictures."""

RUN = "run"
BY_CLIENTS = "run by make clients"
NOT_RUN = "not run here: "


def pages() -> list[Path]:
    """What users and contributors read. Decisions are for the curious, and change with nothing."""
    return sorted(
        [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "decisions" / "README.md"]
    )


def parts_of(text: str) -> list[str]:
    """The names of the generated parts of a page."""
    return [found[2] for found in _PART.finditer(text)]


def with_parts(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The page with its generated parts written again."""
    return _PART.sub(lambda found: f"{found[1]}{parts[found[2]]().strip()}\n{found[3]}", text)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    mark: str
    """``run``, ``run by make clients``, ``not run here: …``, or empty."""
    text: str

    @property
    def is_code(self) -> bool:
        return self.language not in _DRAWN

    @property
    def is_marked(self) -> bool:
        is_reasoned = self.mark.startswith(NOT_RUN) and len(self.mark) > len(NOT_RUN) + 3
        return self.mark in (RUN, BY_CLIENTS) or is_reasoned


def blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    start, fence, info = 0, "", ""
    for number, line in enumerate(lines, 1):
        found = _FENCE.match(line)
        if not fence and found:
            start, fence, info = number, found[2], found[3].strip()
        elif fence and line.strip() == fence:
            language, _, mark = info.partition(" ")
            yield Block(page, start, language, mark.strip(), "\n".join(lines[start : number - 1]) + "\n")
            fence = ""
    assert not fence, f"{page.name}:{start}: a block without an end"


def commands_of(block: Block) -> str:
    """The script of a shell block. Of a session the commands, which begin with a dollar, without their output."""
    if block.language != "console":
        return block.text
    script, is_continued = [], False
    for line in block.text.splitlines():
        if line.startswith("$ ") or is_continued:
            script.append(line.removeprefix("$ "))
            is_continued = line.endswith("\\")
    return "\n".join(script) + "\n"


_PORTS = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10003, "smb": 10445, "admin": 10009}


def with_endpoints(text: str, endpoints: Mapping[str, str], connection_string: str) -> str:
    """A block for a server that has other ports than the usual ones."""
    for service, port in _PORTS.items():
        if service in endpoints:
            actual = urlsplit(endpoints[service]).port
            for before in ("127.0.0.1:", "localhost:", "port=", "-p "):
                text = text.replace(f"{before}{port}", f"{before}{actual}")
    return text.replace("UseDevelopmentStorage=true", connection_string)


def prose_of(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
