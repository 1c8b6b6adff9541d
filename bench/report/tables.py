"""Printing: a table for people at a terminal, the same as Markdown for the README, and the details."""

from collections.abc import Callable, Sequence
from statistics import median

from bench.report.results import Measure, Result

_PEERS = ("kyanite", "azurite", "nginx")
_HEADINGS = ("work", "clients", "Kyanite", "Azurite", "nginx", "× Azurite", "× nginx", "bar", "verdict")
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
Columns = Sequence[Sequence[str]]


def summary(results: Sequence[Result]) -> Columns:
    """One line for every row: medians, ratios, bars and the verdict."""
    return [_HEADINGS, *(_summary_line(result) for result in results)]


def details(results: Sequence[Result]) -> Columns:
    """One line for every row and server: spread, latencies, and processor time per operation on both sides."""
    lines = [
        _detail_line(result, peer, measures)
        for result in results
        for peer, measures in result.measures.items()
    ]
    return [_DETAILS, *lines]


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


def _summary_line(result: Result) -> list[str]:
    medians = result.medians
    figures = [figure(medians[peer], result.unit) if peer in medians else "" for peer in _PEERS]
    return [
        result.title,
        str(result.lanes or ""),
        *figures,
        _ratio(result, "azurite"),
        _ratio(result, "nginx"),
        ", ".join(str(bar) for bar in result.bars),
        result.verdict,
    ]


def _ratio(result: Result, peer: str) -> str:
    ours, theirs = result.medians.get("kyanite"), result.medians.get(peer)
    return f"{figure(ours / theirs)}×" if ours is not None and theirs else ""


def _detail_line(result: Result, peer: str, measures: Sequence[Measure]) -> list[str]:
    values = [measure.value for measure in measures]

    def middle(pick: Callable[[Measure], float]) -> str:
        return figure(median(pick(measure) for measure in measures))

    return [
        result.name,
        peer,
        figure(median(values), result.unit),
        f"{figure(min(values))}–{figure(max(values))}",
        middle(lambda measure: measure.p50_ms),
        middle(lambda measure: measure.p99_ms),
        middle(lambda measure: measure.server_user_us),
        middle(lambda measure: measure.server_system_us),
        middle(lambda measure: measure.client_us),
        f"{middle(lambda measure: measure.headroom)}×",
    ]
