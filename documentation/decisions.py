"""The index of decisions, from their headings."""

from pathlib import Path

from documentation.markdown import table
from documentation.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"


def files() -> list[Path]:
    return sorted(FOLDER.glob("[0-9]*.md"))


def index() -> str:
    rows = []
    for path in files():
        number, _, title = path.read_text().splitlines()[0].removeprefix("# ").partition(". ")
        rows.append([number, f"[{title}]({path.name})"])
    return table(("number", "decision"), rows)
