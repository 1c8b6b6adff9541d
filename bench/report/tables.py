"""Printing: a table for people at a terminal, the same as Markdown, and the details."""

from collections.abc import Sequence

from bench.report.history import Figures, RowRecord, RunRecord

_HEADINGS = (
    "work",
    "clients",
    "Kyanite",
    "±",
    "Azurite",
    "±",
    "× Azurite",
    "× others",
    "server µs",
    "client µs",
    "driven by",
    "bar",
    "verdict",
)
_DETAILS = (
    "row",
    "server",
    "median",
    "lowest–highest",
    "p50 ms",
    "p99 ms",
    "server µs",
    "kernel µs",
    "client µs",
    "headroom",
)
_IN_OTHER_COLUMNS = ("kyanite", "azurite")
Columns = Sequence[Sequence[str]]


def summary(rows: Sequence[RowRecord]) -> Columns:
    """One line for every row: medians, spreads, ratios, processor time with Kyanite, bars and the verdict."""
    return [_HEADINGS, *(_summary_line(row) for row in rows)]


def details(rows: Sequence[RowRecord]) -> Columns:
    """One line for every row and server: spread, latencies, and processor time per operation on both sides."""
    lines = [_detail_line(row, name, figures) for row in rows for name, figures in row.servers.items()]
    return [_DETAILS, *(line for line in lines if line is not None)]


def heading(run: RunRecord) -> str:
    """What was measured, where and how."""
    machine, versions = run.machine, ", ".join(f"{name} {version}" for name, version in run.versions.items())
    how = f"{run.rounds} rounds of {run.seconds:g} s" if run.rounds > 1 else f"one round of {run.seconds:g} s"
    where = f"{machine.processor}, {machine.cores} cores, Linux {machine.kernel}"
    note = f" {run.note}" if run.note else ""
    return (
        f"Kyanite {run.commit}, {run.form}, Python {machine.python}; {versions}. {where}. "
        f"{run.at[:10]}, {how}.{note}"
    )


def as_text(table: Columns) -> str:
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])


def as_markdown(table: Columns) -> str:
    lines = [f"| {' | '.join(line)} |" for line in table]
    return "\n".join([lines[0], "|" + " --- |" * len(table[0]), *lines[1:]])


def figure(value: float, unit: str = "") -> str:
    """Three digits that matter, and thousands apart."""
    if value >= 100:
        return f"{value:,.0f}{unit}"
    return f"{value:.1f}{unit}" if value >= 10 else f"{value:.2f}{unit}"


def ratio(row: RowRecord, peer: str) -> str:
    value = row.ratio(peer)
    return f"{figure(value)}×" if value is not None else ""


def _summary_line(row: RowRecord) -> list[str]:
    ours, theirs = row.servers.get("kyanite"), row.servers.get("azurite")
    others = [f"{ratio(row, name)} {name}" for name in row.servers if name not in _IN_OTHER_COLUMNS]
    return [
        row.title,
        str(row.clients or ""),
        *_value(ours, row.unit),
        *_value(theirs, row.unit),
        ratio(row, "azurite"),
        ", ".join(others),
        _optional(ours.server_us if ours else None),
        _optional(ours.client_us if ours else None),
        row.client,
        ", ".join(row.bars),
        row.verdict,
    ]


def _value(figures: Figures | None, unit: str) -> tuple[str, str]:
    """The median, and the spread if there was more than one round."""
    if figures is None:
        return "", ""
    spread = f"{100 * figures.spread:.0f} %" if len(figures.rounds) > 1 else ""
    return figure(figures.median, unit), spread


def _optional(value: float | None) -> str:
    return figure(value) if value is not None else ""


def _detail_line(row: RowRecord, name: str, figures: Figures) -> list[str] | None:
    if figures.server_us is None or figures.kernel_us is None:
        return None
    return [
        row.name,
        name,
        figure(figures.median, row.unit),
        f"{figure(min(figures.rounds))}–{figure(max(figures.rounds))}",
        _optional(figures.p50_ms),
        _optional(figures.p99_ms),
        figure(figures.server_us - figures.kernel_us),
        figure(figures.kernel_us),
        _optional(figures.client_us),
        f"{_optional(figures.headroom)}×",
    ]
