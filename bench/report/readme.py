"""The README's figures, written between two marks from the last run that was published."""

from collections.abc import Sequence

from bench.report import chart
from bench.report.history import PUBLISHED, ROOT, RowRecord, RunRecord, load
from bench.report.tables import Columns, as_markdown, figure, heading, ratio

README = ROOT / "README.md"
BEGIN = "<!-- bench: python -m bench --chart writes what follows -->"
END = "<!-- bench: end -->"
_HEADINGS = ("work", "clients", "Kyanite", "Azurite", "ratio", "with one client")


def redraw() -> None:
    """The chart and the README's figures, from the last published run."""
    runs = load(PUBLISHED)
    if not runs:
        raise SystemExit("No run has been published: python -m bench --publish does.")
    chart.draw_all(runs[-1])
    README.write_text(with_figures(README.read_text(), runs[-1]))


def with_figures(text: str, run: RunRecord) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit("README.md has lost the marks between which its figures are.")
    return f"{before}{BEGIN}\n{figures(run)}\n{END}{after}"


def figures(run: RunRecord) -> str:
    light, dark = (chart.PATHS[theme].relative_to(ROOT) for theme in ("light", "dark"))
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="How many times as fast as Azurite" src="{light}"></picture>\n\n'
        f"{heading(run)}\n\n{as_markdown(table(run))}"
    )


def table(run: RunRecord) -> Columns:
    """Rows that differ only in their clients are one line. SMB has a table of its own elsewhere."""
    lines: dict[str, list[RowRecord]] = {}
    for row in run.rows:
        if not row.name.startswith("smb-"):
            lines.setdefault(row.name.partition("/")[0], []).append(row)
    return [_HEADINGS, *(_line(rows) for rows in lines.values())]


def _line(rows: Sequence[RowRecord]) -> list[str]:
    main = next((row for row in rows if row.clients != 1), rows[0])
    one = next((row for row in rows if row.clients == 1 and row is not main), None)
    medians = [
        figure(row.median, main.unit) if (row := main.servers.get(name)) else ""
        for name in ("kyanite", "azurite")
    ]
    count = str(main.clients or "")
    return [main.title, count, *medians, ratio(main, "azurite"), ratio(one, "azurite") if one else ""]
