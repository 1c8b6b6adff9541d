"""The chart of the README: how many times as fast as Azurite, work by work.

Drawn twice, for light and for dark pages. The drawing is the same for the same run, and names the figures it shows by a
hash, so that a test can tell whether it is up to date.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bench.report.history import ROOT, RowRecord, RunRecord
from bench.report.tables import figure

PATHS = {"light": ROOT / "docs" / "benchmarks-light.svg", "dark": ROOT / "docs" / "benchmarks-dark.svg"}


class Colours(NamedTuple):
    text: str
    grid: str
    many: str
    one: str


_COLOURS = {
    "light": Colours("#1f2328", "#d1d9e0", "#0969da", "#8250df"),
    "dark": Colours("#f0f6fc", "#3d444d", "#4493f8", "#d2a8ff"),
}
_LINE_INCHES = 0.27
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "kyanite", "font.size": 9}
"""Text stays text, and ids are the same every time."""


class Point(NamedTuple):
    """A line of the chart. ``one`` is the ratio with one client, ``many`` that with several."""

    title: str
    many: float | None
    one: float | None

    @property
    def label(self) -> str:
        """Its figures."""
        return " / ".join(f"{figure(ratio)}×" for ratio in (self.many, self.one) if ratio is not None)


def points(run: RunRecord) -> list[Point]:
    """The rows that Azurite has as well. Rows that differ only in their clients are one line."""
    lines: dict[str, list[RowRecord]] = {}
    for row in run.rows:
        if row.clients is not None and row.ratio("azurite") is not None:
            lines.setdefault(row.name.partition("/")[0], []).append(row)
    return [_point(rows) for rows in lines.values()]


def _point(rows: Sequence[RowRecord]) -> Point:
    one = next((row for row in rows if row.clients == 1), None)
    many = next((row for row in rows if row.clients != 1), None)
    return Point(
        title=rows[0].title,
        many=many.ratio("azurite") if many else None,
        one=one.ratio("azurite") if one else None,
    )


def digest(drawn: Sequence[Point]) -> str:
    text = "\n".join(f"{point.title}\t{point.many}\t{point.one}" for point in drawn)
    return hashlib.sha256(text.encode()).hexdigest()


def draw(run: RunRecord, path: Path, theme: str) -> None:
    """Write the chart as SVG."""
    drawn, colours = points(run), _COLOURS[theme]
    with mpl.rc_context(_SETTINGS):
        drawing = Figure(figsize=(8.5, 1.1 + _LINE_INCHES * len(drawn)), layout="constrained")
        axes = drawing.add_subplot()
        _draw_points(axes, drawn, colours)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
        axes.set_xlabel("times as fast as Azurite (which syncs nothing to disk)", color=colours.text)
        axes.margins(x=0.2, y=0.02)
        legend = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        for text in legend.get_texts():
            text.set_color(colours.text)
        metadata = {"Date": None, "Creator": None, "Title": "Kyanite beside Azurite"}
        drawing.savefig(
            path, format="svg", transparent=True, metadata={**metadata, "Description": digest(drawn)}
        )
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def _draw_points(axes: Axes, drawn: Sequence[Point], colours: Colours) -> None:
    lines = range(len(drawn))
    for number, point in zip(lines, drawn, strict=True):
        ratios = [value for value in (point.many, point.one) if value is not None]
        axes.plot([1, *ratios], [number] * (len(ratios) + 1), color=colours.grid, linewidth=2, zorder=1)
        label_at = (max(1.0, *ratios), number)
        axes.annotate(
            point.label, label_at, (8, 0), textcoords="offset points", va="center", color=colours.text
        )
    for name, colour, marker in (("many", colours.many, "o"), ("one", colours.one, "D")):
        found = [(getattr(point, name), number) for number, point in zip(lines, drawn, strict=True)]
        found_at = [(value, number) for value, number in found if value is not None]
        words = "one client" if name == "one" else "32 clients (4 for large bodies)"
        across, down = zip(*found_at, strict=True) if found_at else ((), ())
        axes.scatter(across, down, color=colour, marker=marker, s=28, zorder=2, label=words)
    axes.axvline(1, color=colours.text, linewidth=1)
    axes.set_yticks(lines, [point.title for point in drawn])
    axes.invert_yaxis()
    axes.tick_params(colors=colours.text, length=0)
    axes.grid(axis="x", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_all(run: RunRecord) -> None:
    for theme, path in PATHS.items():
        draw(run, path, theme)
