"""Links and names of files lead somewhere."""

import re
from pathlib import Path

import pytest
from documentation.pages import ROOT, pages, prose_of

PAGES = pages()
MADE = ("docs/images/",)
"""What other tests write."""


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose_of(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, text: str) -> list[str]:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", prose_of(text)):
        path, _, anchor = (target[0] or target[1]).partition("#")
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors_of(found)):
            broken.append(path + (f"#{anchor}" if anchor else ""))
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken_links(page, page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return
    named = re.findall(
        r"`((?:docs|src|tests|examples|packaging|scripts|bench|clients)/[\w./-]+)`", page.read_text()
    )
    missing = [
        name
        for name in named
        if not (ROOT / name).exists() and not list((ROOT / name).parent.glob(f"{Path(name).name}*"))
    ]
    assert not missing


def test_a_broken_link_is_noticed() -> None:
    page = ROOT / "docs" / "index.md"
    assert broken_links(page, "[a](nowhere.md) [b](connecting.md#nowhere) [c](https://example.org)") == [
        "nowhere.md",
        "connecting.md#nowhere",
    ]


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    missing = [
        page.name
        for page in (ROOT / "docs").glob("*.md")
        if f"({page.name})" not in index and page.name != "index.md"
    ]
    assert not missing
