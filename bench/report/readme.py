"""The figures of the README and of its page in docs/, written between two marks from the last run that was published.

The README has the rows that say most, the page all of them.
"""

from collections.abc import Collection, Sequence

from bench.report import chart
from bench.report.history import PUBLISHED, ROOT, RowRecord, RunRecord, load
from bench.report.tables import Columns, as_markdown, figure, heading, ratio

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- bench: python -m bench --chart writes what follows -->"
END = "<!-- bench: end -->"
IN_README = (
    "put-1k",
    "get-1k",
    "get-1m",
    "if-match",
    "lease-cycle",
    "upload-blocks",
    "download-256m",
    "queue-cycle",
    "table-point",
    "table-insert",
    "list-page",
    "start",
    "idle",
    "lost",
)
_HEADINGS = ("work", "clients", "Kyanite", "Azurite", "ratio", "with one client")


def redraw() -> None:
    """The chart and the README's figures, from the last published run."""
    runs = load(PUBLISHED)
    if not runs:
        raise SystemExit("No run has been published: python -m bench --publish does.")
    chart.draw_all(runs[-1])
    README.write_text(with_figures(README.read_text(), figures(runs[-1])))
    PAGE.write_text(with_figures(PAGE.read_text(), all_figures(runs[-1])))


def with_figures(text: str, written: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit("The page has lost the marks between which its figures are.")
    return f"{before}{BEGIN}\n{written}\n{END}{after}"


def figures(run: RunRecord) -> str:
    """For the README: the chart and the most important rows."""
    light, dark = (chart.PATHS[theme].relative_to(ROOT) for theme in ("light", "dark"))
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="How many times as fast as Azurite" src="{light}"></picture>\n\n'
        f"{heading(run)}\n\n{as_markdown(table(run, IN_README))}"
    )


def all_figures(run: RunRecord) -> str:
    return f"{heading(run)}\n\n{as_markdown(table(run))}"


def table(run: RunRecord, names: Collection[str] = ()) -> Columns:
    """Rows that differ only in their clients are one line; with ``names`` only these. SMB has a table elsewhere."""
    lines: dict[str, list[RowRecord]] = {}
    for row in run.rows:
        name = row.name.partition("/")[0]
        if not name.startswith("smb-") and (not names or name in names):
            lines.setdefault(name, []).append(row)
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
